#!/usr/bin/env python3
"""
The cache of firn-proxy, in memory and in a real Redis: what is kept and for how long, for whom, one fetch for many, and a Redis
that is slow, wrong, gone or full of other values. The gateways' clock is the test's (libfaketime), where there is one.
"""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fakeclock  # noqa: E402  pylint: disable=wrong-import-position
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Server  # noqa: E402  pylint: disable=wrong-import-position
from engines.stopped import wait_stopped  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1024 * 1024
KEY = "cache:products:123"
PRODUCTS = "name: products, path: /api/products, rewrite: /products, service: a, cache_ttl_s: 300"


class Counter(g.Upstream):
    """Answers with the number of requests so far, what it saw, and the fields and the status that the query asks for."""

    def __init__(self):
        self.hold, self.gate = None, threading.Event()
        super().__init__(Counter.tell)

    def tell(self, peer, line, fields):
        r = self.keep(peer.body(line, fields))
        n = len(self.requests)
        path, _, query = r.target.partition("?")
        if self.hold == path:
            self.gate.wait(f.LIMIT)
        if query.startswith("die"):
            return False
        if query.startswith("big="):
            body = g.pattern(int(query[4:]))
        else:
            body = json.dumps({"n": n, "target": r.target, "fields": r.fields}).encode()
        lines, status = "Content-Type: application/json\r\n", "200"
        for part in query.split("&"):
            if part.startswith("f="):  # f=Name:value, with '_' for a space
                lines += urllib.parse.unquote(part[2:].replace(":", ": ").replace("_", " ")) + "\r\n"
            elif part.startswith("s="):
                status = part[2:]
        if status in ("204", "304"):
            body = b""
        peer.sock.sendall(f"HTTP/1.1 {status} Text\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode()
                          + (b"" if r.method == "HEAD" else body))
        return None


def config(up, route=PRODUCTS, how="memory", redis=None, more="", service="", loops=1):
    """With one loop requests are done in their order, and so are commands to Redis."""
    at = f"redis: {{ address: '127.0.0.1:{redis.port}', timeout_ms: {redis.wait_ms} }}\n" if redis else ""
    return f"services: [{{ name: a, servers: ['{up.address}'], {service} }}]\nroutes: [{{ {route}, cache: {how} }}]\nloops: {loops}\n{at}{more}"


def begun(t, text, *args, **more):
    """A gateway whose loops have their connections to Redis, if it has one: before that nothing is kept there."""
    gate = g.Gateway(t, text, *args, **more)
    return gate.wait_redis() if gate.status()["redis"] else gate


def ask(gate, path="/api/products/123", fields="", method="GET"):
    """(X-Cache, status, body)."""
    status, low, body = g.get(gate.http, path, fields, method)
    return low.get("x-cache"), status, body


def told(body):
    return json.loads(body)["n"]


class Ended:
    """In the test's list of processes, which ends what is still there."""

    def __init__(self, server):
        self.server, self.pid, self.log = server, server.process.pid, server.log_end

    def signal(self, number):
        pass

    def kill(self):
        self.server.stop()


def redis_of(t, wait_ms=20000):
    s = Server(tempfile.mkdtemp(dir=t.dir), appendonly="no")
    s.start()
    s.wait_ms = wait_ms
    t.running.append(Ended(s))
    return s


def both(t, part):
    """In memory alone, and in Redis without memory."""
    part(t, "memory", None, "")
    redis = redis_of(t)
    part(t, "redis", redis, "cache: { memory_mb: 0 }\n")


# --- what is kept ---


