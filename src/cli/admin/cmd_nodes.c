/*
 * firn nodes: the members of a store. A single read can only compare a record's time with this
 * machine's clock; with --watch firn observes which members keep writing, and reports a member as
 * dead only then.
 */
#include "cli/commands.h"
#include "cli/admin/coord_opts.h"
#include "cli/http_client.h"
#include "wire/json_write.h"
#include "cli/admin/node_body.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/tls_option.h"
#include "cli/when.h"
#include "drive/member.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 1000 };

struct nodes {
    struct tls_option tls;
    const char *store, *url;
    bool json, watch, all;
};

static const struct opt opts[] = {
    OPT_STORE(struct nodes, store),
    { .name = "url",
      .type = OPT_TEXT,
      .at = offsetof(struct nodes, url),
      .value = "URL",
      .about = "ask a firnd instead, as in http://127.0.0.1:9000" },
    { .name = "all",
      .letter = 'a',
      .at = offsetof(struct nodes, all),
      .about = "include members that left, and earlier runs" },
    { .name = "watch",
      .letter = 'w',
      .at = offsetof(struct nodes, watch),
      .about = "keep running, and show every change" },
    OPT_TLS(struct nodes, tls),
    OPT_JSON(struct nodes, json),
    { .name = NULL },
};

const struct usage nodes_usage = {
    .name = "nodes",
    .examples = "  firn nodes --store sqlite:firn.db\n"
                "  FIRN_STORE=etcd://10.0.0.1:2379/firn firn nodes --watch\n"
                "  firn nodes --url http://127.0.0.1:9000\n",
    .synopsis = "firn nodes [--store URL] [--all] [--watch] [--json]\n"
                "       firn nodes --url URL [--ca FILE] [--cert FILE --key FILE] [--json]",
    .about =
        "Lists the members of a store: servers, and commands such as firn elect. A member is\n"
        "up, silent when its last sign of life is older than its ttl and a third, or dead when\n"
        "this command has seen no change for one and a half of its ttl. A process that was\n"
        "started again under the same name and address is listed once, by its last run.\n"
        "With --json each line is one read of the store.\n",
    .opts = opts,
};

struct list {
    const struct nodes *n;
    uint64_t unix_ms;
    struct table table;
    struct buf json;
    uint32_t hash; /* of the rows without their ages, to see whether they changed */
};

static void add_json(struct list *l, const struct member_view *v, const char *state)
{
    const struct member_record *r = v->record;
    struct buf *j = &l->json;
    json_begin(j, NULL, '{');
    json_count(j, "number", v->number);
    json_text(j, "name", r->name);
    json_text(j, "address", r->address);
    json_text(j, "slots", r->slots);
    json_text(j, "version", r->version);
    json_text(j, "kind", r->kind);
    json_text(j, "state", state);
    json_count(j, "beat", r->beat);
    json_count(j, "ttl_ms", r->ttl_ms);
    json_count(j, "age_ms", l->unix_ms > r->at ? l->unix_ms - r->at : 0);
    json_end(j, '}');
}

static const char *const header[] = { ">NUMBER", "NAME",  "ADDRESS",   "SLOTS", "VERSION",
                                      "KIND",    "STATE", "LAST BEAT", NULL };

static void add_row(struct table *t, const struct node_row *r, uint64_t unix_ms)
{
    char text[WHEN_BUF];
    bool good = strcmp(r->state, "up") == 0;
    table_add(t, "%u", (unsigned)r->number);
    table_add(t, "%s", r->name);
    table_add(t, "%s", r->address[0] ? r->address : "-");
    table_add(t, "%s", r->slots[0] ? r->slots : "-");
    table_add(t, "%s", r->version);
    table_add(t, "%s", r->kind);
    table_add_in(t, term_style(good ? TERM_GOOD : TERM_BAD), "%s", r->state);
    table_add(t, "%s",
              when_about((int64_t)(unix_ms - r->age_ms) * 1000, (int64_t)unix_ms * 1000, text));
}

static void add_member(struct list *l, const struct member_view *v, const char *state)
{
    const struct member_record *m = v->record;
    struct node_row r = { .number = v->number, .age_ms = l->unix_ms - m->at };
    memcpy(r.name, m->name, sizeof r.name);
    memcpy(r.address, m->address, sizeof r.address);
    memcpy(r.slots, m->slots, sizeof r.slots);
    memcpy(r.version, m->version, sizeof r.version);
    memcpy(r.kind, m->kind, sizeof r.kind);
    snprintf(r.state, sizeof r.state, "%s", state);
    add_row(&l->table, &r, l->unix_ms);
}

