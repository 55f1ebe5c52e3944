/*
 * /openapi.json, OpenAPI 3.1: paths, methods and parameters come from the table of routes, so that
 * they match the server; the schemas of the answers are here. Tested in
 * tests/integration/http_api.py.
 */
#include "platform/assert.h"
#include "server/http_call.h"
#include "wire/json_write.h"

#include <ctype.h>
#include <stdio.h>

#define STRING    "{\"type\":\"string\"}"
#define INTEGER   "{\"type\":\"integer\"}"
#define BOOLEAN   "{\"type\":\"boolean\"}"
#define TIME      "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"
#define DIGITS    "{\"type\":\"string\",\"pattern\":\"^[0-9]+$\"}"
#define LIST(of)  "{\"type\":\"array\",\"items\":" of "}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define OBJECT(required, members) \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" members "}}"

#define SEQUENCE_MEMBERS                                                                \
    "\"name\":" STRING ",\"mode\":{\"enum\":[\"gapless\",\"range\"]},\"start\":" DIGITS \
    ",\"step\":" INTEGER ",\"offset\":" INTEGER ",\"max\":" DIGITS ",\"next\":" DIGITS  \
    ",\"left\":" DIGITS ",\"dated\":" REF("Dated")

#define LAYOUT_MEMBERS                                                                      \
    "\"name\":" STRING ",\"about\":" STRING ",\"layout\":" STRING ",\"epoch\":" TIME        \
    ",\"ends\":" TIME ",\"tick_us\":" INTEGER ",\"bits\":{\"type\":\"object\","             \
    "\"additionalProperties\":" INTEGER "},\"slots\":" INTEGER ",\"ids_per_tick\":" INTEGER \
    ",\"ids_per_second\":" INTEGER ",\"sorts_by_time\":" BOOLEAN ",\"signed\":" BOOLEAN     \
    ",\"decode_only\":" BOOLEAN

#define SEQUENCE_EXAMPLES                                                                  \
    "\"gapless\":{\"value\":{\"name\":\"orders\",\"mode\":\"gapless\",\"start\":100001}}," \
    "\"dated\":{\"value\":{\"name\":\"invoice\",\"dated\":{\"reset\":\"day\",\"digits\":6}}}"
#define LEASE_EXAMPLE   "5f0c3a9e7b1d4c8290ab6ef1d2c3b4a5"
#define LEASE_EXAMPLES  "\"take\":{\"value\":{\"lease\":\"" LEASE_EXAMPLE "\"}}"
#define EXTEND_EXAMPLES "\"extend\":{\"value\":{}}"
#define CHANGE_EXAMPLES                                                           \
    "\"remove\":{\"value\":{\"action\":\"remove\",\"id\":\"9c0f3d1e5a7b2468\"}}," \
    "\"lost\":{\"value\":{\"action\":\"remove\",\"force\":true,"                  \
    "\"id\":\"9c0f3d1e5a7b2468,5b81d07e2c94f36a\"}},"                             \
    "\"transfer\":{\"value\":{\"action\":\"transfer\"}}"