def kept(t, how, redis, more):
    up = Counter()
    gate = begun(t, config(up, how=how, redis=redis, more=more))
    first = ask(gate)
    t.equal((first[0], told(first[2])), ("MISS", 1), "the first is fetched")
    again = ask(gate, fields="X-Request-ID: other\r\n")
    t.equal(again, ("HIT", 200, first[2]), "the second is not")
    status, low, body = g.get(gate.http, "/api/products/123", method="HEAD")
    t.equal((status, low["x-cache"], int(low["content-length"]), body), (200, "HIT", len(first[2]), b""), "HEAD of what GET fetched")
    status, low, body = g.get(gate.http, "/api/products/123")
    t.check(low["x-request-id"] != "" and int(low["age"]) >= 0 and low["content-type"] == "application/json", "fields")
    t.equal(gate.line(low["x-request-id"])["cache"], "HIT", "the access log")
    for path in ("/api/products/124", "/api/products/123/", "/api/products", "/api/products/", "/api/products/123?a=1", "/api/products/123?",
                 "/api/products/12%33/x", "/api/products/123:host=x", "/api/products/123%3Fa=1"):
        t.equal(ask(gate, path)[0], "MISS", f"another key: {path}")
    t.equal(ask(gate, "/api//products/./12%33")[0], "HIT", "the same path in another spelling")
    n = len(up.requests)
    for what, fields, method in (("POST", "Content-Length: 0\r\n", "POST"), ("Authorization", "Authorization: Bearer x\r\n", "GET"),
                                 ("Cookie", "Cookie: a=1\r\n", "GET"), ("Range", "Range: bytes=0-1\r\n", "GET"),
                                 ("no-store", "Cache-Control: max-age=5, no-store\r\n", "GET"), ("If-Match", 'If-Match: "a"\r\n', "GET"),
                                 ("a method in a header", "X-HTTP-Method-Override: DELETE\r\n", "GET"),
                                 ("a path in a header", "X-Original-URL: /admin\r\n", "GET"),
                                 ("a body", "Content-Length: 1\r\n\r\nx", "GET")):
        t.equal(ask(gate, "/api/products/9", fields, method)[0], "BYPASS", what)
    t.equal((len(up.requests) - n, ask(gate, "/api/products/9")[0]), (9, "MISS"), "none of them was kept")
    for query in ("f=Cache-Control:no-store", "f=Cache-Control:private", "f=Cache-Control:no-cache", "f=Set-Cookie:a=1", "f=Vary:Origin",
                  "f=Vary:*", "s=500", "s=302", "s=404", "s=501", "f=Cache-Control:max-age=0", "f=Cache-Control:max-age=60&f=Age:60", "f=Content-Encoding:br",
                  "f=Expires:0", "f=Cache-Control:max-age=x"):
        t.equal([ask(gate, f"/api/products/123?{query}")[0] for _ in range(2)], ["MISS", "MISS"], query)
    for query in ("s=404&f=Cache-Control:max-age=60", "s=301", "f=Cache-Control:public,_max-age=60", "f=Vary:accept-encoding", "s=204", "f=Age:7"):
        t.equal([ask(gate, f"/api/products/123?{query}")[0] for _ in range(2)], ["MISS", "HIT"], query)
    t.check(int(g.get(gate.http, "/api/products/123?f=Age:7")[1]["age"]) >= 7, "Age counts what it was before")
    n = len(up.requests)
    for fields, says in (("Cache-Control: no-cache\r\n", "MISS"), ("Cache-Control: max-age=0\r\n", "MISS"), ("Pragma: no-cache\r\n", "MISS"),
                         ("Cache-Control: min-fresh=301\r\n", "MISS"), ("Cache-Control: min-fresh=10\r\n", "HIT")):
        t.equal(ask(gate, fields=fields)[0], says, fields)
    t.equal((len(up.requests) - n, told(ask(gate)[2])), (4, n + 4), "fetched anew, and kept anew")
    t.equal([ask(gate, f"/api/products/{p}", "Cache-Control: only-if-cached\r\n")[1] for p in ("123", "77")], [200, 504], "only-if-cached")
    gate.stop()
    up.close()


def rules(t):
    both(t, kept)


