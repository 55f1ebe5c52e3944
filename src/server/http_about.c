/* HTTP: inspection, layouts, kinds, the node, health, the start page, the lab. Tested in
 * tests/unit/server/http.c. */
#include "server/http_call.h"
#include "daemon/about.h"
#include "daemon/metrics.h"
#include "server/web.h"

#include <stdio.h>
#include <time.h>

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* --- inspect --- */

enum { READINGS_MAX = 24 };

static void write_reading(struct buf *b, const struct firn_reading *r, bool scored)
{
    json_begin(b, NULL, '{');
    json_text(b, "kind", r->kind->name);
    if (r->layout[0])
        json_text(b, "layout", r->layout);
    if (scored)
        json_count(b, "score", (uint64_t)r->score);
    json_text(b, "text", r->text);
    if (r->has_time)
        json_time(b, "time", r->unix_us);
    if (r->kind->bits == 64)
        json_id(b, "number", r->number);
    if (r->bytes_len) {
        json_key(b, "hex");
        buf_add(b, "\"", 1);
        for (uint32_t i = 0; i < r->bytes_len; i++)
            buf_addf(b, "%02x", r->bytes[i]);
        buf_add(b, "\"", 1);
    }
    json_begin(b, "fields", '[');
    for (uint32_t i = 0; i < r->fields_n; i++) {
        const struct firn_read_field *f = &r->field[i];
        json_begin(b, NULL, '{');
        json_text(b, "name", f->name);
        json_text(b, "value", f->value);
        if (f->bits) {
            json_count(b, "bit", f->bit);
            json_count(b, "bits", f->bits);
        }
        json_end(b, '}');
    }
    buf_add_str(b, "]}");
}

static void reply_readings(struct call *c, const struct firn_reading *r, size_t n, bool scored)
{
    struct buf *b = call_json(c, 200, ABOUT_NO_STORE);
    json_bytes(b, "id", c->arg, c->arg_len);
    json_begin(b, "readings", '[');
    for (size_t i = 0; i < n; i++)
        write_reading(b, &r[i], scored);
    json_end(b, ']');
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
    json_text(b, "layout", text);
    json_time(b, "epoch", l->epoch_ms * 1000);
    json_time(b, "ends", firn_layout_end_us(l));
    json_count(b, "tick_us", l->tick_us);
    json_begin(b, "bits", '{');
    for (int f = 0; f < FIRN_FIELDS; f++)
        if (l->field[f].width)
            json_count(b, firn_field_name((enum firn_field)f), l->field[f].width);
    json_end(b, '}');
    json_count(b, "slots", firn_layout_slots(l));
    json_count(b, "ids_per_tick", per_tick);
    json_count(b, "ids_per_second", per_tick * 1000000 / l->tick_us);
    json_bool(b, "sorts_by_time", firn_layout_sortable(l));
    json_bool(b, "signed", !(l->flags & FIRN_LAYOUT_UNSIGNED));
    json_bool(b, "decode_only", l->flags & FIRN_LAYOUT_DECODE_ONLY);
}

void route_layouts(struct call *c)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    struct buf *b = call_json(c, 200, "");
    json_begin(b, "served", '{');
    write_layout(b, &c->ctx->app->plan.layout[LEASED_SNOWFLAKE]);
    buf_add_str(b, "},\"layouts\":[");
    for (size_t i = 0; i < n; i++) {
        struct firn_layout l;
        if (firn_layout_parse(p[i].text, strlen(p[i].text), 0, &l, NULL) != 0)
            continue;
        json_begin(b, NULL, '{');
        json_text(b, "name", p[i].name);
        json_text(b, "about", p[i].summary);
        write_layout(b, &l);
        json_end(b, '}');
    }
    json_end(b, ']');
    call_json_end(c);
}

