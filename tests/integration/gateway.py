#!/usr/bin/env python3
"""
firn-proxy in front of servers that behave, are slow, break off at every byte, or try to smuggle: routes, rewrites, fields,
bodies of any size in bounded memory, retries, ejection, the breaker, reloads and drains under load.

FIRN_TEST_BIG_MIB=1024 makes a body each way that large.
"""
import hashlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position

BREAKER_BODY = b'{"error": "Service temporarily unavailable"}'
BIG = 64 * 1024 * 1024
LARGE = int(os.environ.get("FIRN_TEST_BIG_MIB", "") or 64) * 1024 * 1024
RSS_MORE = 24 * 1024 * 1024  # what a body of any size may cost, with everything that the allocator keeps


def tell(up, peer, line, fields):
    """Answers with what it was asked."""
    r = up.keep(peer.body(line, fields))
    body = json.dumps({"method": r.method, "target": r.target, "fields": r.fields, "len": r.body_len, "sha": r.digest,
                       "trailers": r.trailers, "server": up.address}).encode()
    g.reply(peer, 200, b"" if r.method == "HEAD" else body)


def shop(up, peer, line, fields):
    """One server with a page for each case."""
    target = line.split(" ")[1]
    s = peer.sock
    parts = target.strip("/").split("/")
    word, n = parts[0], int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
    if word == "early":  # answers before the request's body is there, which it never reads
        up.keep(g.Request(line, fields, 0, "", []))
        g.reply(peer, 413, b"too much")
        return False
    if word == "ws":
        up.keep(g.Request(line, fields, 0, "", []))
        s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nhello")
        while True:
            data = peer.buf or s.recv(65536)
            peer.buf = b""
            if not data:
                s.sendall(b"bye")
                return False
            s.sendall(data)
    r = up.keep(peer.body(line, fields))
    if word == "bytes":
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
        if r.method != "HEAD":
            for part in g.parts(n):
                s.sendall(part)
    elif word == "chunked":
        s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        if r.method == "HEAD":
            return None
        data, at = g.pattern(n), 0
        while at < n:
            part = data[at:at + 50000]
            s.sendall(b"%x;note=\"a;b\"\r\n" % len(part) + part + b"\r\n")
            at += len(part)
        s.sendall(b"0\r\nX-Sum: " + hashlib.sha256(data).hexdigest().encode() + b"\r\n\r\n")
    elif word == "close":
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + g.pattern(n))
        return False
    elif word == "status":
        g.reply(peer, n, b"" if n in (204, 304) else b"status")
    elif word == "interim":
        s.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        g.reply(peer, 200, b"after")
    elif word == "fields":
        g.reply(peer, 200, b"x", "Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-End: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
                                 "Server: old\r\n")
        return False
    elif word == "never":
        while s.recv(65536):
            pass
        return False
    elif word == "half":  # announces more than it sends
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return False
    elif word == "halfchunked":
        s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        return False
    else:
        body = json.dumps({"method": r.method, "target": r.target, "fields": r.fields, "len": r.body_len, "sha": r.digest,
                           "trailers": r.trailers, "server": up.address}).encode()
        g.reply(peer, 200, b"" if r.method == "HEAD" else body)
    return None


def config(servers, routes="  - { path: /, service: a }\n", service="", more=""):
    names = ", ".join(f"'{s.address if isinstance(s, g.Upstream) else s}'" for s in servers)
    return f"services:\n  - {{ name: a, servers: [{names}], {service} }}\nroutes:\n{routes}{more}"


def ask(gate, path, fields="", method="GET"):
    status, low, body = g.get(gate.http, path, fields, method)
    try:
        return status, low, json.loads(body)
    except ValueError:
        return status, low, body


def values(told, name):
    return [v for n, v in told["fields"] if n.lower() == name.lower()]


# --- routes, rewrites, fields ---


def routing(t):
    a, b = g.Upstream(tell), g.Upstream(tell)
    gate = g.Gateway(t, f"""services:
  - {{ name: a, servers: ['{a.address}'] }}
  - {{ name: b, servers: ['{b.address}'], host: inner.example }}
routes:
  - {{ name: products, path: /api/products, rewrite: /products, service: a }}
  - {{ path: /api, rewrite: /, service: b }}
  - {{ path: /api/beta, headers: ['X-Beta: *'], service: b, rewrite: /beta }}
  - {{ path: /write, methods: [POST, PUT], service: b }}
  - {{ path: /, hosts: [admin.example, '*.inner.example'], service: b }}
  - {{ path: /plain, service: a }}
""")
    for path, target, server in (("/api/products/123", "/products/123", a), ("/api/products", "/products", a),
                                 ("/api/products/?a=/../b%2f", "/products/?a=/../b%2f", a), ("/api/productsX/1", "/productsX/1", b),
                                 ("/api", "/", b), ("/api/x//y/./z/../w", "/x/y/w", b), ("/%61pi/%70roducts/1", "/products/1", a),
                                 ("/plain/a%20b%c3%a9", "/plain/a%20b%C3%A9", a), ("/plain/..%2e/x/%2e%2e/y", "/plain/.../y", a),
                                 ("/plain/../api/products/9", "/products/9", a)):
        status, _, told = ask(gate, path)
        t.equal((status, told["target"], told["server"]), (200, target, server.address), path)
    for path, status in (("/nothing", 404), ("/plai", 404), ("/plain/%2e%2e%2f", 400), ("/plain/%00", 400), ("/plain/%5c..", 400),
                         ("/..", 400), ("/plain/../../x", 400), ("/plain/%zz", 400), ("/plain/%0d%0a", 400), ("/write/x", 405),
                         ("/plain/%2fetc", 400)):
        t.equal(ask(gate, path)[0], status, path)
    t.equal(ask(gate, "/write/x")[1]["allow"], "POST, PUT", "what /write takes")
    t.equal(ask(gate, "/write/x", "Content-Length: 0\r\n", "POST")[2]["server"], b.address, "by method")
    t.equal(ask(gate, "/api/beta/1", "X-Beta: yes\r\n")[2]["target"], "/beta/1", "by header")
    t.equal(ask(gate, "/api/beta/1")[2]["target"], "/beta/1", "without it the shorter path")

    def host(text, target="/other"):
        c = g.Client(gate.http)
        c.ask(f"GET {target} HTTP/1.1\r\nHost: {text}\r\n\r\n")
        status, _, body = c.answer()
        c.close()
        return status, json.loads(body)
    t.equal(host("admin.example:8080")[0], 200, "by host, its port aside")
    t.equal(host("ADMIN.Example.")[0], 200, "by host, in any case")
    t.equal(host("x.y.inner.example")[0], 200, "by wildcard")
    t.equal(host("inner.example")[0], 404, "a wildcard has a name before it")
    t.equal(host("evil.example", "http://admin.example/other")[0], 200, "the absolute form names the host")
    told = host("evil.example", "http://admin.example/other?x")[1]
    t.equal((told["target"], values(told, "Host")), ("/other?x", ["inner.example"]), "and the service's own is sent")
    told = ask(gate, "/plain")[2]
    t.equal(values(told, "Host"), ["shop.example"], "Host is kept")
    t.equal(gate.stop(), 0, "it ends")
    t.check("clean=yes" in gate.log(), "cleanly")


def leavers(t):
    """Clients that ask for more than they read, and go in every way: nothing of them stays."""
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up], service="connections: 8"))
    for asked in (1, 2):
        for half in (False, True):
            for reset in (False, True):
                clients = [g.Client(gate.http) for _ in range(10)]
                for c in clients:
                    c.ask(f"GET /bytes/{BIG} HTTP/1.1\r\nHost: a\r\n\r\n" * asked)
                    if half:
                        c.sock.shutdown(socket.SHUT_WR)
                for c in clients[:8]:
                    c.exactly(1000)
                for c in clients:
                    if reset:
                        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    c.close()
                f.wait_for(f"no request to be left: {asked} asked, half {half}, reset {reset}", lambda: gate.status()["requests_in_hand"] == 0)
    t.equal(ask(gate, "/a")[0], 200, "the next client is served")
    gate.stop()