def conditions(t):
    """The server is asked for the whole; the gateway compares."""
    up = Counter()
    gate = g.Gateway(t, config(up))
    path = '/api/products/1?f=ETag:%22x%22'
    status, low, body = g.get(gate.http, path, 'If-None-Match: "x"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Encoding: gzip\r\n')
    t.equal((status, low["x-cache"]), (200, "MISS"), "a miss is whole")
    r = up.requests[-1]
    t.equal(r.values("If-None-Match") + r.values("If-Modified-Since") + r.values("Accept-Encoding"), [], "what the server is asked")
    for tag, want in (('"x"', 304), ('W/"x"', 304), ('"y", "x"', 304), ("*", 304), ('"y"', 200), ("x", 200)):
        status, low, got = g.get(gate.http, path, f"If-None-Match: {tag}\r\n")
        t.equal((status, low["x-cache"], low["etag"], got), (want, "HIT", '"x"', b"" if want == 304 else body), tag)
    gate.stop()
    gate = g.Gateway(t, config(up, PRODUCTS + ", cache_vary: [Accept-Language, host], gzip: on, answer_set: ['X-A: 1'], answer_rename: ['n: number']",
                               more="gzip: { min_bytes: 0 }\n"))
    for fields, says in (("", "MISS"), ("Accept-Language: de\r\n", "MISS"), ("Accept-Language: de\r\n", "HIT"), ("Accept-Language:\r\n", "MISS"),
                         ("", "HIT"), ("Accept-Language: de\r\nAccept-Language: en\r\n", "MISS"), ("Accept-Language: de, en\r\n", "HIT")):
        t.equal(ask(gate, "/api/products/1?f=Vary:accept-language", fields)[0], says, f"vary: {fields}")
    status, low, body = g.get(gate.http, "/api/products/1?f=Vary:accept-language", "Accept-Encoding: gzip\r\n")
    t.equal((low["x-cache"], low["content-encoding"], low["x-a"]), ("HIT", "gzip", "1"), "a hit passes the other links")
    t.check(b'"number"' in ask(gate, "/api/products/1?f=Vary:accept-language")[2], "JSON mapping, too")
    gate.stop()
    up.close()


def people(t):
    """Never across users, unless the route says so."""
    up = Counter()
    gate = g.Gateway(t, f"""loops: 1
services: [{{ name: a, servers: ['{up.address}'] }}]
rates: [{{ name: tenant, count: 1000, period_s: 3600, by: 'header:X-Tenant' }}]
routes:
  - {{ name: counted, path: /counted, service: a, cache: memory, cache_ttl_s: 300, rates: [tenant] }}
  - {{ name: plain, path: /plain, service: a, cache: memory, cache_ttl_s: 300 }}
  - {{ name: public, path: /public, service: a, cache: memory, cache_ttl_s: 300, cache_public: true }}
  - {{ name: mine, path: /mine, service: a, cache: memory, cache_ttl_s: 300, cache_by_user: true, request_set: ['X-User-ID: 456'] }}
  - {{ name: nobody, path: /nobody, service: a, cache: memory, cache_ttl_s: 300, cache_by_user: true }}
  - {{ name: user, path: /user, service: a, cache: memory, cache_ttl_s: 300, request_set: ['X-User-ID: 456'] }}
""")
    for path, fields, says in (("/plain", "Authorization: a\r\n", "BYPASS"), ("/plain", "Authorization: a\r\n", "BYPASS"), ("/plain", "", "MISS"),
                               ("/plain", "", "HIT"), ("/plain", "Authorization: a\r\n", "BYPASS"), ("/plain", "X-User-ID: 1\r\n", "HIT"),
                               ("/public", "Authorization: a\r\n", "MISS"), ("/public", "Authorization: b\r\nCookie: x\r\n", "HIT"),
                               ("/mine", "Authorization: a\r\n", "MISS"), ("/mine", "Authorization: b\r\n", "HIT"),
                               ("/nobody", "Authorization: a\r\n", "BYPASS"), ("/nobody", "", "MISS"), ("/nobody", "", "HIT"),
                               ("/plain", "X-Api-Key: a\r\n", "BYPASS"), ("/plain", "X_Auth_Token: a\r\n", "BYPASS"),
                               ("/counted", "X-Tenant: a\r\n", "BYPASS"), ("/counted", "", "MISS"), ("/counted", "X-Tenant: b\r\n", "BYPASS"),
                               ("/user", "", "BYPASS")):
        t.equal(ask(gate, path, fields)[0], says, f"{path} {fields}")
    gate.stop()
    up.close()


