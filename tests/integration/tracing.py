#!/usr/bin/env python3
"""
Traces: a firnd sends its spans to a collector of this test. Parents, children and flags are right; a collector that is away,
slow or angry costs spans and nothing else; the last spans are sent when firnd stops; request IDs come back and are in the log.
"""
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from collector import CLIENT, INTERNAL, PARENT, SERVER, Collector, parent, trace  # noqa: E402  pylint: disable=wrong-import-position

def ask(address, path="/generate", method="GET", body=None, **fields):
    """(status, header lines, body)."""
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=f.SILENCE)
    try:
        head = {k.replace("_", "-"): v for k, v in fields.items()}
        if body is not None:
            head["Content-Type"] = "application/json"
        c.request(method, path, body, head)
        r = c.getresponse()
        return r.status, r.headers, r.read().decode()
    finally:
        c.close()


def count(firnd, result):
    text = f.get(firnd.home, "/metrics")[1]
    found = re.search(r'^firn_trace_spans_total\{result="%s"\} (\d+)$' % result, text, re.M)
    return int(found.group(1)) if found else None


def started(t, name, collector, *args):
    return f.Firnd(t, t.steady(name), f"--tracing-endpoint={collector}", *args).wait_ready()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


# --- what is recorded ---


def parents_and_children(t):
    c = Collector()
    s = started(t, "parents", c.url, "--name=node-a", "--tracing-service=ids")
    status, head, _ = ask(s.snowflake, "/generate?n=2", traceparent=parent(1), tracestate="rojo=1,congo=2",
                          X_Request_ID="req-1")
    t.equal(status, 200, "status")
    t.equal(head["X-Request-ID"], "req-1", "the request ID comes back")
    span = c.wait(1)[0]
    t.equal(head["traceresponse"], f"00-{trace(1)}-{span['spanId']}-01", "the answer names firnd's span")
    t.equal(span["parentSpanId"], PARENT, "parent")
    t.equal((span["kind"], span["name"], span["status"]), (SERVER, "GET /generate", {}), "kind, name, status")
    t.equal(span["traceState"], "rojo=1,congo=2", "tracestate")
    t.check(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), f"it ends after it began: {span}")
    host, port = s.snowflake.rsplit(":", 1)
    for key, value in {"http.request.method": "GET", "http.route": "/generate", "url.path": "/generate",
                       "url.query": "n=2", "url.scheme": "http", "http.response.status_code": 200, "server.address": host,
                       "server.port": int(port), "client.address": "127.0.0.1", "network.protocol.version": "1.1",
                       "firn.request_id": "req-1"}.items():
        t.equal(span["of"].get(key), value, key)
    t.equal(span["resource"]["service.name"], "ids", "service.name")
    t.equal(span["resource"]["firn.node"], "node-a", "firn.node")
    t.equal(span["resource"]["service.instance.id"], s.node()["start"], "service.instance.id")
    t.check(re.fullmatch(r"\d+\.\d+\.\d+.*", span["resource"]["service.version"]), f"{span['resource']}")

    ask(s.ticket, "/generate?seq=default", traceparent=parent(2))  # waits for the store
    spans = {x["name"]: x for x in c.wait(2, 3)}
    root = spans["GET /generate"]
    t.equal(sorted(spans), ["GET /generate", "group commit", "wait for the store"], "a ticket's spans")
    for name, kind in {"wait for the store": INTERNAL, "group commit": CLIENT}.items():
        x = spans[name]
        t.equal((x["parentSpanId"], x["kind"]), (root["spanId"], kind), name)
        t.equal(x["of"]["firn.sequence"], "default", "its sequence")
        t.check(int(root["startTimeUnixNano"]) <= int(x["startTimeUnixNano"]) <= int(x["endTimeUnixNano"]), f"{x}")
    t.equal(spans["group commit"]["of"]["db.system.name"], "sqlite", "the store")
    t.equal(spans["wait for the store"]["endTimeUnixNano"], spans["group commit"]["startTimeUnixNano"], "one after the other")

    for n, (path, method, body, name, want) in enumerate((
            ("/v1/sequences", "POST", '{"name":"orders","mode":"range"}', "POST /v1/sequences", 201),
            ("/v1/sequences/orders", "GET", None, "GET /v1/sequences/{name}", 200),
            ("/v1/sequences/orders", "DELETE", None, "DELETE /v1/sequences/{name}", 200),
            ("/v1/sequences/orders", "GET", None, "GET /v1/sequences/{name}", 404),
            ("/v1/ids/uuidv7", "GET", None, "GET /v1/ids/{kind}", 200),
            ("/nothing/there", "GET", None, "GET", 404)), 10):
        t.equal(ask(s.home, path, method, body, traceparent=parent(n))[0], want, f"{method} {path}")
        spans = [x for x in f.wait_for("spans", lambda n=n: c.of_trace(n)) if x["kind"] == SERVER]
        t.equal([(x["name"], x["of"]["http.response.status_code"]) for x in spans], [(name, want)], f"{method} {path}")

    # Two in one write: each has its own span.
    one = f"GET /generate HTTP/1.1\r\nHost: localhost\r\ntraceparent: {parent(20)}\r\n\r\n".encode()
    for port in (s.snowflake, s.ticket):
        h = f.Http(port)
        h.send(one * 3)
        for _ in range(3):
            t.equal(h.answer()[0], 200, "one of three")
        h.close()
    f.wait_for("six spans", lambda: sum(x["kind"] == SERVER for x in c.of_trace(20)) == 6)
    t.equal(len({x["spanId"] for x in c.of_trace(20)}), len(c.of_trace(20)), "each has an ID of its own")

    # None of these is recorded.
    for i, bad in enumerate((parent(90, "00"), parent(91, version="ff"), parent(92) + "-", parent(0), parent(93)[:-1],
                             parent(94).upper(), "", "nonsense")):
        status, head, _ = ask(s.snowflake, traceparent=bad)
        t.equal((status, head["traceresponse"]), (200, None), f"traceparent {i}: {bad}")
    t.equal(ask(s.snowflake)[1]["traceresponse"], None, "none without a traceparent")
    h = f.Http(s.snowflake)
    h.ask("/generate", fields=f"traceparent: {parent(95)}\r\ntraceparent: {parent(96)}\r\n")
    t.equal(h.answer()[0], 200, "two of them are none")
    h.close()
    t.equal(ask(s.snowflake, traceparent=parent(30, version="01") + "-more")[0], 200, "a later version")
    c.wait(30)
    f.wait_for("all to be counted", lambda: count(s, "exported") == len(c.spans))
    t.equal((count(s, "dropped"), count(s, "failed")), (0, 0), "none is lost")
    t.equal(s.stop(), 0, "it ends cleanly")
    traces = {int(x["traceId"], 16) for x in c.spans}
    t.equal(sorted(traces), [1, 2, 10, 11, 12, 13, 14, 15, 20, 30], "traces")
    t.equal(set(c.requests), {("/v1/traces", "application/json")}, "requests")
    t.equal(c.problems, [], "the collector understood it all")
    c.close()


