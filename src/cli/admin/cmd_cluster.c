/* firn cluster: shows and changes the members of a Raft cluster of firnds. It asks any member
 * over HTTP. */
#include "cli/commands.h"
#include "cli/http_client.h"
#include "wire/json_read.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/tls_option.h"
#include "cli/table.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 6,
    CHANGE_MS = 35 * 1000,
    POST_BYTES_MAX = 1024,
    LOST_MAX = 15, /* all members that a cluster can have, but one */
};

struct cluster {
    struct tls_option tls;
    const char *url, *token;
    bool json, force;
};

static const struct opt opts[] = {
    { .name = "url",
      .letter = 'u',
      .type = OPT_TEXT,
      .at = offsetof(struct cluster, url),
      .value = "URL",
      .about = "any member (default FIRN_URL, or http://127.0.0.1:9000)" },
    { .name = "token",
      .type = OPT_TEXT,
      .at = offsetof(struct cluster, token),
      .value = "TEXT",
      .about = "token, if the members require one (default: FIRN_TOKEN)" },
    { .name = "force",
      .type = OPT_FLAG,
      .at = offsetof(struct cluster, force),
      .about = "remove: the others are lost for good, and the asked member goes on alone" },
    OPT_TLS(struct cluster, tls),
    OPT_JSON(struct cluster, json),
    { .name = NULL },
};

const struct usage cluster_usage = {
    .name = "cluster",
    .examples =
        "  firn cluster status                        members, leader, replication lag\n"
        "  firn cluster promote 9c0f3d1e5a7b2468      a standby votes from now on\n"
        "  firn cluster remove 9c0f3d1e5a7b2468       before its data is wiped or it leaves\n"
        "  firn cluster transfer                      before the leader is restarted\n",
    .synopsis = "firn cluster status [--url URL] [--json]\n"
                "       firn cluster add ID ADDRESS [--url URL] [--json]\n"
                "       firn cluster promote | remove ID\n"
                "       firn cluster remove --force ID...\n"
                "       firn cluster transfer [ID]",
    .about =
        "A firnd that starts with cluster.join joins and gets a vote; with cluster.standby,\n"
        "too, it receives the log and has no vote until promote gives it one. add does the same\n"
        "for a firnd that waits and cannot reach a member itself: its log shows its ID.\n"
        "transfer moves the leadership to a member, or to any. The exit status of status is 1\n"
        "while there is no leader. remove --force is for a majority that is lost for good: the\n"
        "member that --url names goes on alone, with another identity and its own data, and IDs\n"
        "stay unique; name all the others. Numbers that only they had granted may come again.\n",
    .operands = "status add promote remove transfer",
    .opts = opts,
};

static int failed(const struct http_client *c, int error)
{
    return say_trouble("%s: %s%s", c->url.authority, c->why,
                       error == FIRN_EIO ? ": is firnd running there?" : "");
}

static void put_table(const char *body, size_t len)
{
    static const char *const header[] = { "ID", "ADDRESS", "ROLE", ">INDEX", ">LAG", "SEEN", NULL };
    const char *end = memchr(body, '\n', len), *last = body + len;
    struct table t;
    if (!end)
        return;
    printf("%.*s\n\n", (int)(end - body), body);
    table_init(&t, 0, header);
    for (const char *p = end + 1; p < last;) {
        for (int i = 0; i < COLUMNS; i++) {
            size_t n = strcspn(p, "\t\n");
            table_add(&t, "%.*s", (int)n, p);
            p += n + (p[n] == '\t');
        }
        p += strcspn(p, "\n") + 1;
    }
    table_print(&t);
    table_done(&t);
}

static void take_leader(void *user, const char *path, const char *value, bool quoted)
{
    bool *led = user;
    (void)value;
    if (strcmp(path, "leader") == 0)
        *led = quoted;
}

/* Whether the status, as JSON or as lines, names a leader. */
static bool has_leader(bool json, const char *text, size_t len)
{
    bool led = false;
    if (!json)
        return strstr(text, ", leader\t") != NULL;
    return json_each(text, len, take_leader, &led) == 0 && led;
}

static int status(const struct cluster *o, struct http_client *c)
{
    const char *body;
    size_t len;
    c->accept = o->json ? "application/json" : "text/plain";
    int r = http_client_get(c, &body, &len);
    if (r != 0)
        return failed(c, r);
    char *text = strndup(body, len); /* NUL-terminated */
    if (!text)
        return say_trouble("out of memory");
    if (o->json)
        fputs(text, stdout);
    else
        put_table(text, len);
    bool led = has_leader(o->json, text, len);
    free(text);
    r = output_finish(STATUS_OK);
    if (led || r != STATUS_OK)
        return r;
    return say_failed(
        "there is no leader, so no tickets are granted: a leader needs more than half of "
        "the voters. Start the voters that are down, or repair the network between them");
}

