#!/usr/bin/env python3
"""
What firn-proxy does to bodies: JSON members renamed and dropped both ways, gzip, and faults injected on the way.
"""
import gzip
import json
import os
import re
import socket
import struct
import sys
import threading
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position

LONG = json.dumps({"list": ["the same text again and again"] * 500}).encode()


class Page(g.Upstream):
    """Answers what the test put into `pages` by path: (status, fields, body), or a function of the peer. Keeps the bodies it gets."""

    def __init__(self, pages):
        self.pages, self.bodies = pages, []
        super().__init__(Page.serve_page)

    def serve_page(self, peer, line, fields):
        method, target, _ = line.split(" ")
        low = {n.lower(): v for n, v in fields}
        body = b""
        if low.get("transfer-encoding") == "chunked":
            while True:
                n = int(peer.line(), 16)
                while len(peer.buf) < n + 2:
                    peer.more()
                body, peer.buf = body + peer.buf[:n], peer.buf[n + 2:]
                if n == 0:
                    break
        else:
            while len(peer.buf) < int(low.get("content-length", 0)):
                peer.more()
            n = int(low.get("content-length", 0))
            body, peer.buf = peer.buf[:n], peer.buf[n:]
        self.keep(g.Request(line, fields, len(body), "", []))
        self.bodies.append(body)
        page = self.pages[target.split("?")[0]]
        if callable(page):
            return page(peer)
        status, lines, data = page
        if callable(data):
            data = data(body)
        peer.sock.sendall(f"HTTP/1.1 {status} Text\r\n{lines}Content-Length: {len(data)}\r\n\r\n".encode() + (b"" if method == "HEAD" else data))
        return None


JSON = "Content-Type: application/json\r\n"


def config(up, route, more="", service=""):
    return f"services: [{{ name: a, servers: ['{up.address}'], {service} }}]\nroutes: [{{ name: r, path: /, service: a, {route} }}]\n{more}"