def deaf(t):
    """A client that asks and asks and never reads is not read from any more."""
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up], "  - { path: /api, service: a }\n"))
    c = g.Client(gate.http)
    c.sock.setblocking(False)
    data, seen, more = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 10000, -1, gate.rss()
    end = time.monotonic() + f.LIMIT
    while gate.status()["requests"] != seen and time.monotonic() < end:
        seen = gate.status()["requests"]
        for _ in range(20):
            try:
                c.sock.send(data)
            except BlockingIOError:
                time.sleep(0.05)
            except ConnectionError:
                break
    t.check(time.monotonic() < end, f"it is read from after {seen} requests")
    t.check("asan" in t.bin or "tsan" in t.bin or gate.rss() - more < RSS_MORE, f"{seen} requests cost {gate.rss() - more} bytes")
    c.close()
    gate.stop()


def fields(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up], "  - path: /\n    service: a\n    request_set: ['X-Set: mine']\n    request_add: ['X-Add: 2']\n"
                               "    request_remove: [x-secret]\n    answer_set: ['Server: gateway']\n    answer_remove: [x-end]\n"
                               "    answer_add: ['X-New: 3']\n"))
    status, low, told = ask(gate, "/a", "X-User-ID: 1\r\nx_user_id: 2\r\nX-Secret: s\r\nX-Set: yours\r\nX-Add: 1\r\nConnection: X-Gone\r\n"
                            "X-Gone: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nProxy-Authorization: x\r\nProxy: http://evil\r\nUpgrade: h2c\r\nX-Forwarded-For: 9.9.9.9\r\n"
                            "X-Request-ID: forged\r\nForwarded: for=1\r\nCookie: a=b\r\nX-Real-IP: 8.8.8.8\r\n")
    t.equal(status, 200, "an answer")
    for name in ("X-User-ID", "x_user_id", "X-Secret", "X-Gone", "Keep-Alive", "TE", "Proxy-Authorization", "Proxy", "Upgrade", "Forwarded",
                 "X-Real-IP", "Connection"):
        t.equal(values(told, name), [], f"{name} does not pass")
    t.equal(values(told, "X-Set"), ["mine"], "set")
    t.equal(values(told, "X-Add"), ["1", "2"], "added")
    t.equal(values(told, "Cookie"), ["a=b"], "kept")
    t.equal(values(told, "X-Forwarded-For"), ["127.0.0.1"], "the client's own is not believed")
    t.equal(values(told, "X-Forwarded-Proto"), ["http"], "the protocol")
    t.equal(values(told, "X-Forwarded-Host"), ["shop.example"], "the host")
    t.equal(values(told, "X-Request-ID"), [low["x-request-id"]], "one request ID for all")
    t.check(len(low["x-request-id"]) == 26, "a ULID")
    t.equal(low["x-new"], "3", "added to the answer")
    line = gate.line(low["x-request-id"])
    t.equal((line["status"], line["path"], line["service"], line["client"], line["tries"]), (200, "/a", "a", "127.0.0.1", 1), "its line")
    c = g.Client(gate.http)
    c.ask("GET /fields HTTP/1.1\r\nHost: a\r\n\r\n")
    _, got = c.head()
    names = [n.lower() for n, _ in got]
    t.check(not {"x-hop", "keep-alive", "connection", "x-end"} & set(names), f"fields of the connection and removed ones: {got}")
    t.equal([v for n, v in got if n.lower() == "set-cookie"], ["a", "b"], "fields that repeat")
    t.equal([v for n, v in got if n.lower() == "server"], ["gateway"], "set in the answer")
    c.close()
    gate.stop()
    trusting = g.Gateway(t, config([up], more="trust: [127.0.0.0/8, 10.0.0.0/8]\n"))
    _, low, told = ask(trusting, "/a", "X-Forwarded-For: 6.6.6.6, 7.7.7.7, 10.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Request-ID: id-1\r\n"
                       "X-User-ID: 1\r\n")
    t.equal(values(told, "X-Forwarded-For"), ["6.6.6.6, 7.7.7.7, 10.1.1.1, 127.0.0.1"], "a trusted proxy's is continued")
    t.equal(values(told, "X-Forwarded-Proto"), ["https"], "and its protocol believed")
    t.equal(low["x-request-id"], "id-1", "and its request ID")
    t.equal(values(told, "X-User-ID"), [], "but no user")
    t.equal(trusting.line("id-1")["client"], "7.7.7.7", "the client is the last address that is not trusted")
    for request_id, told_before, client in (
            ("id-2", 'for=6.6.6.6, for="[2001:db8::9]:4711";proto=https, for=10.1.1.1', "2001:db8::9"),
            ("id-3", 'for=6.6.6.6;x=", for=10.1.1.1', "127.0.0.1"),  # a quote left open hides nothing
            ("id-4", "for=_hidden, for=10.1.1.1", "10.1.1.1")):
        _, _, told = ask(trusting, "/a", f"Forwarded: {told_before}\r\nX-Request-ID: {request_id}\r\n")
        t.equal(trusting.line(request_id)["client"], client, f"the client by {told_before}")
        mine = 'for=127.0.0.1;proto=http;host="shop.example"'
        t.equal(values(told, "Forwarded"), [mine if 'x="' in told_before else f"{told_before}, {mine}"], "Forwarded is continued")
    trusting.stop()


# --- bodies ---


