#!/usr/bin/env python3
"""
What people see of firn-proxy: traces at a collector, one request ID from client to firnd, requests and answers in the log without
their secrets, /status, /metrics and the admin API.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from collector import CLIENT, PARENT, SERVER, Collector, parent, trace  # noqa: E402  pylint: disable=wrong-import-position


def tell(up, peer, line, fields):
    """Answers with what it was asked; /status/503 with that status, /gone by ending the connection."""
    r = up.keep(peer.body(line, fields))
    word = r.target.strip("/").split("?")[0].split("/")
    if word[0] == "gone":
        return False
    status = int(word[1]) if word[0] == "status" else 200
    g.reply(peer, status, b"" if r.method == "HEAD" else json.dumps({"fields": r.fields, "target": r.target}).encode(),
            "Content-Type: application/json\r\n")
    return None


def config(servers, service="", route="", more=""):
    names = ", ".join(f"'{s.address if isinstance(s, g.Upstream) else s}'" for s in servers)
    return (f"services:\n  - {{ name: a, servers: [{names}], {service} }}\nroutes:\n"
            f"  - {{ name: front, path: /api, rewrite: /, service: a, {route} }}\n{more}")


def ask(gate, path, fields="", method="GET", body=b""):
    """(status, fields, body)"""
    c = g.Client(gate.http)
    try:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        c.ask(f"{method} {path} HTTP/1.1\r\nHost: shop.example:8080\r\n{fields}{length}\r\n".encode() + body)
        return c.answer(method == "HEAD")
    finally:
        c.close()


def got(told, name):
    return [v for n, v in json.loads(told)["fields"] if n.lower() == name]


# --- traces ---


def to(collector):
    """Spans are sent there, however late it answers."""
    return f"--tracing-endpoint={collector.url}", "--tracing-timeout-ms=60000"


def traces(t):
    c, up = Collector(), g.Upstream(tell)
    gate = g.Gateway(t, config([up]), *to(c), "--tracing-service=edge")
    status, low, told = ask(gate, "/api/products/7?token=hush&n=2", f"traceparent: {parent(1)}\r\ntracestate: rojo=1\r\nUser-Agent: me/1\r\n")
    t.equal(status, 200, "status")
    spans = {x["kind"]: x for x in c.wait(1, 2)}
    server, client = spans[SERVER], spans[CLIENT]
    t.equal(low["traceresponse"], f"00-{trace(1)}-{server['spanId']}-01", "the answer names the gateway's span")
    t.equal((server["parentSpanId"], server["name"], server["status"], server["traceState"]), (PARENT, "GET /api", {}, "rojo=1"), "the server span")
    t.equal((client["parentSpanId"], client["name"], client["status"]), (server["spanId"], "GET", {}), "its try")
    t.equal(got(told, "traceparent"), [f"00-{trace(1)}-{client['spanId']}-01"], "the server gets the try as its parent")
    t.equal(got(told, "tracestate"), ["rojo=1"], "and the tracestate")
    host, port = up.address.rsplit(":", 1)
    for key, value in {"http.request.method": "GET", "url.scheme": "http", "url.path": "/api/products/7", "url.query": "token=[redacted]&n=2",
                       "network.protocol.version": "1.1", "server.address": "shop.example", "server.port": 8080,
                       "client.address": "127.0.0.1", "firn.request_id": low["x-request-id"], "http.route": "/api",
                       "firn.route": "front", "firn.service": "a", "http.response.status_code": 200, "user_agent.original": "me/1"}.items():
        t.equal(server["of"].get(key), value, key)
    for key, value in {"http.request.method": "GET", "url.full": f"http://{up.address}/products/7", "server.address": host,
                       "server.port": int(port), "http.response.status_code": 200, "firn.service": "a", "http.request.resend_count": None,
                       "firn.request_id": low["x-request-id"]}.items():
        t.equal(client["of"].get(key), value, f"the try's {key}")
    for x, y in ((server, client), (client, client)):
        t.check(int(x["startTimeUnixNano"]) <= int(y["startTimeUnixNano"]) <= int(y["endTimeUnixNano"]) <= int(x["endTimeUnixNano"]),
                f"one inside the other: {x} {y}")
    t.equal(server["resource"]["service.name"], "edge", "service.name")
    line = gate.line(low["x-request-id"])
    t.equal(line["trace"], trace(1), "the access log names the trace")

    # The client's decision is passed on; what is malformed or comes twice is none.
    status, low, told = ask(gate, "/api/x", f"traceparent: {parent(2, '00')}\r\ntracestate: a=1\r\n")
    t.equal((got(told, "traceparent"), got(told, "tracestate"), low.get("traceresponse")), ([parent(2, "00")], ["a=1"], None), "not sampled")
    for bad in (f"traceparent: {parent(3)}\r\ntraceparent: {parent(3)}\r\n", f"traceparent: {parent(3)}-\r\n", "traceparent: x\r\n"):
        status, low, told = ask(gate, "/api/x", bad + "tracestate: a=1\r\n")
        made = got(told, "traceparent")
        t.check(len(made) == 1 and re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-02", made[0]) and trace(3) not in made[0], f"{bad!r}: {made}")
        t.equal((got(told, "tracestate"), low.get("traceresponse")), ([], None), f"nothing else of it: {bad!r}")
    # An error, and a route that is not there.
    t.equal(ask(gate, "/api/status/404", f"traceparent: {parent(4)}\r\n")[0], 404, "a server's 404")
    spans = {x["kind"]: x for x in c.wait(4, 2)}
    t.equal((spans[SERVER]["status"], spans[CLIENT]["status"], spans[CLIENT]["of"]["error.type"]), ({}, {"code": 2}, "404"),
            "404 is the client's error")
    t.equal(ask(gate, "/nothing", f"traceparent: {parent(5)}\r\n")[0], 404, "no route")
    span = c.wait(5)[0]
    t.equal((span["name"], span["of"]["http.response.status_code"], span["of"].get("http.route")), ("GET", 404, None), "without a route")
    t.check('firn_proxy_trace_spans_total{result="dropped"} 0' in f.get(gate.admin, "/metrics")[1], "counted")
    t.equal(gate.status()["links"]["trace"]["dropped"], 0, "in /status")
    gate.stop()
    t.equal(c.problems, [], "the collector understood it all")
    c.close()


def retried(t):
    """A request that is sent again has two spans for its tries, and each server gets its own."""
    c, bad, good = Collector(), g.Upstream(lambda up, peer, line, fields: False if up.keep(peer.body(line, fields)) else None), g.Upstream(tell)
    gate = g.Gateway(t, config([bad, good], "retries: 1, eject_after: 0"), *to(c))
    n = 0
    while not bad.requests and n < 10:
        n += 1
        status, _, told = ask(gate, "/api/x", f"traceparent: {parent(n)}\r\n")
        t.equal(status, 200, "an answer")
    spans = c.wait(n, 3)
    first, second = sorted((x for x in spans if x["kind"] == CLIENT), key=lambda x: int(x["startTimeUnixNano"]))
    root = [x for x in spans if x["kind"] == SERVER][0]
    t.equal({first["parentSpanId"], second["parentSpanId"]}, {root["spanId"]}, "both are children")
    t.equal((first["status"], first["of"]["error.type"], first["of"].get("http.response.status_code")), ({"code": 2}, "connection_broken", None), "the first")
    t.equal((second["status"], second["of"]["http.request.resend_count"], root["status"]), ({}, 1, {}), "the second")
    t.equal(bad.requests[0].values("traceparent"), [f"00-{trace(n)}-{first['spanId']}-01"], "the first server's parent")
    t.equal(got(told, "traceparent"), [f"00-{trace(n)}-{second['spanId']}-01"], "the second one's")
    bad.close()
    good.close()
    t.equal(ask(gate, "/api/x", f"traceparent: {parent(50)}\r\n")[0], 503, "nobody there")
    spans = c.wait(50, 3)
    t.equal({x["of"]["error.type"] for x in spans if x["kind"] == CLIENT}, {"no_connection"}, "no connection")
    root = [x for x in spans if x["kind"] == SERVER][0]
    t.equal((root["status"], root["of"]["error.type"]), ({"code": 2}, "503"), "the whole is an error")
    gate.stop()
    c.close()


def composed(t):
    """The parts of a composed answer are children of the whole, and each server gets its own part's ID."""
    c, up = Collector(), g.Upstream(tell)
    gate = g.Gateway(t, f"""services: [{{ name: a, servers: ['{up.address}'] }}]
compositions:
  - name: page
    parts: ['one = a /one', 'two = a /two?token=hush', 'three = a /status/404']
    shape: ['first = one.target', 'second = two.target', 'third = three.target']
routes: [{{ name: page, path: /page, compose: page }}]
""", *to(c))
    status, low, _ = ask(gate, "/page", f"traceparent: {parent(1)}\r\n")
    t.equal(status, 200, "composed")
    spans = c.wait(1, 4)
    root = [x for x in spans if x["kind"] == SERVER]
    tries = [x for x in spans if x["kind"] == CLIENT]
    t.equal((len(root), len(tries)), (1, 3), "one span of the whole, one per part")
    t.equal({x["parentSpanId"] for x in tries}, {root[0]["spanId"]}, "parts are children")
    t.equal({x["of"]["url.full"].split("/", 3)[3] for x in tries}, {"one", "two", "status/404"}, "which part")
    t.equal({x["of"]["firn.request_id"] for x in spans}, {low["x-request-id"]}, "one request ID")
    t.equal({v for r in up.requests for v in r.values("traceparent")}, {f"00-{trace(1)}-{x['spanId']}-01" for x in tries}, "what the servers got")
    t.equal({v for r in up.requests for v in r.values("x-request-id")}, {low["x-request-id"]}, "and the request ID")
    s = f.wait_for("all to be counted", lambda: gate.status() if gate.status()["requests_in_hand"] == 0 else None)
    t.equal((s["routes"][0]["answers"]["2xx"], s["services"][0]["answers"]["2xx"], s["services"][0]["answers"]["4xx"]), (1, 2, 1), "one of the route, three of the service")
    gate.stop()
    c.close()


