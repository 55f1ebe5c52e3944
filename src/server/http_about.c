/* What the server knows and how it is: inspection, layouts, kinds, the node, health, the start page. */
#include "server/http_call.h"
#include "wire/json_write.h"
#include "server/web.h"

#include <stdio.h>
#include <time.h>

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#define NO_STORE "Cache-Control: no-store\r\n"

/* --- inspect --- */

enum { READINGS_MAX = 24 };

static void write_reading(struct buf *b, const struct firn_reading *r, bool scored)
{
    json_add_comma(b);
    buf_add(b, "{", 1);
    json_add_member(b, "kind", r->kind->name);
    if (r->layout[0])
        json_add_member(b, "layout", r->layout);
    if (scored)
        json_add_number(b, "score", (uint64_t)r->score);
    json_add_member(b, "text", r->text);
    if (r->has_time)
        json_add_time(b, "time", r->unix_us);
    if (r->kind->bits == 64)
        json_add_big(b, "number", r->number);
    if (r->bytes_len) {
        json_add_name(b, "hex");
        buf_add(b, "\"", 1);
        for (uint32_t i = 0; i < r->bytes_len; i++)
            buf_addf(b, "%02x", r->bytes[i]);
        buf_add(b, "\"", 1);
    }
    json_add_name(b, "fields");
    buf_add(b, "[", 1);
    for (uint32_t i = 0; i < r->fields_n; i++) {
        const struct firn_read_field *f = &r->field[i];
        json_add_comma(b);
        buf_add(b, "{", 1);
        json_add_member(b, "name", f->name);
        json_add_member(b, "value", f->value);
        if (f->bits) {
            json_add_number(b, "bit", f->bit);
            json_add_number(b, "bits", f->bits);
        }
        buf_add(b, "}", 1);
    }
    buf_add_str(b, "]}");
}

static void reply_readings(struct call *c, const struct firn_reading *r, size_t n, bool scored)
{
    struct buf *b = call_json(c, 200, NO_STORE);
    json_add_name(b, "id");
    json_add_string(b, c->arg, c->arg_len);
    json_add_name(b, "readings");
    buf_add(b, "[", 1);
    for (size_t i = 0; i < n; i++)
        write_reading(b, &r[i], scored);
    buf_add(b, "]", 1);
    call_json_end(c);
}

/* False: the problem is answered. */
static bool read_layout(struct call *c, struct firn_layout *out)
{
    struct slice v = c->q.value[PARAM_LAYOUT];
    struct firn_diag d = { 0, "" };
    if (!v.p || (v.len == 6 && memcmp(v.p, "served", 6) == 0)) {
        *out = c->ctx->app->plan.layout[LEASED_SNOWFLAKE];
        return true;
    }
    if (firn_layout_parse(v.p, v.len, 0, out, &d) == 0)
        return true;
    call_fail(c, PROBLEM_PARAMETER, "layout: %s; /v1/layouts lists those with a name", d.text);
    return false;
}

static void inspect_as(struct call *c, const struct firn_kind *kind)
{
    struct firn_reading reading;
    struct firn_diag d = { 0, "" };
    struct firn_layout l;
    if (!read_layout(c, &l))
        return;
    int r = firn_read(kind, c->arg, c->arg_len, &l, &reading, &d);
    if (r)
        call_fail(c, PROBLEM_PARAMETER, "this is no %s: %s; without kind= all readings are tried",
                  kind->name, d.text[0] ? d.text : firn_error_message(r));
    else
        reply_readings(c, &reading, 1, false);
}

void route_inspect(struct call *c)
{
    struct slice kind = c->q.value[PARAM_KIND];
    struct firn_reading readings[READINGS_MAX];
    size_t n;
    if (kind.p) {
        const struct firn_kind *k = firn_kind_find(kind.p, kind.len);
        if (k)
            inspect_as(c, k);
        else
            call_fail(c, PROBLEM_KIND, "there is no kind '%.*s'; /v1/kinds lists all",
                      (int)(kind.len < 40 ? kind.len : 40), kind.p);
        return;
    }
    if (c->q.value[PARAM_LAYOUT].p) {
        inspect_as(c, c->ctx->snowflake_kind);
        return;
    }
    if (firn_detect(c->arg, c->arg_len, now_us() / 1000, readings, READINGS_MAX, &n) != 0)
        n = 0;
    reply_readings(c, readings, n, true);
}