static const struct {
    const char *name, *text;
} schemas[] = {
    { "Minted",
      "{\"description\":\"One ID, or with n a list. IDs are strings: many readers of JSON round "
      "above 2^53.\",\"oneOf\":[" OBJECT("\"id\"", "\"id\":" STRING) "," OBJECT(
          "\"ids\"", "\"ids\":" LIST(STRING)) "]}" },
    { "Dated", OBJECT("\"reset\"", "\"reset\":{\"enum\":[\"day\",\"month\",\"year\"]},"
                                   "\"digits\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":18,"
                                   "\"default\":6}") },
    { "Sequence",
      OBJECT("\"name\",\"mode\",\"start\",\"step\",\"offset\",\"max\"", SEQUENCE_MEMBERS) },
    { "NewSequence",
      "{\"type\":\"object\",\"required\":[\"name\"],\"additionalProperties\":false,\"properties\":{"
      "\"name\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._:-]{1,64}$\"},"
      "\"mode\":{\"enum\":[\"gapless\",\"range\"],\"default\":\"gapless\"},"
      "\"start\":" REF("Number") ",\"step\":" REF("Number") ",\"offset\":" REF(
          "Number") ",\"max\":" REF("Number") ",\"dated\":" REF("Dated") "}}" },
    { "Number", "{\"description\":\"A whole number, bare or as a string of digits.\",\"oneOf\":["
                "{\"type\":\"integer\",\"minimum\":0}," DIGITS "]}" },
    { "SequenceDeleted", OBJECT("\"name\",\"state\",\"next\"",
                                "\"name\":" STRING ",\"state\":" STRING ",\"next\":" DIGITS) },
    { "Sequences",
      OBJECT("\"sequences\"", "\"sequences\":" LIST(REF("Sequence")) ",\"next\":" STRING) },
    { "Reading",
      OBJECT("\"kind\",\"text\",\"fields\"",
             "\"kind\":" STRING ",\"layout\":" STRING ",\"score\":" INTEGER ",\"text\":" STRING
             ",\"time\":" TIME ",\"number\":" DIGITS ",\"hex\":" STRING ",\"fields\":" LIST(
                 OBJECT("\"name\",\"value\"", "\"name\":" STRING ",\"value\":" STRING
                                              ",\"bit\":" INTEGER ",\"bits\":" INTEGER))) },
    { "Inspection",
      OBJECT("\"id\",\"readings\"", "\"id\":" STRING ",\"readings\":" LIST(REF("Reading"))) },
    { "Layout", OBJECT("\"layout\"", LAYOUT_MEMBERS) },
    { "Layouts", OBJECT("\"served\",\"layouts\"",
                        "\"served\":" REF("Layout") ",\"layouts\":" LIST(REF("Layout"))) },
    { "Kinds",
      OBJECT(
          "\"kinds\",\"encodings\"",
          "\"kinds\":" LIST(OBJECT(
              "\"name\"",
              "\"name\":" STRING ",\"about\":" STRING ",\"bits\":" INTEGER ",\"makes\":" BOOLEAN
              ",\"time\":" BOOLEAN ",\"sorts_by_time\":" BOOLEAN
              ",\"encodings\":" BOOLEAN)) ",\"encodings\":" LIST(OBJECT("\"name\"",
                                                                        "\"name\":" STRING
                                                                        ",\"about\":" STRING
                                                                        ",\"width\":" INTEGER
                                                                        ",\"sorts\":" BOOLEAN))) },
    { "Nodes", OBJECT("\"nodes\"",
                      "\"nodes\":" LIST(OBJECT(
                          "\"number\",\"name\",\"kind\",\"state\"",
                          "\"number\":" INTEGER ",\"name\":" STRING ",\"address\":" STRING
                          ",\"slots\":" STRING ",\"version\":" STRING ",\"kind\":" STRING
                          ",\"state\":{\"enum\":[\"up\",\"silent\",\"dead\"]},\"self\":" BOOLEAN
                          ",\"beat\":" INTEGER ",\"ttl_ms\":" INTEGER ",\"age_ms\":" INTEGER))) },
    { "Slots", OBJECT("\"slots\",\"first\",\"total\",\"free\"",
                      "\"slots\":" LIST(OBJECT(
                          "\"slot\",\"state\"",
                          "\"slot\":" INTEGER ",\"state\":{\"enum\":[\"mine\",\"held\",\"lapsed\","
                          "\"retired\",\"poisoned\",\"broken\"]},\"name\":" STRING ",\"from\":" TIME
                          ",\"until\":" TIME)) ",\"first\":" INTEGER ",\"total\":" INTEGER
                                               ",\"free\":" INTEGER) },
    { "Node",
      OBJECT(
          "\"name\",\"version\",\"ready\",\"slot\",\"window\",\"clock\"",
          "\"name\":" STRING ",\"version\":" STRING ",\"ready\":" BOOLEAN ",\"reason\":" STRING
          ",\"slot\":{\"type\":[\"integer\",\"null\"]},\"state\":" STRING
          ",\"window\":{\"type\":[\"object\",\"null\"],\"properties\":{\"from_tick\":" DIGITS
          ",\"until_tick\":" DIGITS ",\"from\":" TIME ",\"until\":" TIME "}},\"clock\":" OBJECT(
              "\"state\"",
              "\"state\":{\"enum\":[\"wait\",\"ok\",\"held\",\"suspect\"]},"
              "\"behind_ms\":" INTEGER ",\"steps_back\":" INTEGER ",\"steps_ahead\":" INTEGER
              ",\"ahead_ms\":" INTEGER ",\"ahead_reason\":{\"type\":[\"string\",\"null\"]}"
              ",\"now\":" TIME) ",\"layout\":" STRING
                                ",\"store\":" OBJECT(
                                    "\"url\"",
                                    "\"id\":{\"type\":[\"string\",\"null\"]},\"url\":" STRING
                                    ",\"errors\":" INTEGER) ",\"loops\":" INTEGER
                                                            ",\"connections\":" INTEGER
                                                            ",\"ids_per_request\":" INTEGER
                                                            ",\"listen\":{\"type\":\"object\",\"additionalProperties\":" STRING
                                                            "},\"start\":" STRING
                                                            ",\"started\":" TIME
                                                            ",\"uptime_s\":" INTEGER) },
    { "LeaseAsk",
      "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"lease\":{\"type\":"
      "\"string\",\"pattern\":\"^[0-9a-f]{32}$\"},\"last\":" REF("Number") "}}" },
    { "Lease",
      OBJECT("\"lease\",\"grant\",\"slot\",\"from\",\"until\",\"now\",\"layout\"",
             "\"lease\":" STRING ",\"grant\":" DIGITS ",\"slot\":" INTEGER ",\"from\":" DIGITS
             ",\"until\":" DIGITS ",\"now\":" DIGITS ",\"window_ms\":" INTEGER ",\"floor\":" DIGITS
             ",\"drift_ms\":" INTEGER ",\"layout\":" STRING ",\"ends\":" TIME) },
    { "LeaseReturned", OBJECT("\"returned\"", "\"returned\":" BOOLEAN) },
    { "Cluster",
      OBJECT("\"cluster\",\"state\",\"leader\",\"term\",\"members\"",
             "\"cluster\":" STRING ",\"answered_by\":" STRING ",\"state\":" STRING
             ",\"leader\":{\"type\":[\"string\",\"null\"]},\"term\":" INTEGER
             ",\"last_index\":" INTEGER ",\"commit_index\":" INTEGER ",\"applied_index\":" INTEGER
             ",\"registers\":" INTEGER ",\"registers_sum\":" STRING ",\"registers_differ\":" BOOLEAN
             ",\"snapshot_index\":" INTEGER ",\"snapshots\":" INTEGER ",\"members\":" LIST(
                 OBJECT("\"id\",\"address\",\"role\",\"leader\"",
                        "\"id\":" STRING ",\"address\":" STRING ",\"role\":"
                        "{\"enum\":[\"voter\",\"standby\"]},\"leader\":" BOOLEAN
                        ",\"index\":" INTEGER ",\"lag\":" INTEGER ",\"seen\":" BOOLEAN))) },
    { "ClusterChange",
      "{\"type\":\"object\",\"required\":[\"action\"],\"additionalProperties\":false,"
      "\"properties\":{\"action\":{\"enum\":[\"add\",\"remove\",\"promote\",\"transfer\"]},"
      "\"id\":" STRING ",\"address\":" STRING ",\"force\":" BOOLEAN "}}" },
    { "ClusterChanged", OBJECT("\"done\"", "\"done\":" STRING) },
    { "Health", OBJECT("\"status\"", "\"status\":" STRING ",\"reason\":" STRING) },
    { "Problem",
      OBJECT("\"type\",\"title\",\"status\",\"detail\"",
             "\"type\":{\"type\":\"string\",\"format\":\"uri\"},\"title\":" STRING
             ",\"status\":" INTEGER
             ",\"detail\":{\"type\":\"string\",\"description\":\"The cause and the cure.\"}") },
};