def sampled(t):
    c, up = Collector(), g.Upstream(tell)
    gate = g.Gateway(t, config([up], more="tracing: { sample: 1, incoming: trusted }\n"), *to(c))
    told = ask(gate, "/api/x", f"traceparent: {parent(1)}\r\ntracestate: a=1\r\n")[2]
    made = got(told, "traceparent")[0]
    t.check(trace(1) not in made and made.endswith("-03"), f"a client that is not trusted begins no trace: {made}")
    t.equal(got(told, "tracestate"), [], "nor a tracestate")
    gate.write(config([up], more="tracing: { sample: 0, incoming: all }\n"))
    gate.signal(1)
    gate.wait_log("reloaded plan=2")
    ask(gate, "/api/x")  # the draw before the reload
    t.check(got(ask(gate, "/api/x")[2], "traceparent")[0].endswith("-02"), "no share any more")
    t.check(parent(9)[:35] in got(ask(gate, "/api/x", f"traceparent: {parent(9)}\r\n")[2], "traceparent")[0], "everybody's now")
    gate.stop()
    c.close()
    plain = g.Gateway(t, config([up]))
    told = ask(plain, "/api/x", "traceparent: anything\r\n")
    t.equal((got(told[2], "traceparent"), "traceresponse" in told[1]), (["anything"], False), "without a collector nothing is touched")
    plain.stop()