def poison(t):
    """What a client makes up is a part of the key or does not reach the server: nobody else gets its answer."""
    redis = redis_of(t)
    up = Counter()
    for how in ("memory", "redis"):
        gate = begun(t, config(up, how=how, redis=redis))
        path = f"/api/products/{how}"

        def seen(host, fields=""):
            c = g.Client(gate.http)
            c.ask(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
            _, low, body = c.answer()
            c.close()
            return low["x-cache"], {n.lower(): v for n, v in json.loads(body)["fields"]}
        t.equal(seen("evil.example")[0], "MISS", "an attacker comes first")
        says, fields = seen("shop.example")
        t.equal((says, fields["host"], fields["x-forwarded-host"]), ("MISS", "shop.example", "shop.example"), "another Host, another answer")
        t.equal(seen("SHOP.example")[0], "HIT", "hosts have no case")
        for lie in ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-For: 1.2.3.4", "Forwarded: host=evil",
                    "X_Forwarded_Host: evil.example", "X-Forwarded-Prefix: /evil"):
            says, fields = seen("shop.example", lie + "\r\n")
            t.check(says == "HIT" and "evil" not in json.dumps(fields), f"{lie}: {says} {fields}")
        for lie in ("X-Host: evil.example", "X-Rewrite-URL: /evil", "X-HTTP-Method: PUT", "X-Original-Host: evil", "X_Rewrite.URL: /evil", "Front-End-Https: off",
                    "X-Scheme: http"):
            t.equal(seen("shop.example", lie + "\r\n")[0], "BYPASS", lie)
        evil = path + "?f=Access-Control-Allow-Origin:https%3A//evil.example"
        t.equal([ask(gate, evil, "Origin: https://evil.example\r\n")[0] for _ in range(2)], ["MISS"] * 2, "an answer for one origin is not kept")
        t.equal([ask(gate, path + f"{how}?f=Access-Control-Allow-Origin:*")[0] for _ in range(2)], ["MISS", "HIT"], "one for all is")
        gate.stop()
    f.wait_for("the key in Redis, which has no Host", lambda: [k for k in redis.do("KEYS", "*") if b"?" not in k] == [b"cache:products:redis"])
    gate = begun(t, config(up, how="redis", redis=redis, more="cache: { memory_mb: 0 }\ntrust: [127.0.0.1]\n"))
    for proto, says in (("http", "MISS"), ("https", "MISS"), ("https", "HIT")):
        t.equal(ask(gate, "/api/products/5", f"X-Forwarded-Proto: {proto}\r\n")[0], says, f"a proxy that is believed: {proto}")
    for told_before, says in (("for=1.2.3.4;host=evil", "MISS"), ("for=1.2.3.4;Host=shop.example", "MISS"), ("for=5.6.7.8;host=SHOP.example", "HIT"),
                              ("for=5.6.7.8, for=1.2.3.4;proto=http;host=evil", "MISS"), ("for=5.6.7.8", "MISS"), ("for=1.2.3.4", "HIT")):
        t.equal(ask(gate, "/api/products/5", f"Forwarded: {told_before}\r\n")[0], says, f"hosts in Forwarded that are believed: {told_before}")
    for path in ("/api/products/x%3Ahost=y", "/api/products/x:host=y", "/api/products/%2A", "/api/products/x%20SET"):
        ask(gate, path)
    keys = {"cache:products:redis", "cache:products:5", "cache:products:x%3Ahost%3Dy", "cache:products:x%253Ahost%3Dy", "cache:products:%252A",
            "cache:products:x%2520SET"}
    f.wait_for("keys with encoded parts", lambda: {k.decode() for k in redis.do("KEYS", "*") if b"?" not in k} == keys)
    gate.stop()
    up.close()


def loops(t):
    """All loops share the memory."""
    up = Counter()
    gate = g.Gateway(t, config(up, loops=4))
    f.wait_for("it to be kept", lambda: ask(gate)[0] == "HIT")
    n = len(up.requests)
    t.equal(({ask(gate)[0] for _ in range(40)}, len(up.requests)), ({"HIT"}, n), "every loop has it")
    gate.stop()
    up.close()


# --- time, gateways ---