static const struct {
    const char *name, *about;
} tags[] = {
    { "IDs", "Making IDs. Every answer is fresh: no cache may keep it." },
    { "Sequences", "Ticket numbers: gapless, or in ranges; plain or with a date in front." },
    { "Leases", "Slots for clients that make Snowflake IDs in their own processes." },
    { "Knowledge", "What IDs say, which kinds and layouts there are." },
    { "Operation", "How the server is." },
};

static void write_param(struct buf *b, const char *in, const char *name, const char *about,
                        const char *schema)
{
    json_begin(b, NULL, '{');
    json_text(b, "name", name);
    json_text(b, "in", in);
    json_bool(b, "required", in[0] == 'p');
    json_text(b, "description", about);
    json_key(b, "schema");
    buf_add_str(b, schema);
    json_end(b, '}');
}

#define LIKE(example) "{\"type\":\"string\",\"examples\":[\"" example "\"]}"

static const struct path_param {
    const char *name, *about, *schema;
} path_params[] = {
    { "kind", "The kind of ID; /v1/kinds lists them.", LIKE("uuidv7") },
    { "id", "The text to read.", LIKE("777378526356570112") },
    { "lease", "The lease's name.", LIKE(LEASE_EXAMPLE) },
    { "file", "The file's name.", LIKE("words.js") },
    { "name", "The sequence's name.", LIKE("orders") },
    { NULL, NULL, NULL },
};