/* As the status shows it; the log omits leading zeros. */
static bool is_id(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n <= 16 && strspn(text, "0123456789abcdefABCDEF") == n &&
           strspn(text, "0") != n;
}

static int no_id(const char *id)
{
    char shown[SAY_TEXT_BUF];
    return say_trouble(
        "'%s' is not a member ID: give 16 hexadecimal digits, as firn cluster status shows them",
        say_text(id, strlen(id), shown));
}

/* `id` (with --force: several, joined) and `address` are NULL where they were not given. */
static int change(const struct cluster *o, struct http_client *c, const char *action,
                  const char *id, const char *address)
{
    char shown[SAY_TEXT_BUF];
    struct buf post;
    struct host_port to;
    const char *body;
    size_t len;
    if (id && !o->force && !is_id(id))
        return no_id(id);
    if (address && !host_port_full(address, &to))
        return say_trouble(
            "'%s' is not an address: give host:port, as in the member's cluster.listen or "
            "cluster.address",
            say_text(address, strlen(address), shown));
    buf_init(&post, POST_BYTES_MAX);
    json_begin(&post, NULL, '{');
    json_text(&post, "action", action);
    json_text(&post, "id", id ? id : "");
    json_text(&post, "address", address ? address : "");
    if (o->force)
        json_bool(&post, "force", true);
    json_end(&post, '}');
    buf_add(&post, "", 1);
    if (post.failed)
        return say_trouble("out of memory");
    c->post = post.p;
    c->timeout_ms = CHANGE_MS;
    int r = http_client_post(c, &body, &len);
    c->post = NULL;
    buf_done(&post);
    if (r != 0)
        return failed(c, r);
    if (o->json)
        fwrite(body, 1, len, stdout);
    else
        printf("done: %s%s%s\n", action, id ? " " : "", id ? id : "");
    return output_finish(STATUS_OK);
}

int cmd_cluster(int argc, char **argv)
{
    struct cluster o = { .url = default_url(), .token = getenv("FIRN_TOKEN") };
    int n, r = options_parse(&cluster_usage, argc, argv, &o, &n);
    if (r >= 0)
        return r;
    static const struct {
        const char *name;
        int min, max; /* operands after it */
    } actions[] = { { "status", 0, 0 },
                    { "add", 2, 2 },
                    { "promote", 1, 1 },
                    { "remove", 1, 1 },
                    { "transfer", 0, 1 } };
    size_t i = 0, count = sizeof actions / sizeof actions[0];
    while (n > 0 && i < count && strcmp(actions[i].name, argv[1]) != 0)
        i++;
    bool force = o.force && i < count && strcmp(actions[i].name, "remove") == 0;
    if (n == 0 || i == count || n - 1 < actions[i].min ||
        n - 1 > (force ? LOST_MAX : actions[i].max) || o.force != force)
        return say_trouble(
            "missing or wrong subcommand: status, add ID ADDRESS, promote ID, remove ID, remove "
            "--force ID... or transfer [ID]; see firn cluster --help");
    char ids[LOST_MAX * 17 + 1] = "";
    for (int k = 2, at = 0; force && k <= n; k++) {
        if (!is_id(argv[k]))
            return no_id(argv[k]);
        at += snprintf(ids + at, sizeof ids - (size_t)at, "%s%s", at ? "," : "", argv[k]);
    }
    const char *id = force ? ids : n > 1 ? argv[2] : NULL;
    char url[512];
    struct http_client c;
    size_t len = strlen(o.url);
    len -= len > 0 && o.url[len - 1] == '/';
    snprintf(url, sizeof url, "%.*s/v1/cluster", len < 450 ? (int)len : 450, o.url);
    r = tls_option_open(&o.tls, url);
    if (r >= 0)
        return r;
    if (http_client_init_tls(&c, url, o.tls.context) != 0) {
        r = say_trouble("--url: %s", c.why);
    } else {
        c.token = o.token;
        r = i == 0 ? status(&o, &c) : change(&o, &c, argv[1], id, n > 2 && !force ? argv[3] : NULL);
    }
    http_client_done(&c);
    tls_option_done(&o.tls);
    return r;
}