def bodies(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    c = g.Client(gate.http)
    for path in ("/bytes/0", "/bytes/1", "/bytes/100000", "/chunked/0", "/chunked/1", "/chunked/200000"):
        n = int(path.split("/")[2])
        c.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
        status, low, body = c.answer()
        t.check(status == 200 and body == g.pattern(n), f"{path}: {status} {len(body)}")
        if "chunked" in path:
            t.equal(c.trailers, ["X-Sum: " + hashlib.sha256(g.pattern(n)).hexdigest()], "trailers, where they are wanted")
        c.ask(f"HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n")
        status, low, _ = c.answer(True)
        t.check(status == 200 and (low.get("content-length") == str(n) or "chunked" in path), f"HEAD {path}: {low}")
    t.equal(up.connections, 1, "one connection to the server for all of them")
    c.ask("GET /chunked/5 HTTP/1.1\r\nHost: a\r\n\r\n")
    c.answer()
    t.equal(c.trailers, [], "no trailers for who does not want them")
    c.ask("GET /close/70000 HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal(c.answer()[2], g.pattern(70000), "a body up to the end of its connection")
    c.ask("GET /interim HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal([c.head()[0], c.head()[0]], [103, 200], "interim answers")
    c.exactly(5)
    for n in (204, 304, 404, 500):
        c.ask(f"GET /status/{n} HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal(c.answer()[0], n, f"status {n}")
    # uploads
    data = g.pattern(300000)
    c.ask(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    told = json.loads(c.answer()[2])
    t.equal((told["len"], told["sha"]), (len(data), hashlib.sha256(data).hexdigest()), "a counted body")
    chunks = b"".join(b"%X;a=b\r\n" % len(data[i:i + 7777]) + data[i:i + 7777] + b"\r\n" for i in range(0, len(data), 7777))
    c.ask(b"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX-User-ID: 9\r\n\r\n")
    told = json.loads(c.answer()[2])
    t.equal((told["len"], told["sha"], told["trailers"]), (len(data), hashlib.sha256(data).hexdigest(), []), "chunks, without trailers")
    text = b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=\"y\"\r\n!\r\n0\r\nA: b\r\n\r\n"
    for i in range(len(text)):
        c.send(text[i:i + 1])
    t.equal(json.loads(c.answer()[2])["sha"], hashlib.sha256(b"hello!").hexdigest(), "byte by byte")
    # pipelined, answered in order
    c.ask("".join(f"GET /bytes/{n} HTTP/1.1\r\nHost: a\r\n\r\n" for n in range(40)))
    t.equal([len(c.answer()[2]) for _ in range(40)], list(range(40)), "pipelined requests")
    c.ask("GET /bytes/3 HTTP/1.0\r\n\r\n")
    status, low, body = c.answer()
    t.check(body == g.pattern(3) and low["connection"] == "close" and c.ended(), "HTTP/1.0")
    c.close()
    c = g.Client(gate.http)
    c.ask("GET /chunked/100000 HTTP/1.0\r\n\r\n")
    status, low, body = c.answer()
    t.check(body == g.pattern(100000) and "transfer-encoding" not in low, "chunks for HTTP/1.0 end with the connection")
    c.close()
    gate.stop()


def expect(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    c = g.Client(gate.http)
    c.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    t.equal(c.head()[0], 100, "the body is asked for")
    c.ask("hello")
    told = json.loads(c.answer()[2])
    t.equal((told["len"], values(told, "Expect")), (5, []), "and sent on, without Expect")
    c.ask("POST /%00 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    status, low, _ = c.answer()
    t.check(status == 400 and low["connection"] == "close" and c.ended(), "refused before the body is sent")
    c.close()
    c = g.Client(gate.http)
    c.ask("POST /%00 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal(c.answer()[0], 400, "refused with the body there")
    t.equal(c.answer()[0], 200, "a short body is passed over")
    # early answers
    c.ask(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1000)
    status, low, body = c.answer()
    t.check((status, body, low["connection"]) == (413, b"too much", "close"), "an answer before the request's end")
    c.close()
    gate.stop()


def upgrade(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    head = ("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n")
    c = g.Client(gate.http)
    c.ask(head + "first")
    status, low, _ = c.answer()
    t.equal((status, low["upgrade"].lower(), low["sec-websocket-accept"]), (101, "websocket", "x"), "101")
    t.equal(c.exactly(10), b"hellofirst", "bytes behind both heads")
    data = g.pattern(3 * 1024 * 1024)
    sender = threading.Thread(target=c.send, args=(data,))
    sender.start()
    t.check(c.exactly(len(data)) == data, "both ways at once")
    sender.join()
    c.sock.shutdown(socket.SHUT_WR)
    t.equal(c.exactly(3), b"bye", "the client's end reaches the server")
    t.check(c.ended(), "and the server's the client")
    c.close()
    told = up.requests[-1]
    t.equal((told.values("Connection"), told.values("Upgrade"), told.values("Sec-WebSocket-Key")), (["Upgrade"], ["websocket"], ["k"]),
            "what the server was asked")
    c = g.Client(gate.http)
    c.ask(head.replace("websocket", "h2c"))
    status, _, body = c.answer()
    t.check(status == 200 or up.requests[-1].values("Upgrade") == [], "no other protocol")
    c.close()
    gate.stop()


def big(t):
    """64 MiB each way, counted and chunked, while memory stays bounded; or LARGE, counted from the server and chunked to it."""
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    ask(gate, "/bytes/1000000")
    before = gate.rss()
    most = [0]
    over = threading.Event()

    def watch():
        while not over.is_set():
            most[0] = max(most[0], gate.rss())
            over.wait(0.02)
    watcher = threading.Thread(target=watch)
    watcher.start()

    def sha(n):
        of = hashlib.sha256()
        for part in g.parts(n):
            of.update(part)
        return of.hexdigest()
    digests = {n: sha(n) for n in {BIG, LARGE}}
    for path, size in ((f"/bytes/{LARGE}", LARGE), (f"/chunked/{BIG}", BIG)):
        c = g.Client(gate.http)
        got, n = hashlib.sha256(), [0]
        c.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
        c.head()

        def sink(p, got=got, n=n):
            got.update(p)
            n[0] += len(p)
        if "chunked" in path:
            c.chunked(sink)
        else:
            while n[0] < size:
                if not c.buf:
                    c.more()
                sink(c.buf)
                c.buf = b""
        t.check(n[0] == size and got.hexdigest() == digests[size], f"{path} arrives whole")
        c.close()
    for chunked, size in ((False, BIG), (True, LARGE)):
        c = g.Client(gate.http)
        c.ask("POST /a HTTP/1.1\r\nHost: a\r\n" + ("Transfer-Encoding: chunked\r\n\r\n" if chunked else f"Content-Length: {size}\r\n\r\n"))
        for _ in range(0, size, len(g.PIECE)):
            c.send(b"%x\r\n" % len(g.PIECE) + g.PIECE + b"\r\n" if chunked else g.PIECE)
        if chunked:
            c.send(b"0\r\n\r\n")
        told = json.loads(c.answer()[2])
        t.equal((told["len"], told["sha"]), (size, digests[size]), f"upload, chunked={chunked}")
        c.close()
    # A client that reads nothing: the server must be stopped, not the memory filled.
    c = g.Client(gate.http)
    c.ask(f"GET /bytes/{BIG} HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("the request to be in hand", lambda: gate.status()["requests_in_hand"] == 1)
    time.sleep(1)  # time in which memory would be filled; nothing waits for it
    over.set()
    watcher.join()
    c.close()
    f.wait_for("its end to be seen", lambda: gate.status()["requests_in_hand"] == 0)
    t.check("asan" in t.bin or "tsan" in t.bin or most[0] - before < RSS_MORE, f"memory: {before} before, {most[0]} at most")
    t.say(f"{LARGE >> 20} MiB each way: {before / (1 << 20):.1f} MiB before, {most[0] / (1 << 20):.1f} MiB at most")
    gate.stop()


# --- servers that fail ---


def dying(t):
    """A server that ends after every number of bytes of its answer: the client gets the whole answer, an error, or an end that it
    can see; never a wrong answer."""
    answers = {"length": b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello",
               "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}

    def cut(up, peer, line, fields):
        peer.body(line, fields)
        _, kind, n, how = line.split(" ")[1].split("/")
        peer.sock.sendall(answers[kind][:int(n)])
        if how == "reset":
            peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return False
    up = g.Upstream(cut)
    gate = g.Gateway(t, config([up], service="retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0"))
    for kind, text in answers.items():
        head = text.index(b"\r\n\r\n") + 4
        for n in range(len(text) + 1):
            for how in ("close", "reset"):
                c = g.Client(gate.http)
                c.ask(f"GET /{kind}/{n}/{how} HTTP/1.1\r\nHost: a\r\n\r\n")
                try:
                    status, _, body = c.answer()
                except f.Gone:
                    status, body = 0, b""
                c.close()
                if n == len(text):
                    good = (status, body) == (200, b"hello")
                elif n < head:
                    good = status == 502
                else:  # a reset may overtake the head
                    good = status == 0 or (status == 502 and how == "reset")
                t.check(good, f"{kind}, {n} bytes, {how}: {status} {body}")
    f.wait_for("every request to have its line", lambda: len(gate.lines()) == 2 * sum(len(x) + 1 for x in answers.values()))
    t.equal(gate.status()["requests_in_hand"], 0, "none is left")
    gate.stop()


def statuses(t):
    """101 to another protocol than the one that was asked for, and 205 with a body."""
    top = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
    reset = b"HTTP/1.1 205 Reset Content\r\n"
    pages = {"h2c": top + b"Upgrade: h2c\r\n\r\n", "none": top + b"\r\n", "both": top + b"Upgrade: websocket, h2c\r\n\r\n",
             "length": reset + b"Content-Length: 6\r\n\r\nforged", "empty": reset + b"Content-Length: 0\r\n\r\n",
             "chunks": reset + b"Transfer-Encoding: chunked\r\n\r\n6\r\nforged\r\n0\r\nX: y\r\n\r\n", "close": reset + b"\r\nforged"}

    def answer(up, peer, line, fields):
        peer.body(line, fields)
        word = line.split(" ")[1].strip("/")
        peer.sock.sendall(pages.get(word, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"))
        return word not in ("h2c", "none", "both", "close")
    up = g.Upstream(answer)
    gate = g.Gateway(t, config([up], service="retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0"))
    for word in ("h2c", "none", "both"):
        status = g.get(gate.http, f"/{word}", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n")[0]
        t.equal(status, 502, f"101 with {word}")
    c = g.Client(gate.http)
    for word in ("length", "empty", "chunks", "close"):
        c.ask(f"GET /{word} HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n")
        status, low, body = c.answer()
        t.equal((status, low.get("content-length"), low.get("transfer-encoding"), body), (205, "0", None, b""), f"205 by {word}")
        t.equal(c.answer()[::2], (200, b"good"), "the next request has its own answer")
    c.close()
    gate.stop()


def bad_answers(t):
    """What a server may not say: 502, and nothing of it reaches the next request."""
    texts = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
             b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
             b"HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\n\r\nhello",
             b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
             b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
             b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             b"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 0\r\n\r\n",
             b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 099 OK\r\n\r\n",
             b"hello\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
             b"HTTP/1.1 103 Hints\r\n\r\n" * 40, b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20000 + b"\r\n\r\n",
             b"HTTP/1.1 200 OK\r\n" + b"Connection: keep-alive\r\n" * 9 + b"Content-Length: 0\r\n\r\n",
             b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 120 + b"Content-Length: 0\r\n\r\n"]
    behind = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

    def bad(up, peer, line, fields):
        peer.body(line, fields)
        n = line.split(" ")[1].strip("/")
        if n == "good":
            g.reply(peer, 200, b"good")
        else:
            peer.sock.sendall(behind if n == "behind" else texts[int(n)])
    up = g.Upstream(bad)
    gate = g.Gateway(t, config([up], service="retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0"))
    for i, text in enumerate(texts):
        status, _, body = g.get(gate.http, f"/{i}")
        t.check(status == 502 and b"hello" not in body, f"{text[:70]}: {status} {body}")
        t.equal(g.get(gate.http, "/good")[2], b"good", "the next request has its own answer")
    c = g.Client(gate.http)
    for _ in range(20):
        c.ask("GET /behind HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal((c.answer()[2], c.answer()[2]), (b"hello", b"good"), "bytes behind an answer are nobody's")
    c.close()
    gate.stop()


def retries(t):
    good = g.Upstream(tell)
    dead = g.Upstream(tell)
    address = dead.address
    dead.close()
    rules = "eject_after: 0, breaker_failures: 0, breaker_percent: 0"
    gate = g.Gateway(t, config([address, good], service=rules))
    for i in range(10):  # the budget begins with ten, and half of the requests need one
        status, low, told = ask(gate, f"/{i}")
        t.equal((status, told["server"]), (200, good.address), "another server")
    lines = gate.lines() if len(gate.lines()) == 10 else f.wait_for("the lines", lambda: len(gate.lines()) >= 10 and gate.lines())
    t.check(any(x["tries"] == 2 for x in lines), "by a second try")
    c = g.Client(gate.http)
    for _ in range(4):
        c.ask("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
        status, _, body = c.answer()
        t.check(status == 200 and json.loads(body)["len"] == 5, "a POST that no server saw, with its body")
    c.close()
    codes = [ask(gate, "/x")[0] for _ in range(60)]
    t.check(codes.count(503) > 5 and set(codes) <= {200, 503}, f"the budget ends: {codes.count(503)} of {len(codes)} were refused")
    gate.stop()

    # A server that closes idle connections: the next request does not notice.
    seen = []

    def once(up, peer, line, fields):
        seen.append(line)
        g.reply(peer, 200, b"x")
        return False
    up = g.Upstream(once)
    gate = g.Gateway(t, config([up], service="retries: 1"))
    c = g.Client(gate.http)
    for i in range(50):
        method = "GET" if i % 2 else "POST"
        c.ask(f"{method} /{i} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        status = c.answer()[0]
        # The end of a connection may cross a POST on its way: then nobody knows whether it was seen.
        t.check(status == 200 or (method, status) == ("POST", 502), f"{method} although the server has closed: {status}")
    t.equal(len(seen), len(set(seen)), "and no request was seen twice")
    c.close()
    gate.stop()

    # A request that a server has seen is repeated only if that is harmless.
    seen.clear()

    def drop(up, peer, line, fields):
        seen.append(line.split(" ")[0])
        return False
    up, other = g.Upstream(drop), g.Upstream(drop)
    gate = g.Gateway(t, config([up, other], service="retries: 1, " + rules))
    t.equal(ask(gate, "/", "Content-Length: 0\r\n", "POST")[0], 502, "not a POST")
    t.equal(seen, ["POST"], "which is sent once")
    seen.clear()
    t.equal(ask(gate, "/")[0], 502, "a GET")
    t.equal(seen, ["GET", "GET"], "is sent to another server")
    seen.clear()
    ask(gate, "/", "Content-Length: 0\r\nIdempotency-Key: k\r\n", "POST")
    t.equal(seen, ["POST", "POST"], "and a POST with a key")
    gate.stop()


def time_outs(t):
    up = g.Upstream(shop)
    full = socket.create_server(("127.0.0.1", 0), backlog=0)  # nobody accepts: its queue is full after one connection
    stuck = [socket.create_connection(full.getsockname()[:2])]
    for _ in range(2):  # these wait for a place
        stuck.append(socket.socket())
        stuck[-1].setblocking(False)
        stuck[-1].connect_ex(full.getsockname())
    gate = g.Gateway(t, f"""services:
  - {{ name: a, servers: ['{up.address}'], first_byte_ms: 300, retries: 0, breaker_failures: 0, breaker_percent: 0, eject_after: 0 }}
  - {{ name: b, servers: ['{up.address}'], timeout_ms: 300, retries: 0, breaker_failures: 0, breaker_percent: 0, eject_after: 0 }}
  - {{ name: c, servers: ['127.0.0.1:{full.getsockname()[1]}'], connect_ms: 300, retries: 0, breaker_failures: 0, breaker_percent: 0, eject_after: 0 }}
  - {{ name: d, servers: ['127.0.0.1:{full.getsockname()[1]}', '{up.address}'], connect_ms: 300, retries: 1, breaker_failures: 0, breaker_percent: 0, eject_after: 0 }}
routes:
  - {{ path: /connect, rewrite: /, service: c }}
  - {{ path: /retry, rewrite: /, service: d }}
  - {{ path: /first, rewrite: /, service: a }}
  - {{ path: /whole, rewrite: /, service: b }}
""")
    status, low, _ = ask(gate, "/first/never")
    t.equal(status, 504, "no first byte in time")
    t.equal(gate.line(low["x-request-id"])["error"], "no answer in time", "its line says why")
    status, low, _ = ask(gate, "/connect/bytes/5")
    t.equal((status, gate.line(low["x-request-id"])["error"]), (503, "the connection was not made in time"), "no connection in time")
    t.equal([ask(gate, "/retry/bytes/5")[0] for _ in range(2)], [200, 200], "another server is tried")
    t.equal(ask(gate, "/whole/never")[0], 504, "no whole answer in time")
    f.wait_for("others to be served", lambda: ask(gate, "/whole/bytes/5")[0] == 200)  # a slow machine may be late itself
    gate.stop()
    for s in stuck + [full]:
        s.close()


def crowd(t):
    """More requests at once than connections to the server: they wait, in order; more than may wait are refused."""
    go = threading.Event()

    def patient(up, peer, line, fields):
        peer.body(line, fields)
        go.wait(f.LIMIT)
        g.reply(peer, 200, b"x")
    up = g.Upstream(patient)
    gate = g.Gateway(t, config([up], service="connections: 1, wait_ms: 600000, first_byte_ms: 600000, breaker_failures: 0, breaker_percent: 0")
                     + "loops: 1\n")
    many = 1100  # one is sent, 1,024 wait
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < many + 200:
        t.say(f"*** only {allowed} file descriptors are allowed here: a queue that is full was NOT TESTED")
        gate.stop()
        up.close()
        return
    clients = [g.Client(gate.http) for _ in range(many)]
    for c in clients:
        c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("those beyond to be refused", lambda: gate.status()["requests_in_hand"] == 1025 and gate.status()["requests"] == many)
    go.set()
    codes = [c.answer()[0] for c in clients]
    t.equal((codes.count(200), codes.count(503)), (1025, many - 1025), "answers")
    for c in clients:
        c.close()
    gate.stop()


def ejection(t):
    state = {"bad": True}

    def flaky(up, peer, line, fields):
        peer.body(line, fields)
        g.reply(peer, 500 if state["bad"] else 200, up.address.encode())
    bad, good = g.Upstream(flaky), g.Upstream(tell)
    rules = "eject_after: 3, breaker_failures: 0, breaker_percent: 0, retries: 0"
    gate = g.Gateway(t, config([bad, good], "  - { path: /, service: a }\n  - { path: /short, service: b }\n", f"eject_ms: 3600000, {rules}").replace(
        "routes:", f"  - {{ name: b, servers: ['{bad.address}', '{good.address}'], eject_ms: 200, {rules} }}\nroutes:"))
    codes = [ask(gate, "/")[0] for _ in range(40)]
    t.equal(codes.count(500), 3, "three failures, then its requests go to the other server")
    servers = {s["address"]: s for s in gate.service("a")["servers"]}
    t.equal((servers[bad.address]["state"], servers[good.address]["state"]), ("ejected", "up"), "status")
    f.wait_for("the same service with a short eject_ms", lambda: ask(gate, "/short") and gate.service("b")["servers"][0]["ejections"])
    state["bad"] = False
    f.wait_for("it to come back", lambda: ask(gate, "/short")[2] == bad.address.encode())
    t.check(all(ask(gate, "/")[2] != bad.address.encode() for _ in range(4)), "not where eject_ms is an hour")
    gate.stop()

    # Health checks
    answers = {"status": 200}

    def checked(up, peer, line, fields):
        peer.body(line, fields)
        g.reply(peer, answers["status"] if "healthz" in line else 200, up.address.encode())
    a, b = g.Upstream(checked), g.Upstream(tell)
    gate = g.Gateway(t, config([a, b], service="health_path: /healthz, health_ms: 100"))
    answers["status"] = 503
    f.wait_for("it to be down", lambda: [s["state"] for s in gate.service("a")["servers"]] == ["down", "up"])
    t.check(all(ask(gate, "/")[2] != a.address.encode() for _ in range(20)), "no request goes there")
    t.check("server_down" in gate.log(), "the log says so")
    answers["status"] = 204
    f.wait_for("it to be up", lambda: [s["state"] for s in gate.service("a")["servers"]] == ["up", "up"])
    gate.stop()


def breaker(t):
    state = {"status": 500}

    def flaky(up, peer, line, fields):
        up.keep(peer.body(line, fields))
        g.reply(peer, state["status"], b"x")
    up = g.Upstream(flaky)
    rules = "breaker_failures: 4, eject_after: 0, retries: 0"
    gate = g.Gateway(t, config([up], "  - { path: /, service: a }\n  - { path: /short, service: b }\n", f"breaker_open_ms: 600000, {rules}").replace(
        "routes:", f"  - {{ name: b, servers: ['{up.address}'], breaker_open_ms: 200, {rules} }}\nroutes:"))
    codes = [ask(gate, "/")[0] for _ in range(4)]
    t.equal(codes, [500] * 4, "failures pass")
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    status, low, body = c.answer()
    t.equal((status, body, low["content-type"]), (503, BREAKER_BODY, "application/json"), "then it is open")
    t.check(600 - f.LIMIT < int(low["retry-after"]) <= 600, f"Retry-After: {low}")
    t.equal(len(up.requests), 4, "and the server has peace")
    t.equal(gate.service("a")["breaker"], "open", "status")
    t.equal([ask(gate, "/short")[0] for _ in range(4)], [500] * 4, "the same with a short breaker_open_ms")
    t.equal(gate.service("b")["breaker_opened"], 1, "which opens, too")
    state["status"] = 200
    f.wait_for("it to close", lambda: ask(gate, "/short")[0] == 200)
    t.equal([ask(gate, "/short")[0] for _ in range(5)], [200] * 5, "and stay closed")
    t.equal(ask(gate, "/")[0], 503, "the other one is open")
    c.close()
    gate.stop()


def balancing(t):
    ups = [g.Upstream(tell) for _ in range(3)]
    gate = g.Gateway(t, config([f"{ups[0].address} weight=3", ups[1]], service="connections: 1") +
                     f"  - {{ path: /hash, service: b }}\n", serve=False)
    gate.wait()
    t.check("there is no service 'b'" in gate.log(), "a route without a service is refused")
    gate = g.Gateway(t, f"""loops: 1
services:
  - {{ name: a, servers: ['{ups[0].address} weight=3', '{ups[1].address}'] }}
  - {{ name: b, servers: ['{ups[0].address}', '{ups[1].address}', '{ups[2].address}'], balance: hash, hash_by: X-Key }}
routes:
  - {{ path: /, service: a }}
  - {{ path: /hash, service: b }}
""")
    servers = [ask(gate, "/")[2]["server"] for _ in range(40)]
    t.equal(servers.count(ups[0].address), 30, "by weight")
    by = {k: {ask(gate, "/hash", f"X-Key: {k}\r\n")[2]["server"] for _ in range(3)} for k in range(20)}
    t.check(all(len(v) == 1 for v in by.values()) and len(set.union(*by.values())) > 1, "by hash: one key, one server")
    gate.stop()


def hashing(t):
    """What requests of one server have in common, by each kind of hash_by."""
    ups = [g.Upstream(tell) for _ in range(3)]
    names = ", ".join(f"'{u.address}'" for u in ups)
    kinds = {"path": "path", "address": "address", "second": "'segment:2'", "first": "'segment:1'"}
    gate = g.Gateway(t, "trust: [127.0.0.1/32]\nservices:\n" +
                     "".join(f"  - {{ name: {k}, servers: [{names}], balance: hash, hash_by: {v} }}\n" for k, v in kinds.items()) +
                     "compositions: [{ name: tenant, rest: '/{id}', parts: ['x = second /tenants/{id}/orders'] }]\nroutes:\n" +
                     "".join(f"  - {{ path: /{k}, service: {k}, rewrite: / }}\n" for k in kinds) + "  - { path: /made, compose: tenant }\n")

    def servers(*paths, fields=""):
        return {ask(gate, p, fields)[2]["server"] for p in paths}

    def spread(sets, what):
        t.check(all(len(s) == 1 for s in sets) and len(set.union(*sets)) > 1, f"{what}: {sets}")

    def client(n):
        return f"X-Forwarded-For: 192.0.2.{n}\r\n"
    some = range(20)
    spread([servers(f"/path/{n}/x", f"/path/{n}/x?a=1", f"/path/{n}/x?b", fields=client(n)) for n in some], "path: the query does not count")
    t.check(len(servers(*(f"/path/7/{n}" for n in some))) > 1, "path: the whole of it does")
    spread([servers(f"/address/{n}", "/address/x", "/address", fields=client(n)) for n in some], "address: the path does not count")
    spread([servers(f"/second/tenants/{n}", f"/second/tenants/{n}/", f"/second/others/{n}/orders/5?n={n}", f"/second/tenants/{n};v=1/x",
                    f"/second/tenants/%3{n}/y", fields=client(n)) for n in range(10)], "segment:2 of what the service gets, in one spelling, without parameters")
    spread([servers(f"/first/{n}/x", f"/first/{n}") for n in some], "segment:1 behind the rewrite")
    for n in some:
        x = json.loads(g.get(gate.http, f"/made/{n}", client(n))[2])["x"]
        t.equal({x["server"]}, servers(f"/second/tenants/{n}"), "parts of a composed answer go to the same server")
    spread([servers("/second/tenants", "/second/", "/second/a/", fields=client(n)) for n in some], "without such a segment by address")
    gate.stop()


# --- clients that are slow or attack ---


SMUGGLING = [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nXY",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n\r\nX", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\nX", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\nHost: a\nContent-Length: 1\n\nX", "POST / HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 1\r\n\r\nX",
    "POST / HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 1\r\n\r\nX",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET //a/../.. HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%2e%2e/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
]
BAD_CHUNKS = ["g\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
              "5;\r\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\nGET /", "fffffffffffffffff\r\n",
              "-5\r\nhello", "5\r\nhello\r\n0\r\n folded\r\n\r\n"]


def smuggling(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    marker = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    for i, text in enumerate(SMUGGLING):
        c = g.Client(gate.http)
        c.ask(text + marker.replace("smuggled", f"smuggled/{i}"))
        status, low, _ = c.answer()
        t.check(400 <= status < 600, f"{text!r}: {status}")
        t.check(status in (400,) and "connection" not in low or c.ended(), f"{text!r}: nothing is read behind it")
        c.close()
        t.check(status == 400 or not any(r.target == f"/smuggled/{i}" for r in up.requests), f"{text!r}")
    for text in BAD_CHUNKS:
        c = g.Client(gate.http)
        c.ask("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + text + marker)
        status, _, _ = c.answer()
        t.check(status == 400 and c.ended(), f"{text!r}: {status}")
        c.close()
    # A GET with a body: it belongs to it, for both.
    c = g.Client(gate.http)
    c.ask(f"GET /body HTTP/1.1\r\nHost: a\r\nContent-Length: {len(marker)}\r\n\r\n{marker}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal((json.loads(c.answer()[2])["len"], json.loads(c.answer()[2])["target"]), (len(marker), "/next"), "a GET with a body")
    # Connection may name what it likes: framing and what the gateway adds stay.
    c.ask("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: Content-Length, Host, X-Forwarded-For, X-Request-ID\r\n\r\nhello")
    told = json.loads(c.answer()[2])
    t.check(told["len"] == 5 and values(told, "Host") == ["a"] and values(told, "X-Forwarded-For") == ["127.0.0.1"], f"{told}")
    t.check(len(values(told, "X-Request-ID")) == 1, "the request ID")
    c.close()
    t.check(gate.process.poll() is None, "it lives")
    gate.stop()


def slow(t):
    up = g.Upstream(shop)
    limits = "limits: { header_ms: 2000, body_ms: 400, idle_ms: 2000, write_ms: 700 }\n"  # 2 s from accept() to a head that is to be answered
    gate = g.Gateway(t, config([up], more=limits))
    silent, c = g.Client(gate.http), g.Client(gate.http)
    c.ask("GET / HTTP/1.1\r\nHost:")
    t.equal((c.answer()[0], c.ended()), (408, True), "half a head")
    t.check(silent.ended(), "nothing at all")
    c = g.Client(gate.http)
    c.ask("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal(c.answer()[0], 200, "an answer")
    t.check(c.ended(), "then nothing")
    c = g.Client(gate.http)
    c.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    t.equal((c.answer()[0], c.ended()), (408, True), "half a body")
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.1\r\nHost: a\r\n")
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end:  # a byte now and then wins no time
            c.send(b"A")
            time.sleep(0.05)
        t.check(False, "a head that never ends is refused")
    except f.Gone:
        t.check(True, "a head that never ends")
    c.close()
    c = g.Client(gate.http)
    c.ask(f"GET /bytes/{BIG} HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("a client that reads nothing to be given up", lambda: any(x["bytes_out"] and "error" in x for x in gate.lines()))
    c.close()
    idle = [g.Client(gate.http) for _ in range(200)]
    t.equal(ask(gate, "/bytes/1")[0], 200, "others are served meanwhile")
    for c in idle:
        c.close()
    f.wait_for("none to be left", lambda: gate.status()["connections"] == 0)
    gate.stop()


# --- changes while it runs ---


def load(gate, over, failures, counts, method="GET"):
    """Asks until it is over; every answer must be 200."""
    c = None
    while not over.is_set():
        try:
            if c is None:
                c = g.Client(gate.http)
            c.ask(f"{method} /n HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            status, low, _ = c.answer()
            counts.append(status)
            if status != 200:
                failures.append(status)
            if low.get("connection") == "close":
                c.close()
                c = None
        except (f.Gone, f.NotThere) as e:
            if over.is_set():
                break
            failures.append(repr(e))
            c = None
    if c:
        c.close()


def reload(t):
    a, b = g.Upstream(tell), g.Upstream(tell)
    gate = g.Gateway(t, config([a], more="watch: false\n"))
    over, failures, counts = threading.Event(), [], []
    threads = [threading.Thread(target=load, args=(gate, over, failures, counts)) for _ in range(4)]
    for x in threads:
        x.start()
    for i in range(10):
        gate.write(config([b if i % 2 == 0 else a, b], more="watch: false\n"))
        gate.signal(signal.SIGHUP)
        f.wait_for("the plan", lambda i=i: gate.status()["plan"] == i + 2)
        n = len(counts)
        f.wait_for("requests under it", lambda n=n: len(counts) > n + 20)
    over.set()
    for x in threads:
        x.join()
    t.equal(failures, [], f"no request is lost by ten reloads; {len(counts)} answered")
    gate.write(config([b], "  - { path: /, service: c }\n", more="watch: false\n"))
    gate.signal(signal.SIGHUP)
    f.wait_for("the refusal", lambda: gate.status()["reload_error"])
    t.check("there is no service 'c'" in gate.status()["reload_error"], "it says why")
    t.equal((gate.status()["plan"], ask(gate, "/")[0]), (11, 200), "and the old one goes on")
    gate.write(config([b], more="watch: true\n"))
    gate.signal(signal.SIGHUP)
    f.wait_for("the plan", lambda: gate.status()["plan"] == 12)
    t.equal(gate.status()["reload_error"], None, "the error is over")
    gate.write(config([a], more="watch: true\nlog: { access: false }\n"))
    f.wait_for("the file's change to be seen", lambda: gate.status()["plan"] == 13)
    t.equal(ask(gate, "/")[2]["server"], a.address, "and used")
    # A request that began under an old plan ends under it.
    gate.write(config([g.Upstream(shop)], more="watch: false\n"))
    f.wait_for("the plan", lambda: gate.status()["plan"] == 14)
    c = g.Client(gate.http)
    c.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
    f.wait_for("it to be in hand", lambda: gate.status()["requests_in_hand"] == 1)
    gate.write(config([a], more="watch: false\n"))
    gate.signal(signal.SIGHUP)
    f.wait_for("the plan", lambda: gate.status()["plan"] == 15)
    c.ask("world")
    t.equal(json.loads(c.answer()[2])["len"], 10, "a request across a reload")
    c.close()
    gate.stop()


REFUSES = r"""
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_calloc(size_t n, size_t size);
static atomic_int asked;
/* Of the loops' tables with so many entries every second one is refused, while there is a file of that name. */
void *calloc(size_t n, size_t size)
{
    const char *file = n == 777 && size == sizeof(void *) && gettid() != getpid() ? getenv("REFUSE") : NULL;
    return file && access(file, F_OK) == 0 && atomic_fetch_add(&asked, 1) % 2 == 1 ? NULL : __libc_calloc(n, size);
}
"""


def all_or_none(t):
    """A plan for which one loop has no memory is in force nowhere."""
    with open(os.path.join(t.bin, "firn-proxy"), "rb") as program:
        if re.search(rb"__[at]san_init", program.read()):
            print("*** a sanitizer's allocator cannot be replaced: a loop without memory was NOT TESTED")
            return
    source, library, file = t.state("refuses.c"), t.state("refuses.so"), t.state("refuse")
    with open(source, "w", encoding="ascii") as out:
        out.write(REFUSES)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True, timeout=f.LIMIT)
    up = g.Upstream(tell)
    before = config([up], "  - { path: /old, service: a }\n")
    after = config([up], "".join(f"  - {{ path: /new{n}, service: a, timeout_ms: 60000 }}\n" for n in range(776)))
    gate = g.Gateway(t, before, "--loops=2", env={"LD_PRELOAD": library, "REFUSE": file})

    def answers(path):
        return {g.get(gate.http, path)[0] for _ in range(64)}
    with open(file, "wb"):
        pass
    gate.write(after)
    gate.signal(signal.SIGHUP)
    f.wait_for("the reload to fail", lambda: gate.status()["reload_error"])
    t.equal((answers("/new1"), answers("/old"), gate.status()["plan"]), ({404}, {200}, 1), "no loop has the new plan")
    os.unlink(file)
    gate.signal(signal.SIGHUP)
    f.wait_for("the reload", lambda: gate.status()["plan"] == 2)
    t.equal((answers("/new1"), answers("/old")), ({200}, {404}), "then all have it")
    t.equal(gate.stop(), 0, "a clean end")


def drain(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    c, idle = g.Client(gate.http), g.Client(gate.http)
    idle.ask("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n")
    idle.answer()
    c.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
    f.wait_for("it to be in hand", lambda: gate.status()["requests_in_hand"] == 1)
    gate.signal(signal.SIGTERM)
    gate.wait_log("draining")
    t.check(idle.ended(), "idle connections end")
    c.ask("world")
    status, low, body = c.answer()
    t.equal((status, json.loads(body)["len"], low["connection"]), (200, 10, "close"), "requests in hand are finished")
    t.check(c.ended(), "and their connections end")
    t.equal(gate.wait(), 0, "then it ends")
    gate = g.Gateway(t, config([up], more="limits: { drain_ms: 300 }\n"))
    c = g.Client(gate.http)
    c.ask("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("it to be in hand", lambda: gate.status()["requests_in_hand"] == 1)
    t.equal(gate.stop(), 0, "drain_ms bounds it")
    c.close()
    gate = g.Gateway(t, config([up], more="limits: { notice_ms: 60000 }\n"))
    gate.signal(signal.SIGTERM)
    gate.wait_log("leaving")
    t.equal(f.get(gate.admin, "/readyz")[0], 503, "notice: balancers are told")
    t.equal(ask(gate, "/bytes/1")[1]["connection"], "close", "and clients")
    t.equal(gate.stop(), 0, "a second signal ends the notice")


# --- TLS, administration, settings ---


def certificates(t):
    run = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", t.state("key.pem"), "-out", t.state("cert.pem")]
    subprocess.run(run, check=True, capture_output=True, timeout=f.LIMIT)
    return t.state("cert.pem"), t.state("key.pem")


def tls(t):
    up = g.Upstream(shop)
    cert, key = certificates(t)
    inner = g.Gateway(t, config([up]) + f"tls: {{ cert: '{cert}', key: '{key}' }}\n", "--listen-https=127.0.0.1:0")
    outer = g.Gateway(t, f"""services:
  - {{ name: a, servers: ['{inner.https}'], tls: true, tls_ca: '{cert}', connect_ms: 60000 }}
  - {{ name: b, servers: ['{inner.https}'], tls: true, tls_ca: '{cert}', server_name: other.example, connect_ms: 60000, breaker_failures: 0 }}
routes: [{{ path: /, service: a }}, {{ path: /bad, service: b }}]
""")
    t.equal(g.get(outer.http, "/bytes/3000000")[2], g.pattern(3000000), "TLS to a server")
    data = g.pattern(2000000)
    c = g.Client(outer.http)
    c.ask(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    told = json.loads(c.answer()[2])
    t.equal(told["sha"], hashlib.sha256(data).hexdigest(), "and a body to it")
    t.equal(values(told, "X-Forwarded-Proto"), ["https"], "TLS from a client")
    c.close()
    t.equal(ask(outer, "/bad")[0], 503, "a certificate for another name is refused")
    said = subprocess.run(["curl", "-sS", "--cacert", cert, f"https://{inner.https}/bytes/70000"], capture_output=True, check=False,
                          timeout=f.LIMIT)
    t.equal(said.stdout, g.pattern(70000), f"curl: {said.stderr}")
    plain = g.Client(inner.https)
    plain.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    t.check(b"use https" in plain.answer()[2], "plaintext on a TLS port")
    plain.close()
    old = subprocess.run(["curl", "-sS", "--tls-max", "1.1", "-k", f"https://{inner.https}/"], capture_output=True, check=False, timeout=f.LIMIT)
    t.check(old.returncode != 0, "an old TLS")
    lines = f.wait_for("what refused clients leave", lambda: len(inner.refusals()) == 4 and inner.refusals())
    t.equal([(x["client"], "status" in x) for x in lines], [("127.0.0.1", False)] * 4, f"a line for each: /bad twice, plaintext, an old TLS: {lines}")
    t.check(any("plaintext" in x["error"] for x in lines) and all(x["error"] for x in lines), f"which say why: {lines}")
    t.check("firn_proxy_tls_errors_total 4\n" in f.get(inner.admin, "/metrics")[1], "and are counted")
    outer.stop()
    inner.stop()


def renewed(t):
    """A certificate that is renewed is shown without a signal; a broken one changes nothing, and is told."""
    up = g.Upstream(shop)
    cert, key = certificates(t)
    old = {}
    for path in (cert, key):
        with open(path, "rb") as text:
            old[path] = text.read()
    gate = g.Gateway(t, config([up]) + f"tls: {{ cert: '{cert}', key: '{key}' }}\n", "--listen-https=127.0.0.1:0")
    host, port = gate.https.split(":")

    def shown():
        return ssl.get_server_certificate((host, int(port)), timeout=f.LIMIT)

    def put(path, data):
        with open(path + ".new", "wb") as out:
            out.write(data)
        os.rename(path + ".new", path)
    t.equal(shown().split(), old[cert].decode().split(), "the first certificate")
    certificates(t)
    with open(cert, "rb") as new:
        want = new.read()
    f.wait_for("the renewed one", lambda: shown().split() == want.decode().split())
    put(cert, b"no certificate")
    f.wait_for("the broken one to be refused", lambda: "cert" in (gate.status()["reload_error"] or ""))
    t.equal(shown().split(), want.decode().split(), "the one before stays")
    put(key, old[key])
    put(cert, old[cert])
    f.wait_for("the first one again", lambda: shown().split() == old[cert].decode().split())
    f.wait_for("no error to be left", lambda: gate.status()["reload_error"] is None)
    gate.stop()


def client_certificates(t):
    """Both sides of mutual TLS: clients of the gateway, and the gateway as a client of its servers."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=f.LIMIT)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    with open(t.state("san"), "w", encoding="ascii") as out:
        out.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    for ca in ("ca", "stranger"):
        openssl("req", "-x509", *new, "-days", "2", "-subj", f"/CN={ca}", "-keyout", t.state(f"{ca}.key"), "-out", t.state(f"{ca}.pem"))
    for name, ca in (("server", "ca"), ("billing", "ca"), ("gateway", "ca"), ("other", "stranger")):
        openssl("req", *new, "-subj", f"/CN={name}", "-keyout", t.state(f"{name}.key"), "-out", t.state(f"{name}.csr"))
        openssl("x509", "-req", "-in", t.state(f"{name}.csr"), "-CA", t.state(f"{ca}.pem"), "-CAkey", t.state(f"{ca}.key"), "-CAcreateserial",
                "-days", "2", "-extfile", t.state("san"), "-out", t.state(f"{name}.pem"))
    p = {n: t.state(n) for n in ("ca.pem", "server.pem", "server.key", "gateway.pem", "gateway.key", "other.pem", "other.key")}
    up = g.Upstream(shop)
    inner = g.Gateway(t, config([up]) + f"tls: {{ cert: '{p['server.pem']}', key: '{p['server.key']}', client_ca: '{p['ca.pem']}' }}\n", "--listen-https=127.0.0.1:0")

    def curl(*certificate):
        said = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", p["ca.pem"], *certificate, f"https://{inner.https}/curl"],
                              capture_output=True, check=False, text=True, timeout=f.LIMIT)
        return said.returncode == 0, said.stdout
    t.equal(curl("--cert", t.state("billing.pem"), "--key", t.state("billing.key")), (True, "200"), "a client with a certificate")
    t.equal([x.get("cert") for x in f.wait_for("its line", inner.lines)], ["billing"], "the log names it")
    for certificate in ((), ("--cert", p["other.pem"], "--key", p["other.key"])):
        t.equal(curl(*certificate), (False, "000"), f"no certificate of the authority: {certificate}")
    t.check(all("certificate" in x["error"] for x in f.wait_for("their lines", lambda: len(inner.refusals()) == 2 and inner.refusals())), f"and why: {inner.refusals()}")
    t.equal([r.target for r in up.requests], ["/curl"], "only that request reached the server")
    more = f"tls: true, tls_ca: '{p['ca.pem']}', retries: 0, breaker_failures: 0, eject_after: 0"
    outer = g.Gateway(t, f"""services:
  - {{ name: a, servers: ['{inner.https}'], tls_cert: '{p['gateway.pem']}', tls_key: '{p['gateway.key']}', {more} }}
  - {{ name: none, servers: ['{inner.https}'], {more} }}
  - {{ name: other, servers: ['{inner.https}'], tls_cert: '{p['other.pem']}', tls_key: '{p['other.key']}', {more} }}
routes: [{{ path: /a, service: a }}, {{ path: /none, service: none }}, {{ path: /other, service: other }}]
""")
    status, low, told = ask(outer, "/a")
    t.equal((status, told["target"]), (200, "/a"), "the gateway shows its certificate")
    t.equal(("cert" in outer.line(low["x-request-id"]), [x["cert"] for x in f.wait_for("its line", lambda: inner.lines()[1:])]), (False, ["gateway"]), "whose name the other side logs")
    for path in ("/none", "/other"):
        t.check(ask(outer, path)[0] in (502, 503), f"{path}: is refused")
    t.equal([r.target for r in up.requests], ["/curl", "/a"], "and reached no server")
    outer.stop()
    inner.stop()


def admin(t):
    up = g.Upstream(shop)
    gate = g.Gateway(t, config([up]))
    for path in ("/bytes/1", "/status/404", "/status/500"):
        ask(gate, path)
    text = f.get(gate.admin, "/metrics")[1]
    for line in ('firn_proxy_requests_total{status="2xx"} 1', 'firn_proxy_requests_total{status="4xx"} 1',
                 f'firn_proxy_server_requests_total{{service="a",server="{up.address}"}} 3',
                 f'firn_proxy_server_errors_total{{service="a",server="{up.address}"}} 1', "firn_proxy_request_seconds_count 3"):
        t.check(line in text, f"metrics: {line}")
    t.equal([f.get(gate.admin, p)[0] for p in ("/healthz", "/readyz", "/nothing")], [200, 200, 404], "health")
    t.check(b"firn-proxy" in subprocess.run(["curl", "-sS", f"http://{gate.admin}/status"], capture_output=True, check=True).stdout, "curl")
    said = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect: 100-continue", "--data-binary", "@-",
                           f"http://{gate.http}/a"], input=g.pattern(500000), capture_output=True, check=False, timeout=f.LIMIT)
    t.equal(said.stdout, b"200", "curl with Expect")
    gate.stop()


REFERS = """services:
  - { name: products, servers: ['127.0.0.1:1'] }
  - { name: orders, servers: ['127.0.0.1:1'] }
tokens: [{ name: shop, secret_file: SECRET }]
rates: [{ name: minute, count: 1 }, { name: hour, count: 1 }]
compositions:
  - name: page
    parts:
      - 'x = orders /x'
routes:
  - name: a
    path: /a
    service: products
    rates: [minute, hour]
    token: shop
  - { name: b, path: /b, split: ['products 1', 'orders 1'] }
  - { name: c, path: /c, compose: page }
"""


def settings(t):
    def check(text):
        path = t.state("check.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", path], capture_output=True, text=True,
                              check=False, timeout=f.LIMIT)
        return said.returncode, said.stdout + said.stderr
    secret = t.state("check.secret")
    with open(secret, "w", encoding="ascii") as out:
        out.write("s" * 40)
    good = "services:\n  - { name: a, servers: ['127.0.0.1:1'] }\nroutes:\n  - { path: /, service: a }\n"
    t.equal(check(good)[0], 0, "a good file")
    for text, says in (
            (good.replace("servers", "servrs"), "check.yaml:2: services: there is no 'servrs'; did you mean servers (column 16)"),
            (good.replace("routes", "rutes"), "check.yaml:3: there is no setting 'rutes'; did you mean routes (column 1)"),
            (good.replace("path: /,", "path: /a/../b,"), "check.yaml:4: routes: 'route-1': path: '/a/../b' is not canonical; write /b (column 13)"),
            (good.replace("127.0.0.1:1", "x"), "check.yaml:2: services: 'a': servers: 'x' is no address"),
            (good.replace("service: a", "service: b"), "check.yaml:4: routes: 'route-1': service: there is no service 'b' in services (column 25)"),
            (good.replace("service: a", "service: a, request_set: ['Content-Length: 1']"), "'Content-Length' is the gateway's own"),
            (REFERS, None),
            (REFERS.replace("service: products", "service: product"),
             "check.yaml:13: routes: 'a': service: there is no service 'product' in services; did you mean products (column 14)"),
            (REFERS.replace("rates: [minute, hour]", "rates: [minute, hours]"), "check.yaml:14: routes: 'a': rates: there is no rate 'hours' in rates; did you mean hour (column 21)"),
            (REFERS.replace("token: shop", "token: shoq"), "check.yaml:15: routes: 'a': token: there is no token 'shoq' in tokens; did you mean shop (column 12)"),
            (REFERS.replace("'orders 1'", "'order 1'"), "check.yaml:16: routes: 'b': split: there is no service 'order' in services; did you mean orders (column 48)"),
            (REFERS.replace("compose: page", "compose: pages"), "check.yaml:17: routes: 'c': compose: there is no composition 'pages' in compositions; did you mean page (column 35)"),
            (REFERS.replace("= orders /x", "= orderz /x"), "check.yaml:9: compositions: 'page': parts: there is no service 'orderz' in services; did you mean orders (column 9)"),
            (REFERS.replace("service: products", "service: zebras"), "there is no service 'zebras' in services (column 14)"),
            (REFERS + "  - { name: d, path: /a, service: products }\n", "check.yaml:18: routes: 'd': path: it matches the same requests as 'a'"),
            (good + "trust: [10.0.0.1/8]\n", "'10.0.0.1/8' is no network"),
            (good + "listen: { https: ['127.0.0.1:0'] }\n", "listen.https: needs tls.cert (column 18)")):
        code, said = check(text.replace("SECRET", secret))
        t.check((code == 0) == (says is None) and (says or "ok") in said, f"{says}: {said}")


def named_files(t):
    """--check-config reads the certificates, keys and secrets that the configuration names, and points at the one that it cannot use."""
    def file(name, text):
        with open(os.path.join(t.dir, name), "w", encoding="ascii") as out:
            out.write(text)
        return os.path.join(t.dir, name)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=x",
                    "-keyout", t.state("pair.key"), "-out", t.state("pair.pem")], check=True, capture_output=True)
    pair, key = t.state("pair.pem"), t.state("pair.key")
    path = {"no": t.state("nothing"), "text": file("text", "text\n"), "empty": file("empty", "\n"), "secret": file("secret", "s" * 40), "pair": pair, "key": key}
    good = """services:
  - { name: a, servers: ['127.0.0.1:1'], tls: true, tls_ca: {pair},
      tls_cert: {pair},
      tls_key: {key} }
tokens:
  - { name: one, secret_file: {secret} }
  - { name: two,
      pem: {pair2} }
routes: [{ path: /, service: a, token: one }]
listen: { https: ['127.0.0.1:0'] }
tls:
  cert: {pair}
  key: {key}
  client_ca: {pair}
admin: { token_file: {secret} }
redis: { address: 'nobody.invalid:1', password_file: {secret} }
"""
    public = subprocess.run(["openssl", "x509", "-in", pair, "-noout", "-pubkey"], check=True, capture_output=True, text=True).stdout
    path["pair2"] = file("public.pem", public)

    def check(*changes):
        text = good
        for before, after in changes:
            t.check(before in text, before)
            text = text.replace(before, after)
        for name, is_ in path.items():
            text = text.replace("{%s}" % name, is_)
        said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", file("files.yaml", text)], capture_output=True, text=True,
                              check=False, timeout=f.LIMIT)
        return said.returncode, said.stdout + said.stderr
    t.equal(check()[0], 0, f"files that can be used; names of servers are not looked up: {check()}")
    for changes, says in (
            ([("tls_ca: {pair}", "tls_ca: {no}")], ":2: services: 'a': tls_ca: {no} cannot be used: No such file or directory (column 61)"),
            ([("tls_cert: {pair}", "tls_cert: {no}")], ":3: services: 'a': tls_cert: {no} cannot be used: No such file or directory (column 17)"),
            ([("tls_key: {key}", "tls_key: {text}")], ":4: services: 'a': tls_key: {text} cannot be used: "),
            ([("secret_file: {secret} }", "secret_file: {no} }")], ":6: tokens: 'one': secret_file: cannot read {no}: No such file or directory (column 31)"),
            ([("pem: {pair2}", "pem: {text}")], ":8: tokens: 'two': pem: "),
            ([("pem: {pair2}", "jwks: {text}")], ":8: tokens: 'two': jwks: "),
            ([("  key: {key}\n", "  key: {secret}\n")], ":13: tls.key: {secret} cannot be used: "),
            ([("  cert: {pair}\n", "  cert: {no}\n")], ":12: tls.cert: {no}: No such file or directory (column 9)"),
            ([("client_ca: {pair}", "client_ca: {text}")], ":14: tls.client_ca: {text} cannot be used: "),
            ([("token_file: {secret}", "token_file: {text}")], ":15: admin.token_file: the first line of {text} is too short"),
            ([("password_file: {secret}", "password_file: {empty}")], ":16: redis.password_file: {empty} is empty")):
        code, said = check(*changes)
        for name, is_ in path.items():
            says = says.replace("{%s}" % name, is_)
        t.check(code != 0 and f"files.yaml{says}" in said, f"{says}: {said}")


def documented(t):
    """The configuration and the requests that docs/gateway.md begins with."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/gateway.md"), encoding="utf-8") as page:
        text = re.search(r"<<'END'\n(.*?)END\n", page.read(), re.S)[1]
    up = g.Upstream(tell)
    gate = g.Gateway(t, text.replace("127.0.0.1:8001", up.address))
    t.equal(subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", gate.config_path], check=False,
                           stdout=subprocess.DEVNULL, timeout=f.LIMIT).returncode, 0, "--check-config")
    status, low, told = ask(gate, "/api/files/")
    t.equal((status, told["target"], "x-request-id" in low), (200, "/", True), "/api/files/ is / to the server")
    t.equal(gate.status()["services"][0]["name"], "files", "/status")
    gate.stop()


if __name__ == "__main__":
    with f.Test("gateway") as test:
        for part in (documented, settings, named_files, routing, fields, bodies, expect, upgrade, big, leavers, deaf, dying, statuses, bad_answers, retries, time_outs, crowd, ejection, breaker, balancing, hashing,
                     smuggling, slow, reload, all_or_none, drain, tls, renewed, client_certificates, admin):
            test.section(part)