static void write_params(struct buf *b, const struct route *t)
{
    const char *open = strchr(t->path, '{');
    json_begin(b, "parameters", '[');
    if (open) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(open + 1, "}"), open + 1);
        const struct path_param *p = path_params;
        while (p->name && strcmp(p->name, name) != 0)
            p++;
        firn_assert(p->name, "%s has no description", name);
        write_param(b, "path", name, p->about, p->schema);
    }
    for (int i = 0; i < PARAMS_N; i++)
        if (t->params >> i & 1)
            write_param(b, "query", http_params[i].name, http_params[i].about,
                        http_params[i].schema);
    if (t->flags & ROUTE_MINTS)
        write_param(b, "header", "Idempotency-Key",
                    "A retry with the same key gets the same IDs again, for a day.",
                    "{\"type\":\"string\",\"minLength\":1,\"maxLength\":255,"
                    "\"pattern\":\"^[ -~]+$\"}");
    json_end(b, ']');
}

static void write_success(struct buf *b, const struct route *t)
{
    buf_addf(b, "\"%u\":{\"description\":\"Done.\"", t->status ? t->status : 200);
    if (t->flags & ROUTE_MINTS)
        buf_add_str(b, ",\"headers\":{\"Cache-Control\":{\"description\":\"no-store\",\"schema\":"
                       "{\"const\":\"no-store\"}},\"Idempotent-Replayed\":{\"description\":"
                       "\"The key was used before: these are its IDs.\",\"schema\":"
                       "{\"const\":\"true\"}}}");
    buf_add_str(b, ",\"content\":{");
    if (strchr(t->schema, '/'))
        buf_addf(b, "\"%s\":{\"schema\":%s}", t->schema,
                 strcmp(t->schema, "application/json") == 0 ? "{\"type\":\"object\"}" : STRING);
    else
        buf_addf(b, "\"application/json\":{\"schema\":" REF("%s") "}", t->schema);
    if (t->flags & ROUTE_MINTS)
        buf_add_str(b,
                    ",\"text/plain\":{\"schema\":{\"type\":\"string\",\"description\":"
                    "\"A line each.\"}},\"application/octet-stream\":{\"schema\":{\"description\":"
                    "\"64-bit integers, high byte first; for 64-bit kinds.\"}},"
                    "\"application/vnd.firn.runs\":{\"schema\":{\"description\":\"Three 64-bit "
                    "integers for each run of numbers: the first, the step, how many.\"}}");
    buf_add_str(b, "}}");
}

static void write_responses(struct buf *b, const struct route *t)
{
    static const char *const problem =
        ":{\"description\":\"%s\",\"content\":{\"application/problem+json\":{\"schema\":" REF(
            "Problem") "}}}";
    const struct {
        bool may;
        const char *status, *about;
    } rows[] = {
        { true, "400",
          "Something in the request is not understood; the detail says what and how it should be." },
        { t->flags & ROUTE_GUARDED, "401", "The server demands a token that it knows." },
        { t->flags & ROUTE_GUARDED, "403",
          "The token does not reach so far, or the page that asks is of another origin." },
        { t->flags & ROUTE_FINDS, "404", "There is no such kind or sequence." },
        { t->flags & ROUTE_MINTS, "406", "These IDs cannot be written in the format asked for." },
        { t->flags & (ROUTE_MINTS | ROUTE_BODY), "409",
          "The sequence has no number left, or exists with other settings." },
        { t->flags & (ROUTE_MINTS | ROUTE_BODY), "415", "The body is of another type." },
        { true, "421", "The server does not go by the name in Host." },
        { t->flags & ROUTE_MINTS, "422", "The Idempotency-Key was used for another request." },
        { t->flags & ROUTE_GUARDED, "429", "Too fast; Retry-After says when to come back." },
        { t->flags & ROUTE_READY, "503", "Not now; Retry-After says when to try again." },
        { true, "default", "Any other problem." },
    };
    buf_add_str(b, ",\"responses\":{");
    write_success(b, t);
    if (t->status == 201)
        buf_add_str(b,
                    ",\"200\":{\"description\":\"It exists with the same settings.\",\"content\":{"
                    "\"application/json\":{\"schema\":" REF("Sequence") "}}}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].may)
            continue;
        buf_addf(b, ",\"%s\"", rows[i].status);
        buf_addf(b, problem, rows[i].about);
    }
    json_end(b, '}');
}