void route_kinds(struct call *c)
{
    size_t n;
    const struct firn_kind *kind = firn_kinds(&n);
    struct buf *b = call_json(c, 200, "");
    json_begin(b, "kinds", '[');
    for (size_t i = 0; i < n; i++) {
        json_begin(b, NULL, '{');
        json_text(b, "name", kind[i].name);
        json_text(b, "about", kind[i].about);
        json_count(b, "bits", kind[i].bits);
        json_bool(b, "makes", kind[i].flags & FIRN_KIND_MAKES);
        json_bool(b, "time", kind[i].flags & FIRN_KIND_TIME);
        json_bool(b, "sorts_by_time", kind[i].flags & FIRN_KIND_SORTS);
        json_bool(b, "encodings", kind[i].flags & FIRN_KIND_NUMBER);
        json_end(b, '}');
    }
    const struct firn_codec *codec = firn_codec_list(&n);
    buf_add_str(b, "],\"encodings\":[");
    for (size_t i = 0; i < n; i++) {
        json_begin(b, NULL, '{');
        json_text(b, "name", codec[i].name);
        json_text(b, "about", codec[i].about);
        json_count(b, "width", codec[i].width64);
        json_bool(b, "sorts", codec[i].ordered);
        json_end(b, '}');
    }
    json_end(b, ']');
    call_json_end(c);
}

/* --- the node --- */

static void write_window(struct buf *b, const struct app *app, const struct slot_grant *g)
{
    json_key(b, "window");
    if (g->gen == 0) {
        buf_add_str(b, "null");
        return;
    }
    buf_add(b, "{", 1);
    json_id(b, "from_tick", g->from);
    json_id(b, "until_tick", g->until);
    json_time(b, "from", firn_layout_unix_us(&app->plan.lease, g->from));
    json_time(b, "until", firn_layout_unix_us(&app->plan.lease, g->until));
    json_end(b, '}');
}

/* How far the stamp of the next Snowflake ID is ahead of the clock, and why. */
static void write_ahead(struct buf *b, struct app *app, const struct lease_view *v)
{
    const struct firn_clock *clock = numbers_clock(app->numbers);
    uint64_t now = firn_layout_ticks(&app->plan.lease, (int64_t)(clock->fine_ns(clock) / 1000));
    uint64_t last = atomic_load_explicit(numbers_last(app->numbers), memory_order_relaxed);
    uint64_t next = last > v->grant.from ? last : v->grant.from;
    bool ahead = v->grant.gen && next > now;
    json_count(b, "ahead_ms", ahead ? next - now : 0);
    json_text(b, "ahead_reason",
              !ahead          ? NULL
              : v->floor_tick ? "a new or fenced store begins above all that a lost one may have "
                                "stamped; the clock catches up"
                              : "more IDs were drawn than the layout has for the time that passed, "
                                "or the process was killed and began above its last window");
}

/* An answer about the node: its head says which one it is. */
static struct buf *call_about(struct call *c, const struct node_face *f)
{
    char fields[sizeof ABOUT_NO_STORE + FACE_LINE_BUF], line[FACE_LINE_BUF];
    snprintf(fields, sizeof fields, ABOUT_NO_STORE "%s", face_line(f, line));
    return call_json(c, 200, fields);
}