def time_passes(t):
    """The mission's numbers: the key, 300 s, two gateways; by a clock that the test moves."""
    clock, why = fakeclock.find_library(t)
    redis = redis_of(t)
    up = Counter()
    text = config(up, how="redis", redis=redis)
    gates = [begun(t, text, env=clock.env() if clock else None) for _ in range(2)]
    t.equal([ask(gates[0])[0], ask(gates[0])[0]], ["MISS", "HIT"], "one gateway")
    f.wait_for("the key", lambda: redis.do("KEYS", "*") == [KEY.encode()])
    t.equal(ask(gates[1])[0], "HIT", "two gateways, one fetch")
    left = redis.do("PTTL", KEY)
    t.check(0 < left <= 300000, f"its TTL: {left} ms")
    t.check(left > 300000 - f.LIMIT * 1000, f"300 s, less what this took: {left} ms")
    if clock:
        clock.set(150)
        t.equal([ask(x)[0] for x in gates], ["HIT", "HIT"], "fresh before")
        t.check(int(g.get(gates[0].http, "/api/products/123")[1]["age"]) >= 150, "Age")
        clock.set(300)
        t.equal(told(ask(gates[0])[2]), 2, "fetched anew after 300 s, though Redis has it still")
        f.wait_for("Redis to have it", lambda: b'"n": 2' in redis.do("GET", KEY))
        t.equal(ask(gates[1])[0], "HIT", "and kept for the other")
        clock.set(0)
        t.equal(ask(gates[0])[0], "MISS", "a value from the future is not believed")
    else:
        t.say(f"the clock is not moved: {why}")
    for x in gates:
        x.stop()
    gate = begun(t, config(up, how="redis", redis=redis, more="cache: { memory_s: 0 }\n"))
    says, _, body = ask(gate)
    f.wait_for("Redis to have it", lambda: body in (redis.do("GET", KEY) or b""))
    redis.do("PEXPIRE", KEY, 1)
    f.wait_for("the key to be gone", lambda: redis.do("EXISTS", KEY) == 0)
    t.equal(ask(gate)[0], "MISS", "what Redis lets expire is gone")
    t.equal(ask(gate)[0], "HIT", "and comes back")
    f.wait_for("Redis to have it", lambda: redis.do("EXISTS", KEY) == 1)
    redis.do("DEL", KEY)
    t.equal(ask(gate)[0], "MISS", "deleted by hand")
    gate.stop()
    gate = begun(t, config(up, how="redis", redis=redis, more=""), "--redis-prefix=eu:")
    ask(gate)
    f.wait_for("redis.prefix", lambda: redis.do("EXISTS", "eu:" + KEY) == 1)
    gate.stop()
    up.close()


# --- one fetch for many ---


