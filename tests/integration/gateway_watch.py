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


def traces(t):
    c, up = Collector(), g.Upstream(tell)
    gate = g.Gateway(t, config([up]), f"--tracing-endpoint={c.url}", "--tracing-service=edge")
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
    gate = g.Gateway(t, config([bad, good], "retries: 1, eject_after: 0"), f"--tracing-endpoint={c.url}")
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


def sampled(t):
    c, up = Collector(), g.Upstream(tell)
    gate = g.Gateway(t, config([up], more="tracing: { sample: 1, incoming: trusted }\n"), f"--tracing-endpoint={c.url}")
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
    s = f.Firnd(t, t.steady("ids"), f"--tracing-endpoint={c.url}").wait_ready()
    gate = g.Gateway(t, f"services:\n  - {{ name: ids, servers: ['{s.home}'], host: localhost }}\nroutes:\n  - {{ path: /v1, service: ids }}\n",
                     f"--tracing-endpoint={c.url}", "--tracing-sample=1")
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


if __name__ == "__main__":
    with f.Test("gateway_watch") as test:
        for part in (traces, retried, sampled, one_id):
            test.section(part)