void route_node(struct call *c)
{
    static const char *const ports[PORTS] = { "home", "snowflake", "ticket" };
    struct app *app = c->ctx->app;
    struct lease_view v;
    const char *why;
    bool ready = app_ready(app, &why);
    int64_t now = now_us(), started = (int64_t)app->started_ms * 1000;
    struct node_face face;
    board_copy(&app->board, &v);
    app_face(app, &face);

    struct buf *b = call_about(c, &face);
    json_text(b, "name", app->name);
    json_text(b, "version", FIRN_VERSION);
    json_bool(b, "ready", ready);
    json_text(b, "reason", why);
    json_key(b, "slot");
    if (v.grant.gen)
        buf_add_u64(b, v.grant.slot);
    else
        buf_add_str(b, "null");
    json_text(b, "state", slot_state_name(v.state));
    write_window(b, app, &v.grant);
    json_begin(b, "clock", '{');
    json_text(b, "state", clock_state_name(v.clock));
    json_key(b, "behind_ms");
    buf_add_i64(b, v.behind_ns / 1000000);
    json_count(b, "steps_back", v.steps.back);
    json_count(b, "steps_ahead", v.steps.ahead);
    write_ahead(b, app, &v);
    json_time(b, "now", now);
    json_end(b, '}');
    json_text(b, "layout", face.layout);
    json_begin(b, "store", '{');
    json_text(b, "id", face.store[0] ? face.store : NULL);
    json_text(b, "url", app->store_text);
    json_count(b, "errors", v.store_errors);
    json_end(b, '}');
    json_count(b, "loops", app->loops);
    json_count(b, "connections", atomic_load(&app->places.open));
    json_count(b, "ids_per_request", c->ctx->numbers_max);
    json_begin(b, "listen", '{');
    for (int i = 0; i < PORTS; i++)
        if (app->address[i][0])
            json_text(b, ports[i], app->address[i]);
    json_end(b, '}');
    json_text(b, "start", face.start);
    json_time(b, "started", started);
    json_count(b, "uptime_s", now > started ? (uint64_t)(now - started) / 1000000 : 0);
    call_json_end(c);
}

/* --- health --- */

void route_healthz(struct call *c)
{
    struct node_face face;
    app_face(c->ctx->app, &face);
    struct buf *b = call_about(c, &face);
    about_healthy(b);
    call_json_end(c);
}

void route_readyz(struct call *c)
{
    const char *why;
    if (!app_ready(c->ctx->app, &why)) {
        call_fail(c, PROBLEM_NOT_READY, "%s", why);
        return;
    }
    struct node_face face;
    app_face(c->ctx->app, &face);
    struct buf *b = call_about(c, &face);
    about_ready(b, why);
    call_json_end(c);
}

void route_metrics(struct call *c)
{
    struct metrics m = { c->r->out, http_names_type(c->req->accept, ABOUT_OPENMETRICS_TYPE) };
    reply_begin(c->r, 200, m.open ? ABOUT_OPENMETRICS_FIELDS : ABOUT_METRICS_FIELDS);
    metrics_write(c->ctx->app, &m);
    reply_end(c->r);
}

/* --- the start page --- */

void route_home(struct call *c)
{
    reply_http(c->r, 200, ABOUT_PAGE_FIELDS, web_index_html, web_index_html_len);
}

void route_lab(struct call *c)
{
    reply_http(c->r, 200, ABOUT_PAGE_FIELDS, web_lab_html, web_lab_html_len);
}

/* Two megabytes of JSON, and the documentation, stored by gzip alone: every browser takes it; curl
 * needs --compressed. */
#define LAB_FIELDS "Content-Type: application/json\r\nContent-Encoding: gzip\r\n" ABOUT_CACHED
#define DOC_FIELDS "Content-Encoding: gzip\r\n" ABOUT_TEXT_FIELDS

/* The pages' own files, as their policy allows no script or style inside them; and the
 * documentation that the dashboard shows. */
void route_web(struct call *c)
{
    static const struct {
        const char *name, *fields;
        const unsigned char *p;
        const size_t *len;
    } files[] = {
        { "dashboard.css", ABOUT_STYLE_FIELDS, web_dashboard_css, &web_dashboard_css_len },
        { "lab.css", ABOUT_STYLE_FIELDS, web_lab_css, &web_lab_css_len },
        { "lab.json", LAB_FIELDS, web_lab_json_gz, &web_lab_json_gz_len },
#define X(name) { #name ".js", ABOUT_SCRIPT_FIELDS, web_##name##_js, &web_##name##_js_len },
        WEB_SCRIPTS(X)
#undef X
#define X(name) { #name ".md", DOC_FIELDS, web_##name##_md, &web_##name##_md_len },
            WEB_DOCS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (slice_is((struct slice){ c->arg, c->arg_len }, files[i].name)) {
            reply_http(c->r, 200, files[i].fields, files[i].p, *files[i].len);
            return;
        }
    call_fail(c, PROBLEM_ROUTE, "no page has a file of this name: open / or /lab");
}