def one_id(t):
    """Client, gateway, firnd: one request ID and one trace."""
    c = Collector()
    s = f.Firnd(t, t.steady("ids"), *to(c)).wait_ready()
    gate = g.Gateway(t, f"services:\n  - {{ name: ids, servers: ['{s.home}'], host: localhost }}\nroutes:\n  - {{ path: /v1, service: ids }}\n",
                     *to(c), "--tracing-sample=1")
    status, low, _ = ask(gate, "/v1/sequences", "Content-Type: application/json\r\n", "POST", b'{"name":"orders"}')
    t.equal(status, 201, "made")
    request_id = low["x-request-id"]
    line = gate.line(request_id)
    s.wait_log(f"request_id={request_id}")
    t.check(re.search(rf"admin action=create target=orders .*request_id={request_id} trace_id={line['trace']}", s.log()), s.log()[-2000:])
    spans = f.wait_for("spans of both", lambda: [x for x in list(c.spans) if x["traceId"] == line["trace"]]
                       if sum(x["traceId"] == line["trace"] and x["kind"] == SERVER for x in list(c.spans)) == 2 else None)
    ids = {x["of"]["firn.request_id"] for x in spans if x["kind"] == SERVER}
    t.equal(ids, {request_id}, "in both programs' spans")
    tries = {x["spanId"] for x in spans if x["kind"] == CLIENT and x["resource"]["service.name"] == "firn-proxy"}
    t.check(any(x.get("parentSpanId") in tries for x in spans if x["resource"]["service.name"] == "firnd"), "firnd's span is under the gateway's try")
    gate.stop()
    s.stop()
    c.close()


