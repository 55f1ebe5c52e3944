/* Every route without a socket: what is asked, what comes back. */
#include "http_world.h"
#include "server/http_call.h"
#include "t.h"

static const char *ask(const char *method, const char *target, const char *more, const char *body,
                       enum port port)
{
    static char text[16384];
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, target, more);
    if (body[0])
        n += snprintf(text + n, sizeof text - (size_t)n, "Content-Length: %zu\r\n", strlen(body));
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n%s", body);
    T_OK(world_ask(text, (size_t)n, port), "%s %s", method, target);
    return world.answer;
}

static const char *get(const char *target)
{
    return ask("GET", target, "", "", PORT_HOME);
}

static int status_of(const char *answer)
{
    return answer[9] * 100 + answer[10] * 10 + answer[11] - '0' * 111;
}

static const char *body_of(const char *answer)
{
    return strstr(answer, "\r\n\r\n") + 4;
}

/* Content-Length tells the truth. */
static void check_length(const char *answer)
{
    const char *l = strstr(answer, "Content-Length: ");
    T_OK(l);
    const char *body = body_of(answer);
    T_EQ(strtoull(l + 16, NULL, 10), world.answer_len - (size_t)(body - answer));
}

T_TEST(routes_match)
{
    static const struct {
        enum http_method m;
        const char *path;
        int port;
        const char *id; /* NULL: none */
        const char *arg;
        unsigned allow;
    } rows[] = {
        { METHOD_GET, "/generate", PORT_TICKET, "generate", "", 3 },
        { METHOD_HEAD, "/generate", PORT_HOME, "generate", "", 3 },
        { METHOD_POST, "/generate", PORT_HOME, "generate", "", 3 },
        { METHOD_PUT, "/generate", PORT_HOME, NULL, "", 3 },
        { METHOD_GET, "/generate/", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/generatex", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/Generate", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/v1/ids/ulid", PORT_HOME, "mint", "ulid", 3 },
        { METHOD_GET, "/v1/ids/", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/v1/ids", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/v1/ids/a/b", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/v1/ids/a%2Fb", PORT_HOME, "mint", "a%2Fb", 3 },
        { METHOD_GET, "/v1/sequences", PORT_HOME, "listSequences", "", 1 },
        { METHOD_POST, "/v1/sequences", PORT_HOME, "createSequence", "", 3 },
        { METHOD_DELETE, "/v1/sequences", PORT_HOME, NULL, "", 3 },
        { METHOD_GET, "/v1/sequences/x", PORT_HOME, "describeSequence", "x", 5 },
        { METHOD_DELETE, "/v1/sequences/x", PORT_HOME, "deleteSequence", "x", 5 },
        { METHOD_POST, "/v1/sequences/x", PORT_HOME, NULL, "", 5 },
        { METHOD_POST, "/v1/sequences/x/next", PORT_HOME, "takeTicket", "x", 3 },
        { METHOD_GET, "/v1/sequences//next", PORT_HOME, NULL, "", 0 },
        { METHOD_GET, "/", PORT_HOME, "home", "", 1 },
        { METHOD_GET, "/", PORT_TICKET, NULL, "", 0 },
        { METHOD_OPTIONS, "*", PORT_HOME, NULL, "", 0 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct slice arg = { "", 0 };
        unsigned allow;
        const struct route *t = http_route_find(
            rows[i].m, (struct slice){ rows[i].path, strlen(rows[i].path) }, rows[i].port, &arg,
            &allow);
        T_EQ(t != NULL, rows[i].id != NULL, "%s", rows[i].path);
        if (!t) {
            T_EQ(allow, rows[i].allow, "%s", rows[i].path);
            continue;
        }
        T_STR(t->id, rows[i].id);
        T_EQ(arg.len, strlen(rows[i].arg), "%s", rows[i].path);
        T_OK(memcmp(arg.p ? arg.p : "", rows[i].arg, arg.len) == 0);
    }
}

T_TEST(suggestions)
{
    static const char *const rows[][2] = {
        { "/genrate", "/generate" },
        { "/Generate", "/generate" },
        { "/generate/", "/generate" },
        { "/v1/id/ulid", "/v1/ids/ulid" },
        { "/v1/sequence", "/v1/sequences" },
        { "/v1/sequences/orders/nxt", "/v1/sequences/orders/next" },
        { "/health", "/healthz" },
        { "/metric", "/metrics" },
        { "/v1/inspct/123", "/v1/inspect/123" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        char near[SUGGEST_BUF];
        http_route_suggest((struct slice){ rows[i][0], strlen(rows[i][0]) }, near);
        T_STR(near, rows[i][1], "for %s", rows[i][0]);
    }
}

#define JSON "Content-Type: application/json\r\n"

T_TEST(statuses_and_words)
{
    static const struct {
        const char *method, *target, *more, *body;
        int status;
        const char *word; /* in the answer */
    } rows[] = {
        { "GET", "/generate", "", "", 200, "{\"id\":\"" },
        { "POST", "/generate", "", "", 200, "{\"id\":\"" },
        { "GET", "/generate?n=1", "", "", 200, "{\"ids\":[\"" },
        { "GET", "/generate?", "", "", 200, "{\"id\":\"" },
        { "POST", "/generate", "Content-Type: application/x-www-form-urlencoded\r\n", "n=2", 200,
          "{\"ids\":[\"" },
        { "POST", "/generate", "Content-Type: text/xml\r\n", "<n/>", 415, "in the query" },
        { "GET", "/generate?n=0", "", "", 400, "n must be from 1 to 100000" },
        { "GET", "/generate?n=100001", "", "", 400, "n may be at most 100000" },
        { "GET", "/generate?n=99999999999999999999999", "", "", 400, "n may be at most 100000" },
        { "GET", "/generate?n=x", "", "", 400, "digits only" },
        { "GET", "/generate?n=", "", "", 400, "digits only" },
        { "GET", "/generate?n", "", "", 400, "digits only" },
        { "GET", "/generate?n=1&n=2", "", "", 400, "twice" },
        { "GET", "/generate?n=%zz", "", "", 400, "percent-encoded" },
        { "GET", "/generate?kin=ulid", "", "", 400, "did you mean kind?" },
        { "GET", "/generate?wobble=1", "", "", 400, "takes n, kind" },
        { "GET", "/generate?kind=ulid", "", "", 200, "{\"id\":\"01" },
        { "GET", "/generate?kind=ticket", "", "", 200, "{\"id\":\"1000" },
        { "GET", "/generate?seq=default", "", "", 200, "{\"id\":\"1000" },
        { "GET", "/generate?seq=slow", "", "", 200, "{\"id\":\"41\"}" },
        { "GET", "/generate?seq=slow&n=3", "", "", 200, "{\"ids\":[\"41\",\"42\",\"43\"]}" },
        { "GET", "/generate?seq=none", "", "", 404, "no-such-sequence" },
        { "GET", "/generate?seq=a%20b", "", "", 400, "A-Z a-z 0-9" },
        { "GET", "/generate?seq=slow&kind=ulid", "", "", 400, "seq means nothing for kind ulid" },
        { "GET", "/generate?shard=1", "", "", 400, "no shard field" },
        { "GET", "/generate?encoding=base62", "", "", 200, "{\"id\":\"" },
        { "GET", "/generate?encoding=base26", "", "", 400, "did you mean base" },
        { "GET", "/generate?prefix=ord", "", "", 200, "{\"id\":\"ord_" },
        { "GET", "/generate?prefix=ORD", "", "", 400, "prefix" },
        { "GET", "/generate?length=5", "", "", 400, "length means nothing" },
        { "GET", "/v1/ids/nanoid?length=7", "", "", 200, "{\"id\":\"" },
        { "GET", "/v1/ids/nanoid?length=0", "", "", 400, "length must be from 1 to 255" },
        { "GET", "/v1/ids/nanoid?length=255&n=100000", "", "", 400, "ask for n=" },
        { "GET", "/v1/ids/uuidv5?namespace=dns&name=example.com", "", "", 200,
          "cfbff0d1-9375-5685-968c-48ce8b15ae17" },
        { "GET", "/v1/ids/uuidv5", "", "", 400, "namespace and a name" },
        { "GET", "/v1/ids/uuidv5?namespace=dns&name=a&n=2", "", "", 400, "leave n out" },
        { "GET", "/v1/ids/typeid?prefix=user", "", "", 200, "{\"id\":\"user_" },
        { "GET", "/v1/ids/typeid?prefix=User", "", "", 400, "typeid" },
        { "GET", "/v1/ids/tsid", "", "", 200, "{\"id\":\"0" },
        { "GET", "/v1/ids/tsid?encoding=hex", "", "", 400, "encoding means nothing" },
        { "GET", "/v1/ids/ulidd", "", "", 404, "did you mean ulid" },
        { "GET", "/v1/ids/stamp17", "", "", 404, "can be read" },
        { "GET", "/v1/ids/dated", "", "", 400, "POST /v1/sequences" },
        { "GET", "/v1/ids/dated?seq=dated", "", "", 200, "{\"id\":\"20261116-000041\"}" },
        { "GET", "/v1/sequences/dated/next?n=2", "", "", 200,
          "{\"ids\":[\"20261116-000041\",\"20261116-000042\"]}" },
        { "GET", "/v1/sequences/dated/next?prefix=inv", "", "", 200, "inv_20261116-000041" },
        { "GET", "/v1/sequences/dated/next?encoding=hex", "", "", 406, "is dated" },
        { "GET", "/v1/sequences/slow/next?encoding=hex", "", "", 200, "0000000000000029" },
        { "GET", "/v1/sequences/short/next?n=9", "", "", 200, "{\"ids\":[\"41\",\"42\",\"43\"]}" },
        { "GET", "/v1/sequences/broken/next", "", "", 503, "Retry-After: 1" },
        { "GET", "/v1/sequences/broken", "", "", 503, "no number was lost" },
        { "GET", "/v1/sequences/slow", "", "", 200, "\"mode\":\"gapless\"" },
        { "GET", "/v1/sequences/none", "", "", 404, "no-such-sequence" },
        { "GET", "/v1/sequences/a%2Fb", "", "", 400, "A-Z" },
        { "GET", "/v1/sequences", "", "", 200, "\"reset\":\"day\"" },
        { "GET", "/v1/sequences?limit=1000&after=a.b", "", "", 200, "\"sequences\":[" },
        { "GET", "/v1/sequences?limit=0", "", "", 400, "limit must be from 1 to 1000" },
        { "GET", "/v1/sequences?limit=1001", "", "", 400, "limit must be from 1 to 1000" },
        { "GET", "/v1/sequences?limit=x", "", "", 400, "limit must be from 1 to 1000" },
        { "GET", "/v1/sequences?after=a%20b", "", "", 400, "after must be a name" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"orders\"}", 201,
          "Location: /v1/sequences/orders" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"taken\"}", 200, "\"name\":\"taken\"" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"taken\",\"mode\":\"range\"}", 409,
          "other settings" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"odd\",\"step\":2,\"offset\":1}", 201,
          "\"next\":\"1\"" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"odd\",\"step\":2,\"offset\":2}", 400,
          "below the step" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"d\",\"dated\":{\"reset\":\"month\"}}", 201,
          "\"digits\":6" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"d\",\"dated\":{\"reset\":\"week\"}}", 400,
          "day, month or year" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"d\",\"dated\":{}}", 400, "needs reset" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"a b\"}", 400, "A-Z" },
        { "POST", "/v1/sequences", JSON, "{}", 400, "A-Z" },
        { "POST", "/v1/sequences", JSON, "[]", 400, "an object" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"x\",\"name\":\"y\"}", 400, "twice" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"x\",\"strat\":1}", 400, "no member 'strat'" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"x\",\"start\":0}", 400, "at least 1" },
        { "POST", "/v1/sequences", JSON, "{\"name\":\"x\",\"mode\":\"fast\"}", 400,
          "gapless or range" },
        { "POST", "/v1/sequences", "", "", 400, "body is empty" },
        { "POST", "/v1/sequences", "Content-Type: text/xml\r\n", "<a/>", 415, "application/json" },
        { "POST", "/v1/sequences", "", "{\"name\":\"orders\"}", 415, "curl --json" },
        { "POST", "/v1/sequences", "Content-Type: text/plain\r\n", "{\"name\":\"a\"}", 415,
          "--json" },
        { "POST", "/v1/cluster", "Content-Type: text/plain\r\n", "{\"action\":\"transfer\"}", 415,
          "--json" },
        { "POST", "/v1/cluster", JSON, "{\"action\":\"transfer\"}", 403, "not-local" },
        { "GET", "/generate", "Sec-Fetch-Site: cross-site\r\n", "", 403, "foreign-origin" },
        { "GET", "/generate", "Sec-Fetch-Site: same-site\r\n", "", 403, "foreign-origin" },
        { "GET", "/generate", "Sec-Fetch-Site: none\r\n", "", 200, "{\"id\":\"" },
        { "GET", "/generate", "Origin: https://evil.example\r\n", "", 403, "https://evil.example" },
        { "GET", "/v1/kinds", "Origin: https://evil.example\r\n", "", 200, "uuidv7" },
        { "OPTIONS", "/generate", "Origin: https://evil.example\r\n", "", 405, "Allow: GET" },
        { "GET", "/v1/inspect/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "", 200, "\"kind\":\"ulid\"" },
        { "GET", "/v1/inspect/777378526356570112?kind=snowflake", "", "", 200, "\"node\"" },
        { "GET", "/v1/inspect/777378526356570112?layout=twitter", "", "", 200, "\"dc\"" },
        { "GET", "/v1/inspect/777378526356570112?layout=twiter", "", "", 400, "/v1/layouts" },
        { "GET", "/v1/inspect/hello?kind=ulid", "", "", 400, "no ulid" },
        { "GET", "/v1/inspect/hello?kind=nope", "", "", 404, "no kind" },
        { "GET", "/v1/inspect/%22%FF%22", "", "", 200, "\\ufffd" },
        { "GET", "/v1/layouts", "", "", 200, "\"served\":{" },
        { "GET", "/v1/kinds", "", "", 200, "\"uuidv7\"" },
        { "GET", "/v1/node", "", "", 200, "\"slot\":5" },
        { "GET", "/healthz", "", "", 200, "ok" },
        { "GET", "/healthz?x=1", "", "", 400, "takes no parameters" },
        { "GET", "/readyz", "", "", 200, "ready" },
        { "GET", "/metrics", "", "", 200, "firn_up 1" },
        { "GET", "/openapi.json", "", "", 200, "\"openapi\":\"3.1.0\"" },
        { "GET", "/", "", "", 200, "<!doctype html>" },
        { "GET", "/", "", "", 200, "script-src 'self';" },
        { "GET", "/web/dashboard.js", "", "", 200, "Content-Type: text/javascript" },
        { "GET", "/web/dashboard.css", "", "", 200, "Content-Type: text/css" },
        { "GET", "/web/playground.js", "", "", 200, "VIEWS.playground" },
        { "GET", "/web/http.md", "", "", 200, "Content-Type: text/plain" },
        { "GET", "/web/upgrading.md", "", "", 200, "Content-Encoding: gzip" },
        { "GET", "/web/nothing.js", "", "", 404, "open /" },
        { "GET", "/lab", "", "", 200, "script-src 'self';" },
        { "GET", "/lab", "", "", 200, "src=\"/web/lab.js\"" },
        { "GET", "/web/lab.js", "", "", 200, "Content-Type: text/javascript" },
        { "GET", "/web/lab.css", "", "", 200, "Content-Type: text/css" },
        { "GET", "/v1/events", "", "", 200, "retry: 1000\n\ndata: {\"rows\":[{\"t\":1000," },
        { "GET", "/v1/events?after=s.1", "", "", 200, "data: {\"rows\":[{\"t\":2000," },
        { "GET", "/v1/events", "Last-Event-ID: s.1\r\n", "", 200, "]}\nid: s.2\n\n" },
        { "GET", "/v1/events", "Last-Event-ID: s.2\r\n", "", 200, "\r\n\r\nretry: 1000\n\n" },
        { "GET", "/v1/events", "Last-Event-ID: other.2\r\n", "", 200, "{\"t\":1000," },
        { "GET", "/nothing/at/all", "", "", 404, "the nearest is" },
        { "GET", "/%22%3Cscript%3E", "", "", 404, "application/problem+json" },
        { "PUT", "/generate", "", "", 405, "Allow: GET, HEAD, POST\r\n" },
        { "DELETE", "/healthz", "", "", 405, "Allow: GET, HEAD\r\n" },
        { "OPTIONS", "*", "", "", 404, "no-such-route" },
    };
    world_start();
    for (size_t i = 0; i < T_LEN(rows); i++) {
        const char *a = ask(rows[i].method, rows[i].target, rows[i].more, rows[i].body, PORT_HOME);
        T_EQ(status_of(a), rows[i].status, "%s %s: %s", rows[i].method, rows[i].target, a);
        T_OK(strstr(a, rows[i].word), "%s not in the answer to %s: %s", rows[i].word,
             rows[i].target, a);
        check_length(a);
        if (rows[i].status >= 400)
            T_OK(strstr(a, "Content-Type: application/problem+json\r\n"), "%s", rows[i].target);
        if (strstr(body_of(a), "{\"id") == body_of(a) && !strstr(rows[i].target, "inspect"))
            T_OK(strstr(a, "Cache-Control: no-store\r\n"), "%s", rows[i].target);
    }
    world_end();
}

T_TEST(formats)
{
    world_start();
    const char *a = ask("GET", "/generate?n=3", "Accept: text/plain\r\n", "", PORT_TICKET);
    T_STR(body_of(a), "100001\n100002\n100003\n");
    a = ask("GET", "/generate", "Accept: text/plain;q=0.5\r\n", "", PORT_TICKET);
    T_STR(body_of(a), "100004\n");
    a = ask("GET", "/generate?seq=slow&n=2", "Accept: application/octet-stream\r\n", "", PORT_HOME);
    T_EQ(world.answer_len - (size_t)(body_of(a) - a), 16);
    T_OK(memcmp(body_of(a), "\0\0\0\0\0\0\0\x29\0\0\0\0\0\0\0\x2a", 16) == 0);
    a = ask("GET", "/generate?n=3", "Accept: application/octet-stream\r\n", "", PORT_SNOWFLAKE);
    T_EQ(world.answer_len - (size_t)(body_of(a) - a), 24);
    a = ask("GET", "/v1/ids/ulid", "Accept: application/octet-stream\r\n", "", PORT_SNOWFLAKE);
    T_EQ(status_of(a), 406);
    a = ask("GET", "/v1/ids/ulid", "Accept: text/plain\r\n", "", PORT_SNOWFLAKE);
    T_EQ(strlen(body_of(a)), 27);
    a = ask("GET", "/generate?encoding=hex", "Accept: application/octet-stream\r\n", "", PORT_HOME);
    T_EQ(status_of(a), 406);
    a = ask("GET", "/v1/sequences/dated/next", "Accept: application/octet-stream\r\n", "",
            PORT_HOME);
    T_EQ(status_of(a), 406);
    world_end();
}

#define KEY "Idempotency-Key: abc\r\n"

T_TEST(keys)
{
    static const char *const targets[] = { "/generate",
                                           "/generate?n=20",
                                           "/v1/ids/uuidv7?n=20",
                                           "/v1/ids/tsid",
                                           "/v1/ids/nanoid?length=255&n=2",
                                           "/v1/sequences/slow/next?n=3",
                                           "/generate?seq=slow&encoding=base62&prefix=ord",
                                           "/v1/ids/ulid?prefix=ord",
                                           "/v1/sequences/dated/next" };
    world_start();
    for (size_t i = 0; i < T_LEN(targets); i++)
        for (int replay = 0; replay < 2; replay++) {
            world.replay = replay;
            const char *a = ask(i % 2 ? "GET" : "POST", targets[i], KEY, "", PORT_HOME);
            T_EQ(status_of(a), 200, "%s: %s", targets[i], a);
            T_EQ(strstr(a, "\r\nIdempotent-Replayed: true\r\n") != NULL, replay, "%s", a);
            T_OK(strstr(a, "\r\nCache-Control: no-store\r\n"));
            check_length(a);
        }
    const char *a = ask("GET", "/generate?n=3", KEY "Accept: application/octet-stream\r\n", "",
                        PORT_SNOWFLAKE);
    T_EQ(world.answer_len - (size_t)(body_of(a) - a), 24);
    a = ask("GET", "/v1/ids/ulid?n=3&prefix=ord", KEY "Accept: text/plain\r\n", "", PORT_HOME);
    T_EQ(strlen(body_of(a)), 3 * (26 + 5));
    T_OK(strncmp(body_of(a), "ord_", 4) == 0);
    static const char *const too_many[] = { "/generate?n=21", "/v1/ids/uuidv4?n=1000",
                                            "/v1/ids/nanoid?length=255&n=3" };
    for (size_t i = 0; i < T_LEN(too_many); i++) {
        a = ask("GET", too_many[i], KEY, "", PORT_SNOWFLAKE);
        T_EQ(status_of(a), 400, "%s", a);
        T_OK(strstr(a, "too-many") && strstr(a, "Idempotency-Key"), "%s", a);
    }
    a = ask("GET", "/v1/ids/uuidv5?namespace=dns&name=a&n=2", KEY, "", PORT_HOME);
    T_EQ(status_of(a), 400);
    char field[400] = "Idempotency-Key: ";
    memset(field + 17, 'k', 256);
    memcpy(field + 17 + 256, "\r\n", 3);
    a = ask("GET", "/generate", field, "", PORT_SNOWFLAKE);
    T_EQ(status_of(a), 400);
    T_OK(strstr(a, "1 to 255"), "%s", a);
    memcpy(field + 17 + 255, "\r\n", 3);
    T_EQ(status_of(ask("GET", "/generate", field, "", PORT_SNOWFLAKE)), 200);
    T_EQ(status_of(ask("GET", "/generate", "Idempotency-Key:\r\n", "", PORT_SNOWFLAKE)), 400);
    T_EQ(status_of(ask("GET", "/generate", "Idempotency-Key: a\tb\r\n", "", PORT_HOME)), 400);
    world.keep = FIRN_EREUSED;
    for (size_t i = 0; i < T_LEN(targets); i++) {
        a = ask("GET", targets[i], KEY, "", PORT_HOME);
        if (!strstr(targets[i], "encoding")) /* this one is described first */
            T_OK(status_of(a) == 422 && strstr(a, "key-reused"), "%s: %s", targets[i], a);
    }
    world.keep = FIRN_EIO;
    a = ask("GET", "/generate", KEY, "", PORT_SNOWFLAKE);
    T_OK(status_of(a) == 503 && strstr(a, "Retry-After"), "%s", a);
    world_end();
}

T_TEST(ids_rise_and_are_distinct)
{
    world_start();
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const char *a = body_of(get(i % 3 ? "/generate" : "/generate?n=1"));
        uint64_t id = strtoull(strpbrk(a, "0123456789"), NULL, 10);
        T_OK(id > last);
        last = id;
    }
    world_end();
}

T_TEST(every_kind_is_made)
{
    size_t n;
    const struct firn_kind *k = firn_kinds(&n);
    world_start();
    for (size_t i = 0; i < n; i++) {
        char target[128];
        if (!(k[i].flags & FIRN_KIND_MAKES) || strcmp(k[i].name, "dated") == 0)
            continue;
        bool named = strcmp(k[i].name, "uuidv3") == 0 || strcmp(k[i].name, "uuidv5") == 0;
        snprintf(target, sizeof target, "/v1/ids/%s%s", k[i].name,
                 named ? "?namespace=dns&name=a" : "?n=2");
        const char *a = get(target);
        T_EQ(status_of(a), 200, "%s: %s", target, a);
        check_length(a);
        T_EQ(minter_counted(world.ctx.minter, i), named ? 1 : 2, "%s", target);
    }
    world_end();
}

T_TEST(not_ready_says_why)
{
    world_start();
    minter_free(world.ctx.minter); /* one that never saw a window */
    numbers_free(world.app.numbers);
    world_open_window(false);
    T_EQ(numbers_new(&world.app.plan, &world.app.board, 1, &world.app.numbers), 0);
    T_EQ(minter_new(&world.app.plan, &world.app.board, world.app.numbers, &world.ctx.minter), 0);
    static const char *const targets[] = { "/generate", "/generate?n=5", "/readyz" };
    for (size_t i = 0; i < T_LEN(targets); i++) {
        const char *a = get(targets[i]);
        T_EQ(status_of(a), 503, "%s", a);
        T_OK(strstr(a, "Retry-After: 1\r\n"));
        T_OK(strstr(a, "no slot yet"), "%s", a);
    }
    T_EQ(status_of(get("/healthz")), 200);
    T_EQ(status_of(get("/v1/ids/ulid")), 200);
    T_OK(strstr(get("/v1/node"), "\"slot\":null"));
    world_end();
}

T_TEST(counters)
{
    world_start();
    get("/generate");
    get("/generate?n=0");
    get("/nowhere");
    get("/generate?seq=broken");
    T_EQ(world.ctx.http[0].requests, 3);
    T_EQ(world.ctx.http[0].errors, 2);
    size_t n;
    http_routes(&n);
    T_EQ(world.ctx.http[n].requests, 1);
    T_EQ(world.ctx.http[n].errors, 1);
    T_STR(http_route_name(0), "GET|POST /generate");
    T_STR(http_route_name(n), "none");
    T_OK(!http_route_name(n + 1));
    world_end();
}

T_TEST(refused_politely_when_too_many_wait)
{
    world_start();
    struct http_wait *none = NULL;
    world.ctx.http_waits = 64 * 1024;
    T_OK(world.ctx.http_idle == none);
    const char *a = get("/generate?seq=slow");
    T_EQ(status_of(a), 503);
    T_OK(strstr(a, "busy"));
    world_end();
}

/* The name in Host counts on loopback without TLS, for every request of a connection. */
T_TEST(names_of_this_server)
{
    struct peer *peer = &world.conn.peer;
    world_start();
    static const char *const evil[] = { "/generate", "/generate?n=2", "/v1/node", "/" };
    for (size_t i = 0; i < T_LEN(evil); i++) {
        char target[128];
        snprintf(target, sizeof target, "http://evil.example:9000%s", evil[i]);
        peer->network.loopback = true;
        T_EQ(status_of(ask("GET", target, "", "", PORT_HOME)), 421, "%s", target);
        T_EQ(status_of(ask("GET", evil[i], "", "", PORT_HOME)), 200, "%s", evil[i]);
        peer->tls = true;
        T_EQ(status_of(ask("GET", target, "", "", PORT_HOME)), 200, "%s over TLS", target);
        peer->tls = peer->network.loopback = false;
        T_EQ(status_of(ask("GET", target, "", "", PORT_HOME)), 200, "%s from outside", target);
        world.app.browser.everywhere = true;
        T_EQ(status_of(ask("GET", target, "", "", PORT_HOME)), 421, "%s with http.hosts", target);
        world.app.browser.everywhere = false;
    }
    peer->network.loopback = true;
    static const char *const health[] = { "/healthz", "/readyz", "/metrics" };
    for (size_t i = 0; i < T_LEN(health); i++) {
        char target[128];
        snprintf(target, sizeof target, "http://evil.example%s", health[i]);
        T_EQ(status_of(ask("GET", target, "", "", PORT_HOME)), 200, "%s", target);
    }
    static const char transfer[] = "{\"action\":\"transfer\"}";
    T_EQ(status_of(ask("POST", "http://firn/v1/cluster", JSON, transfer, PORT_HOME)), 421);
    T_EQ(status_of(ask("POST", "http://localhost/v1/cluster", JSON, transfer, PORT_HOME)), 404);
    T_EQ(status_of(ask("POST", "http://localhost/v1/cluster", JSON "Sec-Fetch-Site: cross-site\r\n",
                       transfer, PORT_HOME)),
         403);
    world_end();
}