def post(gate, path, body, fields="", chunked=False):
    c = g.Client(gate.http)
    try:
        if chunked:
            c.ask(f"POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n")
            for at in range(0, len(body), 7):
                part = body[at:at + 7]
                c.ask(b"%x\r\n" % len(part) + part + b"\r\n")
            c.ask("0\r\n\r\n")
        else:
            c.ask(f"POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return c.answer()
    finally:
        c.close()


# --- JSON ---


def json_requests(t):
    up = Page({"/": (200, JSON, b"{}")})
    gate = g.Gateway(t, config(up, "request_rename: ['user.name: login', 'n: count'], request_drop: [admin], json_max_bytes: 300"))
    body = b'{"admin": true, "n": 12345678901234567890, "user": {"name": "x", "admin": 1}, "a": [1, 2]}'
    want = {"count": 12345678901234567890, "user": {"login": "x", "admin": 1}, "a": [1, 2]}
    for chunked in (False, True):
        for kind in (JSON, "Content-Type: text/plain\r\n", ""):
            t.equal(post(gate, "/", body, kind, chunked)[0], 200, "a body is changed")
            t.equal(json.loads(up.bodies[-1]), want, f"chunked={chunked} {kind}")
    t.equal(up.requests[-1].values("Transfer-Encoding") + up.requests[-1].values("Content-Length"), [str(len(up.bodies[-1]))],
            "it has the new length")
    seen = len(up.requests)
    for bad, status, fields in ((b"no json", 400, ""), (b'{"n": 1, "count": 2}', 400, ""), (b'{"a": 1}x', 400, ""), (b"[" * 50, 400, ""),
                                (b'"' + b"x" * 300 + b'"', 413, ""), (gzip.compress(b"{}"), 415, "Content-Encoding: gzip\r\n")):
        t.equal(post(gate, "/", bad, fields)[0], status, f"{bad[:30]}")
    t.equal(post(gate, "/", b'"' + b"x" * 3000 + b'"', chunked=True)[0], 413, "too large, in chunks")
    t.equal(len(up.requests), seen, "none of these reached the server")
    t.equal((post(gate, "/", b"", chunked=True)[0], up.bodies[-1]), (200, b""), "no body at all")
    t.equal((g.get(gate.http, "/")[0], up.bodies[-1]), (200, b""), "nor one with GET")
    c = g.Client(gate.http)
    c.ask(f"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
    t.equal(c.line(), b"HTTP/1.1 100 Continue", "Expect")
    c.line()
    c.ask(body)
    t.equal((c.answer()[0], json.loads(up.bodies[-1])), (200, want), "after 100 Continue")
    c.ask(f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n")
    c.close()  # in the middle of its body
    f.wait_for("the request to end", lambda: gate.status()["requests_in_hand"] == 0)
    gate.stop()


def json_retried(t):
    """A body in memory can be sent again."""
    tries = []

    def dies_once(peer):
        tries.append(1)
        if len(tries) == 1:
            return False
        return g.reply(peer, 200, b"{}", JSON)
    up = Page({"/": dies_once})
    gate = g.Gateway(t, config(up, "request_drop: [x]"))
    c = g.Client(gate.http)
    c.ask('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 16\r\n\r\n{"x": 1, "y": 2}')
    t.equal((c.answer()[0], up.bodies), (200, [b'{"y":2}'] * 2), "PUT was repeated with its body")
    c.close()
    gate.stop()


def json_answers(t):
    big = b'{"secret": 1, "v": "' + b"x" * 3000 + b'"}'

    def late(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in (b'{"sec', b'ret":1,"v"', b":[{\"secret\":2}]}"):
            peer.sock.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
        peer.sock.sendall(b"0\r\nX-Sum: 1\r\n\r\n")

    def breaks(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"secret\": 1")
        return False

    def endless(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            peer.sock.sendall(b"1000\r\n" + b"[" * 4096 + b"\r\n")
    up = Page({"/": (200, JSON + 'ETag: "1"\r\nDigest: x\r\n', b'{"secret":1,"v":1.50}'), "/problem": (404, "Content-Type: application/problem+json; charset=x\r\n", b'{"secret":1}'),
               "/none": (200, "", b'{"secret":1,"w":2}'), "/html": (200, "Content-Type: text/html\r\n", b'{"secret":1}'),
               "/bad": (200, JSON, b'{"secret":1'), "/big": (200, JSON, big), "/late": late, "/breaks": breaks, "/endless": endless,
               "/part": (206, JSON + "Content-Range: bytes 0-2/9\r\n", b'{"s'), "/gzip": (200, JSON + "Content-Encoding: gzip\r\n", gzip.compress(b'{"secret":1}')),
               "/empty": (200, JSON, b""), "/204": (204, JSON, b"")})
    gate = g.Gateway(t, config(up, "answer_drop: [secret, v.secret], answer_rename: ['w: W'], json_max_bytes: 2000, answer_set: ['X-A: 1']"))
    status, low, body = g.get(gate.http, "/", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n")
    t.equal((status, body, low["etag"], low["x-a"], "digest" in low), (200, b'{"v":1.50}', 'W/"1"', "1", False), "a member is dropped")
    t.equal(up.requests[-1].values("Accept-Encoding") + up.requests[-1].values("Range"), [], "the server is asked for the whole, plain")
    for path, want in (("/problem", (404, b"{}")), ("/none", (200, b'{"W":2}')), ("/html", (200, b'{"secret":1}')), ("/late", (200, b'{"v":[{}]}')),
                       ("/empty", (200, b"")), ("/204", (204, b""))):
        status, low, body = g.get(gate.http, path)
        t.equal((status, body), want, path)
    for path in ("/bad", "/big", "/breaks", "/endless", "/part", "/gzip"):
        status, low, body = g.get(gate.http, path)
        t.check(status == 502 and b"secret" not in body, f"{path}: 502: {status} {body[:200]}")
    status, low, _ = g.get(gate.http, "/", method="HEAD")
    t.equal((status, "content-length" in low), (200, False), "HEAD: the length is not known")
    f.wait_for("all to end", lambda: gate.status()["requests_in_hand"] == 0)
    gate.stop()


# --- gzip ---


def bounded(t):
    """What a loop holds of bodies in all is bounded, whatever one of them may be: requests, answers and parts beyond it get 503."""
    size = 30 << 20
    body = b'{"a":"' + b"x" * (size - 8) + b'"}'
    go_on = threading.Event()

    def slow(peer):
        peer.sock.sendall(f"HTTP/1.1 200 OK\r\n{JSON}Content-Length: {size}\r\n\r\n".encode() + body[:-1])
        go_on.wait(f.LIMIT)
        peer.sock.sendall(body[-1:])

    def page(status, lines, data):
        return status, lines, data
    up = Page({"/in": page(200, "", b"{}"), "/slow": slow, "/out": page(200, JSON, body), "/part": page(200, JSON, body[:6] + body[-(8 << 20):]),
               "/small": page(200, JSON, b'{"a":1}')})
    gate = g.Gateway(t, f"""loops: 1
services: [{{ name: a, servers: ['{up.address}'], retries: 0, breaker_failures: 0, breaker_percent: 0, eject_after: 0 }}]
compositions:
  - {{ name: part, parts: ['x = a /part'], part_bytes: 16777216, answer_bytes: 33554432 }}
  - {{ name: must, parts: ['x = a /part'], part_bytes: 16777216, answer_bytes: 33554432, required: [x] }}
routes:
  - {{ path: /in, service: a, request_drop: [secret], json_max_bytes: 67108864 }}
  - {{ path: /out, service: a, answer_drop: [secret], json_max_bytes: 67108864 }}
  - {{ path: /slow, service: a, answer_drop: [secret], json_max_bytes: 67108864 }}
  - {{ path: /small, service: a, answer_drop: [secret] }}
  - {{ path: /part, compose: part }}
  - {{ path: /must, compose: must }}
""")

    def held(name="firn_proxy_held_bytes"):
        return int(float(re.search(rf"^{name} (\S+)$", f.get(gate.admin, "/metrics")[1], re.M)[1]))

    def full():
        """Of requests, answers and parts; what is small has its place, and what is too large in all can be asked for again."""
        refused = held("firn_proxy_held_refused_total")
        for head, data in ((f"Content-Length: {size}", b""), ("Transfer-Encoding: chunked", b"500000\r\n" + b"x" * 0x500000 + b"\r\n0\r\n\r\n")):
            c = g.Client(gate.http)
            c.ask(f"POST /in HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n".encode() + data)
            status, low, _ = c.answer()
            t.equal((status, low.get("retry-after")), (503, "1"), head)
            c.close()
        for path in ("/out", "/must"):
            status, low, _ = g.get(gate.http, path)
            t.equal((status, low.get("retry-after")), (503, "1"), path)
        status, _, text = g.get(gate.http, "/part")
        t.equal((status, [e["status"] for e in json.loads(text)["errors"]]), (200, [503]), "a part")
        t.equal((g.get(gate.http, "/small")[0], post(gate, "/in", b'{"secret":1}')[0]), (200, 200), "small ones have a place")
        t.equal(held("firn_proxy_held_refused_total") - refused, 5, "refused ones are counted")

    # By requests that are not whole.
    clients = [g.Client(gate.http) for _ in range(2)]
    for c in clients:
        c.ask(f"POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + body[:-1])
    f.wait_for("both to be held", lambda: held() == 2 * (size - 1))
    full()
    clients[0].ask(body[-1:])
    t.equal((clients[0].answer()[0], up.bodies[-1] == body), (200, True), "one of those that were there first")
    clients[0].close()
    g.reset(clients[1])
    f.wait_for("all to be given back", lambda: held() == 0)
    # By answers that are not whole.
    clients = [g.Client(gate.http) for _ in range(2)]
    for c in clients:
        c.ask("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("both to be held", lambda: held() == 2 * (size - 1))
    full()
    go_on.set()
    t.equal([c.answer()[2] == body for c in clients], [True, True], "those that were there first")
    for c in clients:
        c.close()
    f.wait_for("all to be given back", lambda: held() == 0)
    t.equal([g.get(gate.http, path)[0] for path in ("/out", "/must", "/part")], [200, 200, 200], "then there is room")
    f.wait_for("all to be given back", lambda: held() == 0)
    t.equal(gate.stop(), 0, "a clean end")


def gzipped(t):
    text = "Content-Type: application/json; charset=utf-8\r\n"
    up = Page({"/": (200, text + 'ETag: "1"\r\nAccept-Ranges: bytes\r\n', LONG), "/short": (200, text, b"{}"), "/png": (200, "Content-Type: image/png\r\n", LONG),
               "/coded": (200, text + "Content-Encoding: br\r\n", LONG), "/fixed": (200, text + "Cache-Control: no-transform\r\n", LONG),
               "/part": (206, text + "Content-Range: bytes 0-9/20\r\n", LONG), "/304": (304, 'ETag: "1"\r\n', b""),
               "/vary": (200, text + "Vary: Origin, accept-encoding\r\n", LONG)})
    gate = g.Gateway(t, config(up, "gzip: on"))
    for accept, on in (("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("identity;q=0.5, gzip;q=0.6", True), ("", False), ("br", False),
                       ("gzip;q=0", False), ("gzip;q=0.3, identity;q=0.4", False), ("gzip;q=x", False), ("*;q=0", False)):
        status, low, body = g.get(gate.http, "/", f"Accept-Encoding: {accept}\r\n")
        t.equal((status, low.get("content-encoding"), low["vary"]), (200, "gzip" if on else None, "Accept-Encoding"), accept)
        t.equal(gzip.decompress(body) if on else body, LONG, accept)
        t.equal((low["etag"], "content-length" in low), ('W/"1"', False) if on else ('"1"', True), accept)
    for path, vary in (("/short", True), ("/png", False), ("/coded", False), ("/fixed", False), ("/part", False)):
        status, low, body = g.get(gate.http, path, "Accept-Encoding: gzip\r\n")
        t.equal((low.get("content-encoding"), "vary" in low, body), ("br" if path == "/coded" else None, vary, b"{}" if path == "/short" else LONG), path)
    status, low, body = g.get(gate.http, "/304", "Accept-Encoding: gzip\r\n")
    t.equal((status, low["etag"], low["vary"]), (304, 'W/"1"', "Accept-Encoding"), "304 has the Vary of the whole")
    status, low, body = g.get(gate.http, "/vary", "Accept-Encoding: gzip\r\n")
    t.equal((low["vary"], gzip.decompress(body)), ("Origin, accept-encoding", LONG), "Vary is not doubled")
    status, low, body = g.get(gate.http, "/", "Accept-Encoding: gzip\r\n", "HEAD")
    t.equal((low["content-encoding"], "content-length" in low), ("gzip", False), "HEAD as GET")
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")
    t.equal(gzip.decompress(c.answer()[2]), LONG, "HTTP/1.0")
    c.close()
    metrics = f.get(gate.admin, "/metrics")[1]
    t.check("firn_proxy_gzip_in_bytes_total" in metrics, "metrics")
    gate.write(config(up, "gzip: off", "gzip: { on: true }\n"))
    gate.signal(1)
    gate.wait_log("reloaded")
    t.check("content-encoding" not in g.get(gate.http, "/", "Accept-Encoding: gzip\r\n")[1], "off by the route")
    gate.write(config(up, "", "gzip: { on: true, types: [image/png], min_bytes: 0 }\n"))
    gate.signal(1)
    f.wait_for("another plan", lambda: gate.status()["plan"] == 3)
    t.equal([g.get(gate.http, p, "Accept-Encoding: gzip\r\n")[1].get("content-encoding") for p in ("/", "/png")], [None, "gzip"], "types")
    gate.stop()


def gzip_streams(t):
    """Events are not held back, large bodies cost no memory, and one that breaks off is seen to."""
    go = []

    def events(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(3):
            peer.sock.sendall(b"9\r\ndata: %d\n\n\r\n" % n)
            f.wait_for("the event to be seen", lambda n=n: len(go) > n)
        peer.sock.sendall(b"0\r\n\r\n")

    def big(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16777216\r\n\r\n")
        for _ in range(256):
            peer.sock.sendall(g.PIECE)

    def breaks(peer):
        peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n" + LONG)
        return False
    up = Page({"/events": events, "/big": big, "/breaks": breaks})
    gate = g.Gateway(t, config(up, "gzip: on"))
    c = g.Client(gate.http)
    c.ask("GET /events HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
    t.equal(dict(c.head()[1])["Content-Encoding"], "gzip", "events are compressed")
    z, text = zlib.decompressobj(31), b""
    while True:
        n = int(c.line(), 16)
        text += z.decompress(c.exactly(n))
        c.line()
        if n == 0:
            break
        while len(go) < text.count(b"\n\n"):
            go.append(1)
    t.equal(text, b"data: 0\n\ndata: 1\n\ndata: 2\n\n", "each event as it comes")
    before = gate.rss()
    c.ask("GET /big HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
    t.equal(gzip.decompress(c.answer()[2]), g.pattern(16777216), "16 MiB")
    t.check(gate.rss() < before + 12 * 1024 * 1024, "in little memory")
    c.ask("GET /breaks HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
    c.head()
    try:
        c.chunked(lambda part: None)
        t.check(False, "an answer that breaks off ends as if it were whole")
    except (f.Gone, ConnectionError, ValueError):
        pass
    c.close()
    gate.stop()


# --- faults ---


def faults(t):
    up = Page({"/": (200, JSON, b"{}"), "/slow": (200, JSON, b"{}")})
    gate = g.Gateway(t, f"""services: [{{ name: a, servers: ['{up.address}'] }}]
routes:
  - {{ name: plain, path: /, service: a }}
  - {{ name: all, path: /all, service: a, fault_abort_status: 503, fault_delay_ms: 30 }}
  - {{ name: asked, path: /asked, rewrite: /, service: a, fault_abort_status: 418, fault_header: 'X-Fault: yes' }}
  - {{ name: slow, path: /slow, service: a, fault_delay_ms: 30 }}
  - {{ name: half, path: /half, rewrite: /, service: a, fault_abort_status: 500, fault_abort_percent: 50 }}
  - {{ name: stuck, path: /stuck, service: a, fault_delay_ms: 600000 }}
""")
    t.equal((g.get(gate.http, "/all")[0], len(up.requests)), (503, 0), "after a delay, without asking the service")
    status, _, body = g.get(gate.http, "/asked", "X-Fault: yes\r\n")
    t.equal((status, json.loads(body)), (418, {"error": "injected fault"}), "by a header")
    t.equal([g.get(gate.http, "/asked", x)[0] for x in ("X-Fault: no\r\n", "")], [200, 200], "without it")
    t.equal([g.get(gate.http, "/slow")[0] for _ in range(3)], [200] * 3, "delays alone")
    t.equal(g.get(gate.http, "/")[0], 200, "routes without faults")
    seen = {g.get(gate.http, "/half")[0] for _ in range(60)}  # all the same: one of 2^59
    t.equal(seen, {200, 500}, "a share")
    c = g.Client(gate.http)
    c.ask("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("it to be in hand", lambda: gate.status()["requests_in_hand"] == 1)
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset: it does not wait for an answer
    c.close()
    f.wait_for("it to be gone", lambda: gate.status()["requests_in_hand"] == 0)
    metrics = f.get(gate.admin, "/metrics")[1]
    for line in ('firn_proxy_faults_total{route="all",fault="delay"} 1', 'firn_proxy_faults_total{route="all",fault="abort"} 1',
                 'firn_proxy_faults_total{route="slow",fault="delay"} 3', 'firn_proxy_faults_total{route="asked",fault="abort"} 1'):
        t.check(line in metrics, f"metrics: {line}")
    t.equal([r["name"] for r in gate.status()["links"]["fault"]["routes"]], ["all", "asked", "slow", "half", "stuck"], "/status")
    gate.stop()


if __name__ == "__main__":
    with f.Test("gateway_bodies") as test:
        for part in (json_requests, json_retried, json_answers, bounded, gzipped, gzip_streams, faults):
            test.section(part)