/* --- layouts and kinds --- */

static void write_layout(struct buf *b, const struct firn_layout *l)
{
    char text[FIRN_LAYOUT_TEXT_BUF];
    firn_layout_format(l, text);
    uint64_t per_tick = UINT64_C(1) << l->field[FIRN_FIELD_SEQ].width;
    json_add_member(b, "layout", text);
    json_add_time(b, "epoch", l->epoch_ms * 1000);
    json_add_time(b, "ends", firn_layout_end_us(l));
    json_add_number(b, "tick_us", l->tick_us);
    json_add_name(b, "bits");
    buf_add(b, "{", 1);
    for (int f = 0; f < FIRN_FIELDS; f++)
        if (l->field[f].width)
            json_add_number(b, firn_field_name((enum firn_field)f), l->field[f].width);
    buf_add(b, "}", 1);
    json_add_number(b, "slots", firn_layout_slots(l));
    json_add_number(b, "ids_per_tick", per_tick);
    json_add_number(b, "ids_per_second", per_tick * 1000000 / l->tick_us);
    json_add_bool(b, "sorts_by_time", firn_layout_sortable(l));
    json_add_bool(b, "signed", !(l->flags & FIRN_LAYOUT_UNSIGNED));
    json_add_bool(b, "decode_only", l->flags & FIRN_LAYOUT_DECODE_ONLY);
}

void route_layouts(struct call *c)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    struct buf *b = call_json(c, 200, "");
    json_add_name(b, "served");
    buf_add(b, "{", 1);
    write_layout(b, &c->ctx->app->plan.layout[LEASED_SNOWFLAKE]);
    buf_add_str(b, "},\"layouts\":[");
    for (size_t i = 0; i < n; i++) {
        struct firn_layout l;
        if (firn_layout_parse(p[i].text, strlen(p[i].text), 0, &l, NULL) != 0)
            continue;
        json_add_comma(b);
        buf_add(b, "{", 1);
        json_add_member(b, "name", p[i].name);
        json_add_member(b, "about", p[i].summary);
        write_layout(b, &l);
        buf_add(b, "}", 1);
    }
    buf_add(b, "]", 1);
    call_json_end(c);
}

void route_kinds(struct call *c)
{
    size_t n;
    const struct firn_kind *kind = firn_kinds(&n);
    struct buf *b = call_json(c, 200, "");
    json_add_name(b, "kinds");
    buf_add(b, "[", 1);
    for (size_t i = 0; i < n; i++) {
        json_add_comma(b);
        buf_add(b, "{", 1);
        json_add_member(b, "name", kind[i].name);
        json_add_member(b, "about", kind[i].about);
        json_add_number(b, "bits", kind[i].bits);
        json_add_bool(b, "makes", kind[i].flags & FIRN_KIND_MAKES);
        json_add_bool(b, "time", kind[i].flags & FIRN_KIND_TIME);
        json_add_bool(b, "sorts_by_time", kind[i].flags & FIRN_KIND_SORTS);
        json_add_bool(b, "encodings", kind[i].flags & FIRN_KIND_NUMBER);
        buf_add(b, "}", 1);
    }
    const struct firn_codec *codec = firn_codec_list(&n);
    buf_add_str(b, "],\"encodings\":[");
    for (size_t i = 0; i < n; i++) {
        json_add_comma(b);
        buf_add(b, "{", 1);
        json_add_member(b, "name", codec[i].name);
        json_add_member(b, "about", codec[i].about);
        json_add_number(b, "width", codec[i].width64);
        json_add_bool(b, "sorts", codec[i].ordered);
        buf_add(b, "}", 1);
    }
    buf_add(b, "]", 1);
    call_json_end(c);
}

/* --- the node --- */

