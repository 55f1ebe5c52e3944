/*
 * firn doctor: asks servers what they say of themselves, and prints what is wrong with the cure.
 * Tested in tests/integration/clones.py.
 */
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/tls_option.h"
#include "cli/watch/findings.h"
#include "cli/when.h"
#include "wire/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES_MAX = 64, ANSWER_MS = 2000, AGAIN_NS = 300000000 };

struct doctor {
    struct tls_option tls;
    bool json;
};

static const struct opt opts[] = {
    OPT_TLS(struct doctor, tls),
    OPT_JSON(struct doctor, json),
    { .name = NULL },
};

const struct usage doctor_usage = {
    .name = "doctor",
    .examples = "  firn doctor                                      the firnd of this machine\n"
                "  firn doctor http://10.0.0.1:9000 http://10.0.0.2:9000\n"
                "  firn doctor --ca ca.pem https://ids.example.com:9000\n",
    .synopsis = "firn doctor [URL...] [--ca FILE] [--cert FILE --key FILE] [--json]",
    .about =
        "Checks servers: whether they answer and are ready, their clocks, layouts, versions and\n"
        "stores, and whether two of them use the same slot, which makes them give out the same\n"
        "IDs. Give the URLs of all servers whose IDs meet: servers with different stores do not\n"
        "know of each other. Prints what is wrong and what to do; the exit status is 1 if\n"
        "something is. Without a URL it asks $FIRN_URL, or http://127.0.0.1:9000. firn admin\n"
        "doctor checks the records of a store.\n",
    .opts = opts,
};

static void ask(struct top_node *n, struct tls_context *tls)
{
    struct http_client c;
    char url[320];
    const char *body;
    size_t len;
    struct top_sample s = { .at_ns = 1 };
    snprintf(url, sizeof url, "%s/v1/node", n->url);
    n->asked = true;
    n->up = false;
    int r = http_client_init_tls(&c, url, tls);
    c.timeout_ms = ANSWER_MS;
    uint64_t before_us = (uint64_t)when_now_us();
    if (r == 0)
        r = http_client_get_once(&c, &body, &len);
    if (r != 0) {
        snprintf(n->why, sizeof n->why, "%.190s", c.why);
    } else if (top_read_node(body, len, &s) != 0) {
        snprintf(n->why, sizeof n->why, "this is not a firnd: unexpected answer to /v1/node");
    } else {
        uint64_t after_us = (uint64_t)when_now_us();
        n->up = true;
        n->skew_us = (int64_t)s.unix_us - (int64_t)(before_us + (after_us - before_us) / 2);
        n->last = s;
    }
    http_client_done(&c);
}

static void ask_all(struct top_node *node, size_t n, struct tls_context *tls)
{
    for (size_t i = 0; i < n; i++)
        ask(&node[i], tls);
}

static const char *level_name(enum finding_level level)
{
    return level == FINDING_BAD ? "wrong" : "note";
}

static void print_text(const struct top_node *node, size_t n, const struct findings *f)
{
    for (size_t i = 0; i < n; i++) {
        const struct top_sample *s = &node[i].last;
        if (!node[i].up)
            printf("%s  down\n", node[i].url);
        else if (s->slot < 0)
            printf("%s  %s, version %s, no slot, clock %s\n", node[i].url, s->name, s->version,
                   s->clock);
        else
            printf("%s  %s, version %s, slot %" PRId64 ", clock %s, store %.8s\n", node[i].url,
                   s->name, s->version, s->slot, s->clock, s->face.store);
        for (size_t k = 0; k < f->n; k++)
            if (f->f[k].node == i)
                printf("  %-5s  %s: %s\n", level_name(f->f[k].level), f->f[k].about, f->f[k].text);
    }
    printf("%zu server%s, %zu wrong, %zu note%s\n", n, n == 1 ? "" : "s", f->bad, f->n - f->bad,
           f->n - f->bad == 1 ? "" : "s");
}

static void print_json(const struct top_node *node, size_t n, const struct findings *f)
{
    struct buf j;
    buf_init(&j, OUTPUT_JSON_MAX);
    json_begin(&j, NULL, '{');
    json_bool(&j, "ok", f->bad == 0);
    json_begin(&j, "nodes", '[');
    for (size_t i = 0; i < n; i++) {
        const struct top_sample *s = &node[i].last;
        json_begin(&j, NULL, '{');
        json_text(&j, "url", node[i].url);
        json_bool(&j, "up", node[i].up);
        if (node[i].up) {
            json_text(&j, "name", s->name);
            json_text(&j, "version", s->version);
            json_bool(&j, "ready", s->ready);
            json_signed(&j, "slot", s->slot);
            json_text(&j, "clock", s->clock);
            json_signed(&j, "clock_skew_us", node[i].skew_us);
            json_text(&j, "layout", s->face.layout);
            json_text(&j, "store", s->face.store);
            json_text(&j, "start", s->face.start);
        }
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_begin(&j, "findings", '[');
    for (size_t k = 0; k < f->n; k++) {
        json_begin(&j, NULL, '{');
        json_text(&j, "level", level_name(f->f[k].level));
        json_text(&j, "url", node[f->f[k].node].url);
        json_text(&j, "about", f->f[k].about);
        json_text(&j, "text", f->f[k].text);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    output_json(&j, stdout);
}

/* The URL without slashes at its end. */
static int take_url(struct top_node *n, const char *text, struct tls_option *tls)
{
    char shown[SAY_TEXT_BUF], url[320];
    struct url parsed;
    size_t len = strlen(text);
    say_text(text, len, shown);
    while (len > 0 && text[len - 1] == '/')
        len--;
    if (len >= sizeof n->url)
        return say_trouble("%s: the address is too long", shown);
    memcpy(n->url, text, len);
    n->url[len] = '\0';
    snprintf(url, sizeof url, "%s/v1/node", n->url);
    const char *wrong = url_parse(url, &parsed);
    return wrong ? say_trouble("%s: %s", shown, wrong) : tls_option_open(tls, url);
}

int cmd_doctor(int argc, char **argv)
{
    static struct findings found;
    struct doctor d = { 0 };
    int operands, r = options_parse(&doctor_usage, argc, argv, &d, &operands);
    if (r >= 0)
        return r;
    size_t n = operands > 0 ? (size_t)operands : 1;
    if (n > NODES_MAX)
        return say_trouble("too many servers: at most %d", NODES_MAX);
    struct top_node *node = calloc(n, sizeof *node);
    if (!node)
        return say_trouble("out of memory");
    for (size_t i = 0; i < n && r < 0; i++)
        r = take_url(&node[i], operands > 0 ? argv[1 + i] : default_url(), &d.tls);
    if (r >= 0) {
        tls_option_done(&d.tls);
        free(node);
        return r;
    }
    ask_all(node, n, d.tls.context);
    if (findings_clash(node, n)) { /* a slot may have gone from one to the other meanwhile */
        nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL);
        ask_all(node, n, d.tls.context);
    }
    tls_option_done(&d.tls);
    findings_of(node, n, &found);
    if (d.json)
        print_json(node, n, &found);
    else
        print_text(node, n, &found);
    free(node);
    return output_finish(found.bad ? STATUS_FAILED : STATUS_OK);
}