static void write_operation(struct buf *b, const struct route *t, const char *method)
{
    bool post = method[0] == 'p';
    json_begin(b, method, '{');
    json_key(b, "operationId");
    buf_addf(b, "\"%s%s\"", t->id, post && (t->allow & ALLOW_GET) ? "Post" : "");
    json_text(b, "summary", t->summary);
    json_key(b, "tags");
    buf_addf(b, "[\"%s\"]", t->tag);
    if (t->flags & ROUTE_GUARDED) /* whether a token is needed is a setting: {} is "without" */
        buf_add_str(b, ",\"security\":[{},{\"token\":[]}]");
    write_params(b, t);
    if (t->flags & ROUTE_BODY)
        buf_addf(b,
                 ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                 "\"schema\":{\"$ref\":\"#/components/schemas/%s\"},\"examples\":{%s}}}}",
                 t->run == route_sequence_create  ? "NewSequence"
                 : t->run == route_cluster_change ? "ClusterChange"
                                                  : "LeaseAsk",
                 t->run == route_sequence_create  ? SEQUENCE_EXAMPLES
                 : t->run == route_cluster_change ? CHANGE_EXAMPLES
                 : t->run == route_lease_extend   ? EXTEND_EXAMPLES
                                                  : LEASE_EXAMPLES);
    write_responses(b, t);
    json_end(b, '}');
}

static void write_paths(struct buf *b)
{
    size_t n;
    const struct route *all = http_routes(&n);
    buf_add_str(b, ",\"paths\":{");
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (strcmp(all[first].path, all[i].path) != 0)
            first++;
        if (first < i)
            continue; /* written with the first of its path */
        json_begin(b, all[i].path, '{');
        for (size_t k = i; k < n; k++) {
            if (strcmp(all[k].path, all[i].path) != 0)
                continue;
            if (all[k].allow & ALLOW_GET)
                write_operation(b, &all[k], "get");
            if (all[k].allow & ALLOW_POST)
                write_operation(b, &all[k], "post");
            if (all[k].allow & ALLOW_DELETE)
                write_operation(b, &all[k], "delete");
        }
        json_end(b, '}');
    }
    json_end(b, '}');
}

void route_openapi(struct call *c)
{
    struct buf *b = call_json(c, 200, "Cache-Control: no-cache\r\n");
    json_text(b, "openapi", "3.1.0");
    buf_add_str(b, ",\"info\":{\"title\":\"firnd\",\"version\":\"" FIRN_VERSION
                   "\",\"summary\":\"Unique IDs: Snowflakes, tickets and every common kind\","
                   "\"description\":\"Every port serves everything; they differ in what /generate "
                   "gives. HEAD works wherever GET does.\",\"license\":{\"name\":\"MIT\","
                   "\"identifier\":\"MIT\"}},\"servers\":[{\"url\":\"/\"}],\"security\":[],"
                   "\"tags\":[");
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        json_begin(b, NULL, '{');
        json_text(b, "name", tags[i].name);
        json_text(b, "description", tags[i].about);
        json_end(b, '}');
    }
    json_end(b, ']');
    write_paths(b);
    buf_add_str(b, ",\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":"
                   "\"bearer\",\"description\":\"Where auth.tokens are configured.\"}},"
                   "\"schemas\":{");
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        json_key(b, schemas[i].name);
        buf_add_str(b, schemas[i].text);
    }
    buf_add_str(b, "}}");
    call_json_end(c);
}