static int add(void *user, const struct member_view *v)
{
    struct list *l = user;
    uint64_t at = v->record->at;
    const char *state = member_state_name(v, l->unix_ms > at ? l->unix_ms - at : 0);
    uint32_t h = record_name_hash(v->record->name, strlen(v->record->name)) + v->number +
                 (uint32_t)v->record->epoch * 31;
    h ^= record_name_hash(state, strlen(state)) * 7 +
         record_name_hash(v->record->slots, strlen(v->record->slots)) * 5 +
         record_name_hash(v->record->address, strlen(v->record->address)) * 3;
    l->hash = l->hash * 16777619u + h;
    if (l->n->json)
        add_json(l, v, state);
    else
        add_member(l, v, state);
    return 0;
}

struct watcher {
    const struct nodes *n;
    struct firn_store *store;
    struct roster roster;
    struct member_world world;
    uint32_t shown;
    bool any;
};

/* Read the members; print them when they differ from the last time, on a terminal always. -1: go
 * on. */
static int look(struct watcher *w)
{
    struct firn_diag d = { 0 };
    struct list l = { .n = w->n, .unix_ms = w->world.unix_ms(w->world.user), .hash = 1 };
    table_init(&l.table, 0, header);
    buf_init(&l.json, OUTPUT_JSON_MAX);
    json_begin(&l.json, NULL, '[');
    int error = (w->n->all ? members_list : members_current)(w->store, &w->roster, &w->world, add,
                                                             &l, &d);
    json_end(&l.json, ']');
    bool screen = w->n->watch && !w->n->json && term_width() > 0;
    if (error) {
        say_warning("%s", d.text[0] ? d.text : firn_error_message(error));
    } else if (!w->any || screen || l.hash != w->shown) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        else if (w->any && !w->n->json)
            putchar('\n');
        if (w->n->json)
            output_json(&l.json, stdout);
        else
            table_print(&l.table);
        w->any = true;
        w->shown = l.hash;
    }
    table_done(&l.table);
    buf_done(&l.json);
    return error ? STATUS_TROUBLE : -1;
}

/* ---- through a server ---- */

struct remote {
    struct table table;
    uint64_t unix_ms;
};

static void add_remote(void *user, const struct node_row *row)
{
    struct remote *r = user;
    add_row(&r->table, row, r->unix_ms);
}

static int ask_server(struct nodes *n)
{
    struct http_client client;
    struct remote r = { .unix_ms = (uint64_t)when_now_us() / 1000 };
    char url[2048], shown[SAY_TEXT_BUF];
    const char *body;
    size_t len, host = strlen(n->url);
    while (host > 0 && n->url[host - 1] == '/')
        host--;
    if (snprintf(url, sizeof url, "%.*s/v1/nodes", (int)host, n->url) >= (int)sizeof url)
        return say_trouble("--url is too long");
    say_text(url, strlen(url), shown);
    int opened = tls_option_open(&n->tls, url);
    if (opened >= 0)
        return opened;
    if (http_client_init_tls(&client, url, n->tls.context) != 0)
        return say_trouble("--url %s: %s", shown, client.why);
    int status = STATUS_OK, error = http_client_get(&client, &body, &len);
    table_init(&r.table, 0, header);
    if (error)
        status = say_trouble("%s: %s (asked %u times): check that this is the address of a firnd",
                             shown, client.why, client.retries + 1);
    else if (node_body_each(body, len, add_remote, &r) != 0)
        status = say_trouble(
            "%s: the answer is not a list of nodes: check that this is the address of a firnd",
            shown);
    else if (n->json)
        fwrite(body, 1, len, stdout);
    else
        table_print(&r.table);
    table_done(&r.table);
    http_client_done(&client);
    tls_option_done(&n->tls);
    return output_finish(status);
}

int cmd_nodes(int argc, char **argv)
{
    struct nodes n = { 0 };
    int operands, r = options_parse(&nodes_usage, argc, argv, &n, &operands);
    if (r >= 0)
        return r;
    if (operands > 0)
        return say_trouble("unexpected operand '%s': name the store with --store", argv[1]);
    if (n.url && (n.store || n.watch || n.all))
        return say_trouble(
            "--url asks a server about its own store: leave out --store, --watch and --all");
    if (n.url)
        return ask_server(&n);
    const char *url = store_option_url(n.store);
    if (!url)
        return STATUS_TROUBLE;
    struct watcher *w = calloc(1, sizeof *w);
    if (!w)
        return say_trouble("out of memory");
    w->n = &n;
    member_world_real(&w->world);
    r = store_option_open_existing(url, 0, &w->store);
    if (r < 0) {
        do {
            r = look(w);
            if (n.watch && !output_gone())
                w->world.sleep_ms(w->world.user, LOOK_EVERY_MS);
        } while (n.watch && !output_gone()); /* a store that is unavailable comes back */
        r = output_finish(r < 0 ? STATUS_OK : r);
    }
    firn_store_close(w->store);
    free(w);
    return r;
}