def many(t):
    up = Counter()
    gate = g.Gateway(t, config(up, more="cache: { wait_ms: 3600000 }\n"))

    def crowd(path, n=20):
        clients = [g.Client(gate.http) for _ in range(n)]
        before = len(up.requests)
        for c in clients:
            c.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
        f.wait_for("all to be in hand", lambda: gate.status()["requests_in_hand"] == n)
        f.wait_for("one to be fetched", lambda: len(up.requests) > before)
        return clients, before
    up.hold = "/products/1"
    clients, before = crowd("/api/products/1")
    t.equal(len(up.requests) - before, 1, "one fetch for 20")
    up.gate.set()
    answers = [c.answer() for c in clients]
    t.equal(sorted(low["x-cache"] for _, low, _ in answers), ["HIT"] * 19 + ["MISS"], "one miss")
    t.equal(({body for _, _, body in answers} == {answers[0][2]}, len(up.requests) - before), (True, 1), "all have its answer")
    up.gate.clear()
    up.hold = "/products/2"
    for c in clients:
        c.close()
    clients, before = crowd("/api/products/2")
    clients[0].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    clients[0].close()  # it fetches
    f.wait_for("the next to fetch", lambda: len(up.requests) - before == 2)
    clients[1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    clients[1].close()
    f.wait_for("the one after it", lambda: len(up.requests) - before == 3)
    clients[7].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    clients[7].close()  # one that waits
    f.wait_for("17 to be left", lambda: gate.status()["requests_in_hand"] == 17)
    up.gate.set()
    rest = [c.answer() for i, c in enumerate(clients) if i not in (0, 1, 7)]
    t.equal((sorted(low["x-cache"] for _, low, _ in rest), len(up.requests) - before), (["HIT"] * 16 + ["MISS"], 3), "17 are answered")
    up.gate.clear()
    up.hold = "/products/3"
    for c in clients:
        c.close()
    clients, before = crowd("/api/products/3?f=Cache-Control:no-store", 10)
    up.gate.set()
    t.equal({c.answer()[1]["x-cache"] for c in clients}, {"MISS"}, "what may not be shared is not")
    t.equal(len(up.requests) - before, 10, "each has its own")
    for c in clients:
        c.close()
    up.gate.clear()
    clients, before = crowd("/api/products/3?die", 10)
    up.gate.set()
    t.equal({c.answer()[0] for c in clients}, {502}, "a fetch that dies leaves nobody waiting")
    for c in clients:
        c.close()
    gate.stop()
    up.gate.clear()
    up.hold = "/products/4"
    gate = g.Gateway(t, config(up, more="cache: { wait_ms: 50 }\n"))
    clients, before = crowd("/api/products/4", 5)
    f.wait_for("those that waited long enough to ask for themselves", lambda: len(up.requests) - before == 5)
    up.gate.set()
    t.equal({c.answer()[0] for c in clients}, {200}, "wait_ms")
    for c in clients:
        c.close()
    text = f.get(gate.admin, "/metrics")[1]
    t.check('firn_proxy_cache_total{route="products",result="miss"} 5' in text, "metrics")
    gate.stop()
    up.close()


def sizes(t):
    """Bounds, and clients that do not read."""
    up = Counter()
    gate = g.Gateway(t, config(up, more="cache: { memory_mb: 9, entry_kb: 4096 }\n"))
    for n, says in ((4 * MIB, "HIT"), (4 * MIB + 1, "MISS"), (0, "HIT"), (65536, "HIT")):
        answers = [ask(gate, f"/api/products/1?big={n}") for _ in range(2)]
        t.equal((answers[1][0], answers[0][2] == g.pattern(n), answers[1][2] == g.pattern(n)), (says, True, True), f"{n} bytes")
    for n in range(40):
        ask(gate, f"/api/products/{n}?big=300000")
    status = gate.status()["links"]["cache"]
    t.check(0 < status["bytes"] <= 9 * MIB and status["entries"] >= 20, f"memory is bounded: {status}")
    t.check("firn_proxy_cache_evicted_total" in f.get(gate.admin, "/metrics")[1], "evictions are counted")
    ask(gate, "/api/products/1?big=4194304")
    before = gate.rss()
    deaf = [g.Deaf(gate.http) for _ in range(20)]
    for c in deaf:
        c.ask("GET /api/products/1?big=4194304 HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    f.wait_for("them to be in hand", lambda: gate.status()["requests_in_hand"] == 20)
    t.check(gate.rss() < before + 40 * MIB, "20 clients share one value of 4 MiB")
    for n in range(40):  # evicted while it is sent
        ask(gate, f"/api/products/{n}?big=300000")
    for c in deaf[:10]:
        c.hear()
    t.equal({c.answer()[2] == g.pattern(4 * MIB) for c in deaf[:10]}, {True}, "those that read late get all of it")
    for c in deaf:
        c.close()
    f.wait_for("all to be gone", lambda: gate.status()["requests_in_hand"] == 0)
    gate.write(config(up, more="", route=PRODUCTS.replace("300", "60")))
    gate.signal(signal.SIGHUP)
    gate.wait_log("reloaded")
    t.check('firn_proxy_cache_total{route="products",result="hit"}' in f.get(gate.admin, "/metrics")[1], "counters outlive a reload")
    gate.stop()
    up.close()


# --- Redis in trouble ---


def trouble(t):
    seed = random.randrange(1 << 32)
    t.say(f"seed {seed}")
    rng = random.Random(seed)
    redis = redis_of(t)
    up = Counter()
    gate = begun(t, config(up, how="redis", redis=redis, more="cache: { memory_mb: 0 }\n"))

    def settled(body):
        """The gateway's own write has arrived, so that it does not undo the test's."""
        f.wait_for("Redis to have the answer", lambda: body in (redis.do("GET", KEY) or b""))
        return redis.do("GET", KEY)
    good = ask(gate)[2]
    value = settled(good)
    t.check(value.startswith(b"firn-cache 1 ") and good in value, "the value can be read by people")
    for n in range(30):
        bad = bytearray(value)
        at = rng.randrange(len(bad))
        if n % 3 == 0:
            bad[at] ^= 1 << rng.randrange(8)
        elif n % 3 == 1:
            del bad[at:]
        else:
            bad[at:at] = bytes([rng.randrange(256)])
        redis.do("SET", KEY, bytes(bad))
        says, status, body = ask(gate)
        t.check(says == "MISS" and status == 200 and told(body) == len(up.requests), f"a changed value is a miss: {bytes(bad)!r}")
        settled(body)
    redis.do("SET", KEY, value.replace(b"firn-cache 1 ", b"firn-cache 2 "))
    says, _, body = ask(gate)
    t.equal(says, "MISS", "a value of another version")
    settled(body)
    redis.do("DEL", KEY)
    redis.do("LPUSH", KEY, "x")
    t.equal([ask(gate)[0], ask(gate)[0]], ["MISS", "HIT"], "a value of another type is replaced")
    redis.do("SET", "cache:products:124", value)
    t.equal(ask(gate, "/api/products/124")[0], "MISS", "a value that was copied under another key")
    redis.do("CONFIG", "SET", "maxmemory", "1")
    t.equal([ask(gate, "/api/products/full")[:2] for _ in range(2)], [("MISS", 200)] * 2, "a Redis that is full")
    redis.do("CONFIG", "SET", "maxmemory", "0")
    t.check("firn_proxy_cache_unshared_total" in f.get(gate.admin, "/metrics")[1], "is counted")
    redis.stop()
    t.equal([ask(gate)[:2] for _ in range(5)], [("MISS", 200)] * 5, "no Redis")
    redis.start()
    f.wait_for("Redis to be used again", lambda: ask(gate)[0] == "HIT")
    gate.stop()
    redis.wait_ms = 30
    gate = begun(t, config(up, how="redis", redis=redis, more="cache: { memory_mb: 0 }\n"))
    f.wait_for("the connection", lambda: ask(gate)[0] == "HIT")
    redis.process.send_signal(signal.SIGSTOP)
    wait_stopped([redis.process.pid])
    t.equal([ask(gate)[:2] for _ in range(5)], [("MISS", 200)] * 5, "a Redis that does not answer")
    redis.process.send_signal(signal.SIGCONT)
    f.wait_for("it to be used again", lambda: ask(gate)[0] == "HIT")
    gate.stop()
    up.close()


# --- what must not be cached ---


def minting(t):
    up = Counter()
    gate = g.Gateway(t, config(up, "name: r, path: /, service: a, cache_ttl_s: 300, cache_ignore_control: true"))
    for path in ("/generate", "/v1/ids/snowflake", "/v1/sequences/orders/next", "/v1/leases", "/v1//ids/../ids/tsid"):
        t.equal([ask(gate, path)[0] for _ in range(2)], ["BYPASS"] * 2, path)
    t.equal([ask(gate, "/v1/inspect/1")[0] for _ in range(2)], ["MISS", "HIT"], "what mints nothing")
    t.equal([ask(gate, "/a?f=Cache-Control:no-cache")[0] for _ in range(2)], ["MISS", "HIT"], "cache_ignore_control")
    t.equal([ask(gate, "/a?f=Cache-Control:no-store")[0] for _ in range(2)], ["MISS", "MISS"], "no-store counts even then")
    gate.stop()

    def check(route, service="", more=""):
        path = t.state("check.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(config(up, route, service=service, more=more))
        said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", path], capture_output=True, text=True, check=False,
                              timeout=f.LIMIT)
        return said.returncode, said.stdout + said.stderr
    for route, service, says in (
            ("path: /ids, rewrite: /generate, service: a", "", "'route-1': cache: a route that hands out IDs cannot be cached: a cached ID is a duplicate ID"),
            ("path: /generate, service: a", "", "hands out IDs"), ("path: /v1, service: a", "", "hands out IDs"),
            ("path: /x, rewrite: /v1/sequences/orders, service: a", "", "hands out IDs"),
            ("path: /x, service: a", "mints: true", "service 'a' hands out IDs (mints: true) and cannot be cached"),
            ("path: /x, service: a, cache_public: true, cache_by_user: true", "", "keep one"),
            ("path: /x, service: a, cache_ignore_control: true", "", "needs a TTL"),
            ("path: /x, service: a, cache_vary: ['a b']", "", "'a b' is no name of a header"),
            ("path: /x, service: a, cache_ttl_s: 99999999", "", "cache_ttl_s"),
            ("path: /x, service: a, answer_rename: [a]", "", "write 'path.of.member: new_name'"),
            ("path: /x, service: a, answer_drop: ['a..b']", "", "a path is names with a dot between them"),
            ("path: /x, service: a, fault_abort_status: 100", "", "the status must be 200 to 599")):
        code, said = check(route, service)
        t.check(code != 0 and says in said, f"{route}: {says}: {said}")
    t.equal(check("path: /x, service: a")[0], 0, "a good one")
    code, said = check("path: /x, service: a", more="")
    path = t.state("check.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(config(up, "path: /x, service: a", how="redis"))
    said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", path], capture_output=True, text=True, check=False, timeout=f.LIMIT)
    t.check(said.returncode != 0 and "needs redis.address" in said.stdout + said.stderr, "cache: redis without a Redis")
    up.close()


if __name__ == "__main__":
    with f.Test("gateway_cache") as test:
        for part in (rules, conditions, people, poison, loops, time_passes, many, sizes, trouble, minting):
            test.section(part)