static void write_window(struct buf *b, const struct app *app, const struct slot_grant *g)
{
    json_add_name(b, "window");
    if (g->gen == 0) {
        buf_add_str(b, "null");
        return;
    }
    buf_add(b, "{", 1);
    json_add_big(b, "from_tick", g->from);
    json_add_big(b, "until_tick", g->until);
    json_add_time(b, "from", firn_layout_unix_us(&app->plan.lease, g->from));
    json_add_time(b, "until", firn_layout_unix_us(&app->plan.lease, g->until));
    buf_add(b, "}", 1);
}

void route_node(struct call *c)
{
    static const char *const clocks[] = {
        [CLOCK_WAIT] = "wait", [CLOCK_OK] = "ok", [CLOCK_HELD] = "held", [CLOCK_SUSPECT] = "suspect"
    };
    static const char *const ports[PORTS] = { "home", "snowflake", "ticket" };
    struct app *app = c->ctx->app;
    struct lease_view v;
    const char *why;
    bool ready = app_ready(app, &why);
    int64_t now = now_us(), started = (int64_t)app->started_ms * 1000;
    char layout[FIRN_LAYOUT_TEXT_BUF];
    board_copy(&app->board, &v);
    firn_layout_format(&app->plan.layout[LEASED_SNOWFLAKE], layout);

    struct buf *b = call_json(c, 200, NO_STORE);
    json_add_member(b, "name", app->name);
    json_add_member(b, "version", FIRN_VERSION);
    json_add_bool(b, "ready", ready);
    json_add_member(b, "reason", why);
    json_add_name(b, "slot");
    if (v.grant.gen)
        buf_add_u64(b, v.grant.slot);
    else
        buf_add_str(b, "null");
    json_add_member(b, "state", slot_state_name(v.state));
    write_window(b, app, &v.grant);
    json_add_name(b, "clock");
    buf_add(b, "{", 1);
    json_add_member(b, "state", clocks[v.clock]);
    json_add_name(b, "behind_ms");
    buf_add_i64(b, v.behind_ns / 1000000);
    json_add_time(b, "now", now);
    buf_add(b, "}", 1);
    json_add_member(b, "layout", layout);
    json_add_name(b, "store");
    buf_add(b, "{", 1);
    json_add_member(b, "url", app->store_text);
    json_add_number(b, "errors", v.store_errors);
    buf_add(b, "}", 1);
    json_add_number(b, "loops", app->loops);
    json_add_number(b, "lanes", app->plan.lanes);
    json_add_number(b, "connections", atomic_load(&app->conns_open));
    json_add_number(b, "ids_per_request", c->ctx->numbers_max);
    json_add_name(b, "listen");
    buf_add(b, "{", 1);
    for (int i = 0; i < PORTS; i++)
        if (app->address[i][0])
            json_add_member(b, ports[i], app->address[i]);
    buf_add(b, "}", 1);
    json_add_time(b, "started", started);
    json_add_number(b, "uptime_s", now > started ? (uint64_t)(now - started) / 1000000 : 0);
    call_json_end(c);
}

/* --- health --- */

void route_healthz(struct call *c)
{
    struct buf *b = call_json(c, 200, NO_STORE);
    json_add_member(b, "status", "ok");
    call_json_end(c);
}

void route_readyz(struct call *c)
{
    const char *why;
    if (!app_ready(c->ctx->app, &why)) {
        call_fail(c, PROBLEM_NOT_READY, "%s", why);
        return;
    }
    struct buf *b = call_json(c, 200, NO_STORE);
    json_add_member(b, "status", "ready");
    json_add_member(b, "reason", why);
    call_json_end(c);
}

void route_metrics(struct call *c)
{
    reply_begin(c->r, 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" NO_STORE);
    metrics_write(c->ctx->app, c->r->out);
    reply_end(c->r);
}

/* --- the start page --- */

void route_home(struct call *c)
{
    reply_http(c->r, 200,
               "Content-Type: text/html; charset=utf-8\r\n"
               "Cache-Control: no-cache\r\n"
               "X-Content-Type-Options: nosniff\r\n"
               "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
               "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'\r\n",
               web_index_html, web_index_html_len);
}