# --- requests and answers in the log ---


def logged(t):
    up = g.Upstream(tell)
    secret = "zzz-hush-zzz"
    gate = g.Gateway(t, config([up], route="log_headers: true, log_body_bytes: 60, log_redact: [x-shop, iban], answer_set: ['Set-Cookie: a=" + secret + "']",
                               more="  - { path: /plain, rewrite: /, service: a }\n"))
    body = json.dumps({"user": "u", "password": secret, "iban": secret, "n": [1, 2], "long": "x" * 100}).encode()
    status, low, _ = ask(gate, f"/api/x?page=2&access_token={secret}", f"Authorization: Bearer {secret}\r\nCookie: c={secret}\r\nX-Shop: {secret}\r\n"
                         f"Referer: http://shop.example/?key={secret}&p=1\r\nX-Plain: seen\r\nContent-Type: application/json\r\n", "POST", body)
    t.equal(status, 200, "status")
    line = gate.line(low["x-request-id"])
    t.equal(line["query"], "page=2&access_token=[redacted]", "the query")
    for one in ("Authorization: [redacted]", "Cookie: [redacted]", "X-Shop: [redacted]", "X-Plain: seen", "Referer: http://shop.example/?key=[redacted]&p=1"):
        t.check(one in line["request_headers"], f"{one}: {line['request_headers']}")
    t.check("Set-Cookie: [redacted]" in line["answer_headers"] and "Content-Type: application/json" in line["answer_headers"], f"{line['answer_headers']}")
    t.equal((line["request_body"], line["request_body_cut"]), ('{"user": "u", "password": "[redacted]", "iban": "[redacted]"', True), "its body, cut off inside a secret")
    t.check(line["answer_body"].startswith('{"fields": [["') and line["answer_body_cut"], f"{line['answer_body']}")
    t.check(len(line["answer_body"]) == 60, "as long as it may be")
    low = ask(gate, "/api/x", "Content-Type: application/x-www-form-urlencoded\r\n", "POST", f"a=1&pin={secret}".encode())[1]
    t.equal(gate.line(low["x-request-id"])["request_body"], "a=1&pin=[redacted]", "a form")
    low = ask(gate, f"/api/x?%70in={secret}&a=b;pin={secret}", f"X-Auth-Key: {secret}\r\nReferer: /#pin={secret}\r\nContent-Type: APPLICATION/X-WWW-FORM-URLENCODED\r\n", "POST", f"a=1&%70in={secret}".encode())[1]
    line = gate.line(low["x-request-id"])
    t.equal((line["query"], line["request_body"]), ("%70in=[redacted]&a=b;pin=[redacted]", "a=1&%70in=[redacted]"), "other ways to write it")
    low = ask(gate, "/api/x", "Content-Type: Application/JSON\r\n", "POST", json.dumps({"pin": secret}).encode())[1]
    t.equal(gate.line(low["x-request-id"])["request_body"], '{"pin": "[redacted]"}', "a type in upper case")
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        low = ask(gate, "/api/x", f"Content-Type: {kind}\r\n", "POST", f' {{"pin":"{secret}"}}'.encode())[1]
        t.equal(gate.line(low["x-request-id"])["request_body"], ' {"pin":"[redacted]"}', f"JSON that is said to be {kind}")
    low = ask(gate, "/api/x", "Content-Type: application/octet-stream\r\n", "POST", bytes(range(256)))[1]
    t.equal("request_body" in gate.line(low["x-request-id"]), False, "bytes that are no text")
    low = ask(gate, "/api/status/404")[1]
    t.equal(gate.line(low["x-request-id"])["status"], 404, "an error")
    line = gate.line(ask(gate, "/plain/x?a=1", "X-Plain: seen\r\n")[1]["x-request-id"])
    t.check(not {"query", "request_headers", "answer_headers", "answer_body"} & set(line), "another route logs as before")
    up.close()
    line = gate.line(ask(gate, "/api/x", "X-Plain: seen\r\n")[1]["x-request-id"])
    t.check(line["status"] == 503 and "X-Plain: seen" in line["request_headers"] and 'Service unav' in line["answer_body"], f"the gateway's own answer: {line}")
    gate.stop()
    with open(gate.access_path, encoding="utf-8") as log:
        t.check(secret not in log.read(), "no secret in any line")