def errors_are_marked(t):
    c = Collector()
    state = t.state("errors")
    s = f.Firnd(t, state, f"--tracing-endpoint={c.url}", f"--store=raft://127.0.0.1:{free_port()}")
    status, head, _ = ask(s.snowflake, traceparent=parent(1), X_Request_ID="lost-1")
    t.equal((status, head["X-Request-ID"]), (503, "lost-1"), "no store, no IDs")
    span = c.wait(1)[0]
    t.equal((span["status"], span["of"]["error.type"]), ({"code": 2}, "503"), "an error")
    s.wait_log(f"request_id=lost-1 trace_id={trace(1)}")
    t.check(re.search(r"warn  request_failed status=503 problem=urn:firn:problem:not-ready .*request_id=lost-1 ", s.log()),
            s.log())
    s.stop()
    c.close()


def sampling(t):
    c = Collector()
    s = started(t, "sampling", c.url + "/", "--tracing-sample=1")
    heads = [ask(s.snowflake)[1]["traceresponse"] for _ in range(20)]
    t.equal(len({x[3:35] for x in heads}), 20, "a trace for each request")
    t.equal(ask(s.snowflake, traceparent=parent(7, "00"))[1]["traceresponse"], None, "unless the client says no")
    h = f.Http(s.snowflake)  # a run of equal requests
    h.send(b"GET /generate HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    ids = [json.loads(h.answer()[1])["id"] for _ in range(50)]
    h.close()
    t.equal(len(set(ids)), 50, "an ID for each")
    f.wait_for("70 roots", lambda: sum(x["name"] == "GET /generate" for x in list(c.spans)) == 70)
    t.check(all("parentSpanId" not in x for x in c.spans if x["kind"] == SERVER), "they have no parent")
    t.check(not c.of_trace(7), "the unsampled one is not there")
    s.stop()
    s = started(t, "sampling", c.url, "--tracing-sample=0.1")
    h = f.Http(s.snowflake)
    seen = 0
    for _ in range(20):
        h.send(b"GET /generate HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        for _ in range(100):
            while b"\r\n\r\n" not in h.buf:
                h.more()
            seen += b"\r\ntraceresponse: " in h.buf.split(b"\r\n\r\n", 1)[0]
            h.answer()
    h.close()
    t.check(100 < seen < 300, f"about 200 of 2000 are recorded: {seen}")  # 7 deviations
    s.stop()
    c.close()


# --- a collector that does not do its part ---


def collector_away(t):
    port = free_port()
    s = started(t, "away", f"http://127.0.0.1:{port}", "--tracing-queue=100")
    for i in range(300):
        status, _, body = ask(s.snowflake if i % 2 else s.ticket, traceparent=parent(1))
        if not t.equal(status, 200, f"answers go on: {body}"):
            break
    s.wait_log("trace_export_failed")
    f.wait_for("spans to be dropped", lambda: count(s, "dropped") > 0)
    c = Collector(port)  # and here it is
    s.wait_log("trace_export_recovered")
    f.wait_for("a new span to arrive", lambda: ask(s.snowflake, traceparent=parent(2)) and c.of_trace(2))
    t.equal(len(re.findall("trace_export_failed", s.log())), 1, "it is said once")
    c.close()
    ask(s.snowflake, traceparent=parent(3))
    t.equal(s.stop(), 0, "it ends cleanly, although the collector is away again")


def collector_angry(t):
    c = Collector()
    c.status = 503
    s = started(t, "angry", c.url)
    ask(s.snowflake, traceparent=parent(1))
    f.wait_for("several attempts", lambda: len(c.requests) >= 3)
    c.status = 200
    c.wait(1)
    c.status = 400
    before = len(c.requests)
    ask(s.snowflake, traceparent=parent(2))
    f.wait_for("it to be given up", lambda: count(s, "failed") == 1)
    t.equal(len(c.requests), before + 1, "400 is not tried again")
    t.equal(s.stop(), 0, "it ends cleanly")
    c.close()


def collector_silent(t):
    c = Collector()
    c.silent.set()
    s = started(t, "silent", c.url, "--tracing-queue=16", "--tracing-timeout-ms=60000")
    for i in range(400):
        status, _, body = ask(s.snowflake if i % 2 else s.ticket, traceparent=parent(i + 1))
        if not t.equal(status, 200, f"answers do not wait for the collector: {body}"):
            break
    t.equal(len(c.spans), 0, "the collector has said nothing all the time")
    f.wait_for("spans to be dropped", lambda: count(s, "dropped") > 0)
    c.silent.clear()
    f.wait_for("those that found room", lambda: count(s, "exported") >= 16)
    c.silent.set()
    ask(s.snowflake, traceparent=parent(1000))
    s.kill()
    s = started(t, "silent", c.url, "--tracing-timeout-ms=500")
    ask(s.snowflake, traceparent=parent(1001))
    t.equal(s.stop(), 0, "a silent collector does not keep it from ending")
    c.close()


def flush_at_the_end(t):
    c = Collector()
    s = started(t, "flush", c.url, "--tracing-timeout-ms=60000")
    for i in range(1, 301):
        ask(s.snowflake, traceparent=parent(i))
    t.equal(s.stop(), 0, "it ends cleanly")
    t.equal(len({x["traceId"] for x in c.spans}), 300, "every span was sent before it ended")
    c.close()


def tls_collector(t):
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=f.LIMIT)
    key, cert = t.state("collector.key"), t.state("collector.pem")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
            "-days", "2", "-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    c = Collector(tls=context)
    s = started(t, "tls", c.url, f"--tracing-tls-ca={cert}")
    ask(s.snowflake, traceparent=parent(1))
    c.wait(1)
    s.stop()
    s = started(t, "tls", c.url)  # not signed by an authority of the system
    ask(s.snowflake, traceparent=parent(2))
    s.wait_log("trace_export_failed")
    t.equal(s.stop(), 0, "it ends cleanly")
    t.equal(c.of_trace(2), [], "an untrusted collector gets nothing")
    c.close()


# --- request IDs and the log, with tracing off ---


def request_ids(t):
    state = t.steady("ids")
    config = t.state("tokens.yaml")
    with open(config, "w", encoding="utf-8") as out:
        out.write("auth:\n  tokens:\n    - name: boss\n      admin: true\n      sequences: [\"*\"]\n      token_sha256: "
                  "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9\n")
    s = f.Firnd(t, state, config=config).wait_ready()
    status, head, _ = ask(s.snowflake, X_Request_ID="who-1", traceparent=parent(5))
    t.equal((status, head["X-Request-ID"], head["traceresponse"]), (401, "who-1", None), "refused")
    s.wait_log(f"request_id=who-1 trace_id={trace(5)}")
    t.check(re.search(rf'warn  refused reason="no token" .* request_id=who-1 trace_id={trace(5)}\n', s.log()), s.log())
    boss = {"Authorization": "Bearer " + "bob", "X_Request_ID": "admin-7"}
    t.equal(ask(s.home, "/v1/sequences", "POST", '{"name":"orders"}', **boss)[0], 201, "create")
    t.equal(ask(s.home, "/v1/sequences/orders", "DELETE", **boss)[0], 200, "delete")
    found = re.findall(r"info  admin action=(\w+) target=orders .*result=done request_id=admin-7\n", s.log())
    t.equal(found, ["create", "delete"], "administrative actions in the log")
    ask(s.snowflake)
    t.check(re.search(r'refused reason="no token" .*certificate=-\n', s.log()), "nothing is left of it afterwards")
    t.equal(count(s, "exported"), None, "no such metric where tracing is off")
    for bad in ("a b", "x" * 129, "a\tb", "caf\xe9", "a,b", 'a"b'):
        t.equal(ask(s.snowflake, X_Request_ID=bad)[1]["X-Request-ID"], None, f"{bad!r} is not echoed")
    t.equal(ask(s.snowflake, X_Request_ID="x" * 128)[1]["X-Request-ID"], "x" * 128, "the longest")
    s.stop()


def settings(t):
    for args, says in ((["--tracing-endpoint=localhost:4318"], "http:// or https://"),
                       (["--tracing-endpoint=http://a b"], "no host"),
                       (["--tracing-sample=0.1"], "needs tracing.endpoint"),
                       (["--tracing-sample=10"], "from 0 (none) to 1 (all)")):
        p = subprocess.run([os.path.join(t.bin, "firnd"), "--no-config", "--check-config", *args], capture_output=True, text=True,
                           timeout=f.LIMIT, check=False)
        t.check(p.returncode != 0 and says in p.stderr, f"{args}: {p.returncode} {p.stderr}")
    p = subprocess.run([os.path.join(t.bin, "firnd"), "--no-config", "--check-config"], capture_output=True, text=True,
                       timeout=f.LIMIT, check=False, env={**os.environ, "FIRN_TRACING_ENDPOINT": ""})
    t.equal(p.returncode, 0, f"an empty variable is off: {p.stderr}")


def main():
    with f.Test("tracing") as t:
        t.section(parents_and_children)
        t.section(errors_are_marked)
        t.section(sampling)
        t.section(collector_away)
        t.section(collector_angry)
        t.section(collector_silent)
        t.section(flush_at_the_end)
        t.section(tls_collector)
        t.section(request_ids)
        t.section(settings)


main()