def malformed(t):
    """What never became a request, or not a whole one, has a line that says what the client was told and why."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, config([up], more="limits: { header_ms: 2000, body_ms: 2000 }\n"))
    post = "POST /api/x HTTP/1.1\r\nHost: a\r\n"
    none = (("no HTTP at all\r\n\r\n", 400, "begins neither with"), (f"GET / HTTP/1.1\r\nHost: a\r\nX: {'y' * 20000}\r\n\r\n", 431, "longer than 16 KiB"),
            ("GET / HTTP/2.0\r\n\r\n", 505, "only HTTP/1.0 and HTTP/1.1"), ("GET / HTTP/1.1\r\nHost:", 408, "in time"))
    broken = ((f"{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "hexadecimal"), (f"{post}Content-Length: 10\r\n\r\nhalf", 408, "in time"))
    for text, want, _ in none + broken:
        c = g.Client(gate.http)
        c.ask(text)
        t.equal((c.answer()[0], c.ended()), (want, True), f"the answer to {text[:40]!r}")
        c.close()
    lines = f.wait_for("their lines", lambda: len(gate.access()) == len(none + broken) and gate.access())
    t.equal(len(lines), len(none + broken), "lines")  # in any order: each loop writes its own
    for found, expected, what in ((gate.refusals(), none, "no requests"), (gate.lines(), broken, "half requests")):
        t.equal(sorted(x["status"] for x in found), sorted(s for _, s, _ in expected), what)
        for text, status, why in expected:
            line = [x for x in found if x["status"] == status]
            t.check(line and line[0]["client"] == "127.0.0.1" and why in line[0]["error"], f"the reason for {text[:40]!r}: {line}")
    t.equal({x["path"] for x in gate.lines()}, {"/api/x"}, "half requests have a path")
    s = gate.status()
    t.equal((s["malformed"], s["answers"]["4xx"], s["answers"]["5xx"], s["answers"]["gone"]), (6, 6, 0, 0), f"each is counted once, as a client's mistake: {s['answers']}")
    gate.stop()


# --- /status, /metrics, actions ---


def full(t):
    """When clients hold all places for connections, the admin address still shows why, and acts."""
    one, two = g.Upstream(tell), g.Upstream(tell)
    gate = g.Gateway(t, config([one, two], more="limits: { connections: 8 }\n"))
    crowd = [g.Client(gate.http) for _ in range(8)]
    for c in crowd:
        c.ask("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal(c.answer()[0], 200, "a client")
    more = g.Client(gate.http)
    t.check(more.ended(), "one more is refused")
    status, told = send(gate.admin, "GET", "/status")
    t.equal((status, told["connections"]), (200, 8), "/status")
    t.equal([send(gate.admin, "GET", path)[0] for path in ("/", "/web/gateway.js", "/metrics")], [200] * 3, "the page")
    t.equal(send(gate.admin, "POST", f"/servers/a/{one.address}/drain")[0], 200, "an action")
    for c in crowd:
        c.close()
    gate.stop()


def send(address, method, path, **fields):
    """(status, answer)"""
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=f.SILENCE)
    try:
        c.request(method, path, headers={k.replace("_", "-"): v for k, v in fields.items()})
        r = c.getresponse()
        body = r.read()
        return r.status, json.loads(body) if "json" in r.headers["Content-Type"] else body.decode()
    finally:
        c.close()


def numbers(t):
    """What is counted, for whom, and the last errors."""
    up, bad = g.Upstream(tell), g.Upstream(tell)
    text = (f"services:\n  - {{ name: a, servers: ['{up.address}'] }}\n  - {{ name: b, servers: ['{bad.address}'], retries: 0, breaker_failures: 2, breaker_open_ms: 3600000 }}\n"
            "routes:\n  - { name: front, path: /api, rewrite: /, service: a }\n  - { name: back, path: /b, rewrite: /, service: b }\n")
    gate = g.Gateway(t, text)
    for path in ("/api/1", "/api/2?token=hush", "/api/status/404", "/api/status/500", "/api/status/501", "/nothing", "/b/gone", "/b/gone", "/b/x", "/b/x", "/b/x"):
        ask(gate, path)
    ask(gate, "/api/1", method="POST", body=b"12345")
    s = f.wait_for("all to be counted", lambda: gate.status() if gate.status()["requests_in_hand"] == 0 else None)
    by = {e["name"]: e for e in s["routes"]}
    t.equal({k: n for k, n in by["front"]["answers"].items() if n}, {"2xx": 3, "4xx": 1, "5xx": 2}, "answers of a route")
    t.equal((by["front"]["bytes_in"], sum(by["front"]["took"].values())), (5, 6), "its bytes and times")
    a, b = s["services"]
    t.equal((a["answers"]["5xx"], sum(a["took"].values()), a["servers"][0]["requests"], a["servers"][0]["state"]), (2, 6, 6, "up"), "of a service")
    t.equal((b["answers"]["5xx"], b["refused"], b["breaker"], b["breaker_opened"]), (2, 3, "open", 1), "a breaker")
    t.equal((s["answers"]["4xx"], s["answers"]["5xx"], sum(s["took"].values())), (2, 7, 12), "of all")
    t.equal([(e["status"], e["times"], e["route"], e["path"], e["why"], e["server"]) for e in s["errors"]][0],
            (503, 3, "back", "/b/x", "the breaker is open", None), "what is the same is one entry, the newest first")
    t.equal([(e["status"], e["times"]) for e in s["errors"]], [(503, 3), (502, 2), (501, 1), (500, 1)], "the others stay")
    t.equal(s["errors"][3]["why"], "the service's own answer", "an error of the service itself")
    t.equal(gate.line(s["errors"][0]["id"])["path"], "/b/x", "an entry leads to its line of the log")
    t.check("hush" not in json.dumps(s), "no query is shown")
    t.check(re.search(r"warn  breaker_opened service=b request_id=[0-9A-Z]{26}\n", gate.log()), f"the log says so: {gate.log()}")
    text2 = f.get(gate.admin, "/metrics")[1]
    for line in ('firn_proxy_route_requests_total{route="front",status="5xx"} 2', 'firn_proxy_route_seconds_count{route="front"} 6',
                 'firn_proxy_route_bytes_total{route="front",direction="in"} 5', 'firn_proxy_service_answers_total{service="b",status="5xx"} 2',
                 'firn_proxy_service_seconds_count{service="a"} 6', 'firn_proxy_breaker_state{service="b",state="open"} 1',
                 'firn_proxy_breaker_state{service="a",state="closed"} 1', 'firn_proxy_breaker_opened_total{service="b"} 1',
                 f'firn_proxy_pool_requests_total{{service="a",server="{up.address}"}} 6', "firn_proxy_first_byte_seconds_count 12",
                 f'firn_proxy_server_drained{{service="a",server="{up.address}"}} 0', "firn_proxy_reload_failed 0"):
        t.check(line in text2, f"metrics: {line}")
    check = subprocess.run(["promtool", "check", "metrics"], input=text2, capture_output=True, text=True, check=False, timeout=f.LIMIT)
    t.equal((check.returncode, check.stdout + check.stderr), (0, ""), "promtool check metrics")
    # Counters outlive a reload, also of what changed its place in the file.
    gate.write(text.replace("routes:", "  - { name: c, servers: ['127.0.0.1:1'] }\nroutes:\n  - { name: new, path: /c, service: c }"))
    t.equal(send(gate.admin, "POST", "/reload")[0], 202, "asked to read it again")
    gate.wait_log("reloaded plan=2")
    ask(gate, "/api/1")
    by = {e["name"]: e for e in f.wait_for("one more", lambda: gate.status() if gate.status()["requests_in_hand"] == 0 else None)["routes"]}
    t.equal((by["front"]["answers"]["2xx"], by["new"]["answers"]["2xx"]), (4, 0), "counted on")
    gate.stop()


def actions(t):
    one, two = g.Upstream(tell), g.Upstream(tell)
    gate = g.Gateway(t, config([one, two]), "--watch=false")
    where = f"/servers/a/{one.address}"
    t.equal(send(gate.admin, "POST", f"{where}/drain"), (200, {"service": "a", "server": one.address, "drained": True}), "drained")
    before = len(one.requests)
    for _ in range(6):
        t.equal(ask(gate, "/api/x")[0], 200, "the other one answers")
    t.equal(len(one.requests), before, "it gets nothing more")
    t.equal([x["state"] for x in gate.service("a")["servers"]], ["drained", "up"], "in /status")
    t.equal(send(gate.admin, "POST", f"/servers/a/{two.address}/drain")[0], 409, "the last one stays")
    gate.write(config([one, two], route="timeout_ms: 5000"))
    t.equal(send(gate.admin, "POST", "/reload")[0], 202, "reload")
    gate.wait_log("reloaded plan=2")
    t.equal([x["state"] for x in gate.service("a")["servers"]], ["drained", "up"], "a reload keeps it")
    t.equal(send(gate.admin, "POST", f"{where.replace(':', '%3A')}/enable")[0], 200, "back, by its address in percent-encoding")
    f.wait_for("it to get requests", lambda: ask(gate, "/api/x") and len(one.requests) > before)
    for path, status in ((f"{where}/kill", 405), ("/servers/b/1/drain", 404), ("/servers/a/127.0.0.1:1/drain", 404), ("/servers/a", 405), ("/status", 405)):
        t.equal(send(gate.admin, "POST", path)[0], status, path)
    # Pages of other origins, and names that point here.
    for fields, status in (({"Sec_Fetch_Site": "cross-site"}, 403), ({"Sec_Fetch_Site": "same-site"}, 403), ({"Origin": "http://evil.example"}, 403),
                           ({"Origin": "null"}, 403), ({"Sec_Fetch_Site": "same-origin", "Origin": f"http://{gate.admin}"}, 202),
                           ({"Origin": f"http://{gate.admin}"}, 202), ({}, 202), ({"Host": "evil.example:9080"}, 421), ({"Host": "gateway"}, 202)):
        t.equal(send(gate.admin, "POST", "/reload", **fields)[0], status, f"{fields}")
    for path, status in (("/", 421), ("/status", 421), ("/metrics", 200), ("/healthz", 200)):
        t.equal(send(gate.admin, "GET", path, Host="evil.example")[0], status, f"{path} by a strange name")
    page = subprocess.run(["curl", "-sSi", f"http://{gate.admin}/"], capture_output=True, text=True, check=True, timeout=f.LIMIT).stdout
    t.check("Content-Security-Policy: default-src 'none'" in page and "<title>firn-proxy</title>" in page, page[:500])
    for name in re.findall(r'(?:src|href)="(/web/[^"]+)"', page):
        t.equal(send(gate.admin, "GET", name)[0], 200, name)
    found = re.findall(r"info  admin action=drain target=(\S+) client=127.0.0.1:\d+ result=(\w+)", gate.log())
    t.equal(found[:2], [(f"a/{one.address}", "done"), (f"a/{two.address}", "refused")], "actions are logged")
    gate.stop()

    token = t.state("token")
    with open(token, "w", encoding="ascii") as out:
        out.write("0123456789abcdef\n")
    gate = g.Gateway(t, config([one], more=f"admin: {{ token_file: {token}, hosts: [gateway.example.com] }}\n"))
    for authorization, status in (("Bearer 0123456789abcdef", 202), ("Bearer 0123456789abcdeg", 401), ("Bearer 0123456789abcde", 401),
                                  ("Basic 0123456789abcdef", 401), ("", 401)):
        t.equal(send(gate.admin, "POST", "/reload", Authorization=authorization)[0], status, authorization)
    t.equal(send(gate.admin, "GET", "/status", Host="gateway.example.com:9080")[0], 200, "by a name of admin.hosts")
    t.check("admin_exposed" not in gate.log(), "loopback is not exposed")
    gate.stop()
    gate = g.Gateway(t, config([one]), "--listen-admin=0.0.0.0:0")
    gate.wait_log("warn  admin_exposed listen.admin=0.0.0.0 ")
    gate.stop()
    gate = g.Gateway(t, config([one]), "--listen-admin=0.0.0.0:0", f"--admin-token-file={token}")
    t.check(gate.stop() == 0 and "admin_exposed" not in gate.log(), "not with a token")
    with open(token, "w", encoding="ascii") as out:
        out.write("short\n")
    said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "-c", gate.config_path, "--listen-admin=127.0.0.1:0", "--listen-http=127.0.0.1:0",
                           f"--admin-token-file={token}"],
                          capture_output=True, text=True, check=False, timeout=f.LIMIT)
    t.check(said.returncode != 0 and "give at least 16 characters" in said.stderr, said.stderr)


def together(t):
    """Requests, looks, drains and reloads at the same time: every request is answered, and every one is counted once."""
    c, one, two = Collector(), g.Upstream(tell), g.Upstream(tell)
    texts = [config([one, two], route=f"log_headers: {log}", more=f"  - {{ path: /b{i}, service: a }}\n") for i, log in enumerate(("true", "false"))]
    gate = g.Gateway(t, texts[0], "--watch=false", *to(c), "--tracing-sample=1")
    bad, ended = [], threading.Event()

    def requests():
        client = g.Client(gate.http)
        for i in range(150):
            client.ask(f"GET /api/{i} HTTP/1.1\r\nHost: a\r\n\r\n")
            bad.extend(x for x in [client.answer()[0]] if x != 200)
        client.close()

    def looks():
        while not ended.is_set():
            s = gate.status()
            bad.extend(x for x in [send(gate.admin, "GET", "/metrics")[0], len(s["services"])] if x not in (1, 200))

    def drains():
        while not ended.is_set():
            for what in ("drain", "enable"):
                bad.extend(x for x in [send(gate.admin, "POST", f"/servers/a/{one.address}/{what}")[0]] if x != 200)

    def reloads():
        for i in range(12):
            before = gate.status()["reloads"]
            gate.write(texts[i % 2])
            send(gate.admin, "POST", "/reload")
            f.wait_for("a reload", lambda before=before: gate.status()["reloads"] > before)

    work = [threading.Thread(target=x) for x in (requests, requests, requests, reloads)]
    watch = [threading.Thread(target=x) for x in (looks, drains)]
    for x in work + watch:
        x.start()
    for x in work:
        x.join()
    ended.set()
    for x in watch:
        x.join()
    t.equal(bad, [], "answers")
    s = f.wait_for("all to be counted", lambda: gate.status() if gate.status()["requests_in_hand"] == 0 else None)
    by = {e["name"]: e for e in s["routes"]}
    t.equal((by["front"]["answers"]["2xx"], s["services"][0]["answers"]["2xx"], s["answers"]["2xx"], sum(s["took"].values())), (450,) * 4, "each is counted once")
    gate.stop()
    t.equal(len([x for x in c.spans if x["kind"] == SERVER]), 450, "a span for each")
    t.equal(len(gate.lines()), 450, "a line for each")
    c.close()


if __name__ == "__main__":
    with f.Test("gateway_watch") as test:
        for part in (traces, retried, composed, sampled, one_id, logged, malformed, full, numbers, actions, together):
            test.section(part)
