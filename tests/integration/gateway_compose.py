#!/usr/bin/env python3
"""
Composed answers: parts in parallel, their shapes for several clients, parts that fail, are slow, too large or no JSON, values that
try to become something else, and clients that go away.
"""
import json
import os
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position

CONFIG = """
services:
  - {{ name: users, servers: ['{users}'], retries: 0, breaker_failures: 0, eject_after: 0 }}
  - {{ name: orders, servers: ['{orders}'], retries: 0, breaker_failures: 0, eject_after: 0 }}
compositions:
  - name: web
    rest: '/{{user}}'
    timeout_ms: {timeout}
    part_bytes: 65536
    answer_bytes: 100000
    parts:
      - 'user = users /users/{{user}}'
      - 'orders = orders /orders?user={{user}}&limit={{query:limit}}&me={{header:X-Me}}'
    shape:
      - 'id = user.id'
      - 'profile.name = user.name'
      - 'profile.city = user.address.city'
      - 'orders = orders.items {{id, when = created_at, product = lines.0 {{sku}}}}'
  - name: mobile
    rest: '/{{user}}'
    timeout_ms: 60000
    parts: ['user = users /users/{{user}}', 'orders = orders /orders?user={{1}}&limit=1']
    shape: ['name = user.name', 'last = orders.items.0.id']
  - name: whole
    timeout_ms: 60000
    parts: ['user = users /users/7', 'orders = orders GET /orders?user=7']
  - name: chain
    rest: '/{{user}}'
    timeout_ms: 60000
    parts:
      - 'user = users /users/{{user}}'
      - 'city = users /cities/{{user.address.city}}'
      - 'near = users /near/{{city.id}}'
  - name: must
    rest: '/{{user}}'
    required: [user]
    timeout_ms: 60000
    parts: ['user = users /users/{{user}}', 'orders = orders /orders']
  - name: filter
    rest: '/{{user}}'
    timeout_ms: {timeout}
    parts:
      - 'user = users /users/{{user}}'
      - 'orders = orders /orders?user={{user.id}}&limit={{query:limit}}'
      - 'mine = orders /orders?limit=1&user={{header:X-Me}}'
routes:
  - {{ name: web, path: /bff/users, compose: web }}
  - {{ name: mobile, path: /bff/users, headers: ['X-Client: mobile'], compose: mobile }}
  - {{ path: /bff/whole, compose: whole }}
  - {{ path: /bff/chain, compose: chain }}
  - {{ path: /bff/must, compose: must }}
  - {{ path: /bff/filter, compose: filter }}
  - {{ path: /users, service: users }}
"""


class Shop:
    """Two services. `special`: what they do for a target instead; `hold`: answers wait for it."""

    def __init__(self):
        self.hold, self.held, self.gone = threading.Event(), threading.Event(), threading.Event()
        self.users, self.orders = g.Upstream(self.answer), g.Upstream(self.answer)

    def asked(self):
        return [r.target for s in (self.users, self.orders) for r in s.requests]

    def answer(self, up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        path = r.target.split("?")[0]
        last = path.rsplit("/", 1)[1]
        if last == "stuck" or "user=stuck" in r.target and path == "/orders":
            self.held.set()
            if not peer.sock.recv(1):
                self.gone.set()
            return False
        if last == "held":
            self.held.set()
            self.hold.wait(f.LIMIT)
        if last == "broken":
            peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            return False
        if last in ("404", "503", "302"):
            g.reply(peer, last, b'{"secret":"inside"}')
        elif last in ("noid", "nullid", "objectid"):
            g.reply(peer, 200, {"noid": b'{"name":"x"}', "nullid": b'{"id":null}', "objectid": b'{"id":{}}'}[last])
        elif last == "text":
            g.reply(peer, 200, b"no JSON")
        elif last == "deep":
            g.reply(peer, 200, b"[" * 40 + b"]" * 40)
        elif last == "gzip":
            g.reply(peer, 200, b"{}", "Content-Encoding: gzip\r\n")
        elif last == "large":
            g.reply(peer, 200, json.dumps({"id": "x" * 70000}).encode())
        elif last == "largechunked":
            peer.sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                while True:
                    peer.sock.sendall(b"10000\r\n" + b"[" * 65536 + b"\r\n")
            except OSError:
                self.gone.set()
            return False
        elif last == "fits":
            g.reply(peer, 200, json.dumps({"id": "x" * 60000, "name": "y"}).encode())
        elif path.startswith("/cities/"):
            g.reply(peer, 200, json.dumps({"id": 3, "name": last}).encode())
        elif path.startswith("/near/"):
            g.reply(peer, 200, json.dumps([path]).encode())
        elif path.startswith("/users/"):
            g.reply(peer, 200, b'{"id": 7123456789012345678, "name": "Ann \\"A\\"", "password": "p", "address": {"city": "Oslo S"}}')
        else:
            g.reply(peer, 200, json.dumps({"items": [{"id": n, "created_at": "c%d" % n, "lines": [{"sku": "s%d" % n, "x": 1}], "z": 0}
                                                     for n in (1, 2)]}).encode())
        return None


def same(t, is_, should, what="as expected"):
    t.equal(is_, should, what)


def begin(t, timeout=60000):
    shop = Shop()
    gate = g.Gateway(t, CONFIG.format(users=shop.users.address, orders=shop.orders.address, timeout=timeout))
    return shop, gate


def ask(gate, path, fields="", method="GET"):
    status, low, body = g.get(gate.http, path, fields if "X-Me" in fields else fields + "X-Me: 1\r\n", method)
    return status, low, json.loads(body) if body else None


def shapes(t):
    shop, gate = begin(t)
    status, low, body = ask(gate, "/bff/users/7?limit=5", "X-Me: a&b=c\r\nAccept-Encoding: gzip\r\nIf-None-Match: x\r\nX-Kept: 1\r\n")
    same(t, status, 200)
    same(t, low["content-type"], "application/json")
    t.check(low["x-request-id"], "it has a request ID")
    same(t, body, {"id": 7123456789012345678, "profile": {"name": 'Ann "A"', "city": "Oslo S"},
                   "orders": [{"id": n, "when": f"c{n}", "product": {"sku": f"s{n}"}} for n in (1, 2)]})
    same(t, sorted(shop.asked()), ["/orders?user=7&limit=5&me=a%26b%3Dc", "/users/7"])
    r = shop.users.requests[0]
    same(t, r.values("accept"), ["application/json"])
    same(t, r.values("accept-encoding") + r.values("if-none-match"), [])
    same(t, (r.values("x-kept"), r.values("x-request-id")), (["1"], [low["x-request-id"]]))
    # Another client, another shape; a query that is not there leaves its parameter out.
    same(t, ask(gate, "/bff/users/7", "X-Client: mobile\r\n")[2], {"name": 'Ann "A"', "last": 1})
    same(t, ask(gate, "/bff/whole")[2]["orders"]["items"][1]["id"], 2)
    same(t, ask(gate, "/bff/users/7")[0], 200)
    t.check("/orders?user=7&me=1" in shop.asked(), "parameters without a value are left out")
    # Parts that need others.
    same(t, ask(gate, "/bff/chain/7")[2]["near"], ["/near/3"])
    t.check("/cities/Oslo%20S" in shop.asked(), "a value of a part is encoded")
    # What is no composition.
    for path, want in (("/bff/users", 404), ("/bff/users/7/8", 404), ("/bff/users/", 404), ("/bff/users/7/", 200)):
        same(t, ask(gate, path)[0], want, path)
    status, low, _ = g.get(gate.http, "/bff/users/7", method="POST")
    same(t, (status, low["allow"]), (405, "GET, HEAD"))
    status, low, body = g.get(gate.http, "/bff/users/7", "X-Me: 1\r\n", method="HEAD")
    same(t, (status, body), (200, b""))
    same(t, [x["parts"] for x in [gate.line(low["x-request-id"])]], [2])
    t.check("firn_proxy_composed_total " in g.get(gate.admin, "/metrics")[2].decode(), "the metrics count it")


def failures(t):
    shop, gate = begin(t)
    orders = {"items": [{"id": n, "created_at": f"c{n}", "lines": [{"sku": f"s{n}", "x": 1}], "z": 0} for n in (1, 2)]}
    shaped = [{"id": n, "when": f"c{n}", "product": {"sku": f"s{n}"}} for n in (1, 2)]
    for what, status in (("404", 404), ("503", 503), ("302", 302), ("text", 502), ("deep", 502), ("gzip", 502), ("large", 502),
                         ("largechunked", 502), ("broken", 502)):
        code, _, body = ask(gate, f"/bff/users/{what}")
        same(t, code, 200, what)
        same(t, (body["id"], body["profile"], body["orders"]), (None, {"name": None, "city": None}, shaped), what)
        same(t, [(e["part"], e["status"]) for e in body["errors"]], [("user", status)], what)
        t.check("inside" not in json.dumps(body), "what a service says inside stays there")
    t.check(shop.gone.wait(f.LIMIT), "an answer that is too large is given up")
    same(t, ask(gate, "/bff/users/fits")[2]["profile"]["name"], "y")
    # Parts that need a part that failed fail, too.
    body = ask(gate, "/bff/chain/404")[2]
    same(t, [(e["part"], e["status"]) for e in body["errors"]], [("user", 404), ("city", 400), ("near", 400)])
    same(t, (body["user"], body["city"], body["near"]), (None, None, None))
    # Required ones decide.
    same(t, ask(gate, "/bff/must/404")[0], 404)
    same(t, ask(gate, "/bff/must/text")[0], 502)
    same(t, ask(gate, "/bff/must/7")[2]["orders"], orders)
    # A service that is not there at all.
    shop.orders.close()
    code, _, body = ask(gate, "/bff/users/7")
    same(t, (code, body["orders"], body["errors"][0]["part"], body["errors"][0]["status"]), (200, None, "orders", 503))
    same(t, body["profile"]["city"], "Oslo S")


def filters(t):
    """A part whose filter has no value fails: without it, it would be everybody's orders."""
    shop, gate = begin(t, timeout=2000)
    missing = "a value that it needs is missing"
    for what in ("404", "503", "text", "noid", "nullid", "objectid", "stuck"):
        code, _, body = ask(gate, f"/bff/filter/{what}?limit=3", "X-Me: 5\r\n")
        same(t, (code, body["orders"], bool(body["mine"])), (200, None, True), what)
        said = {e["part"]: (e["status"], e["message"]) for e in body["errors"]}
        if what != "stuck":
            same(t, said["orders"], (400, missing), what)
        t.check("mine" not in said and "orders" in said, what)
        same(t, {r.target for r in shop.orders.requests}, {"/orders?limit=1&user=5"}, what)
    # A header that is not there, as without a token.
    body = json.loads(g.get(gate.http, "/bff/filter/7")[2])
    same(t, (body["mine"], body["errors"]), (None, [{"part": "mine", "status": 400, "message": missing}]))
    t.check(body["orders"], "the other part is there")
    same(t, sorted({r.target for r in shop.orders.requests}), ["/orders?limit=1&user=5", "/orders?user=7123456789012345678"])


def injection(t):
    shop, gate = begin(t)
    for path, want in (("/bff/users/a%3Fadmin=1", "/users/a%3Fadmin%3D1"), ("/bff/users/a%23b", "/users/a%23b"),
                       ("/bff/users/a%26b=c", "/users/a%26b%3Dc"), ("/bff/users/%7B2%7D", "/users/%7B2%7D"),
                       ("/bff/users/%C3%A9", "/users/%C3%A9"), ("/bff/users/a%20HTTP", "/users/a%20HTTP")):
        before = len(shop.users.requests)
        same(t, ask(gate, path)[0], 200, path)
        same(t, [r.target for r in shop.users.requests[before:]], [want])
    for path in ("/bff/users/a%2Fb", "/bff/users/a%0d%0aX:1", "/bff/users/%00", "/bff/users/..%2f", "/bff/users/a%5Cb"):
        same(t, ask(gate, path)[0], 400, path)
    same(t, ask(gate, "/bff/users/%2e%2e")[0], 404)  # that is /bff
    # Queries and headers.
    before = len(shop.orders.requests)
    same(t, ask(gate, "/bff/users/7?limit=1%26user=8", "X-Me: 1 HTTP/1.1\r\n")[0], 200)
    same(t, shop.orders.requests[before].target, "/orders?user=7&limit=1%26user%3D8&me=1%20HTTP%2F1.1")
    # The answer of a service as a part of a path: a dot segment is none.
    t.check(all(" " not in r for r in shop.asked()), "no target has a space in it")


def deadline(t):
    _, gate = begin(t, timeout=300)
    code, _, body = ask(gate, "/bff/users/stuck")
    same(t, (code, body["id"], body["orders"]), (200, None, None))
    same(t, sorted((e["part"], e["status"]) for e in body["errors"]), [("orders", 504), ("user", 504)])
    code, _, body = ask(gate, "/bff/users/7")
    same(t, code, 200)


def leaving(t):
    shop, gate = begin(t, timeout=60000)
    c = g.Client(gate.http)
    c.ask("GET /bff/users/stuck HTTP/1.1\r\nHost: h\r\n\r\n")
    t.check(shop.held.wait(f.LIMIT), "a part is on its way")
    g.reset(c)
    t.check(shop.gone.wait(f.LIMIT), "the part is given up when the client goes away")
    f.wait_for("no request to be left", lambda: gate.status()["requests_in_hand"] == 0)
    # Many at once, of which some leave.
    clients = [g.Client(gate.http) for _ in range(60)]
    for i, x in enumerate(clients):
        x.ask(f"GET /bff/users/{'stuck' if i % 3 == 0 else i} HTTP/1.1\r\nHost: h\r\n\r\n")
    for i, x in enumerate(clients):
        if i % 3:
            same(t, x.answer()[0], 200)
        g.reset(x)
    f.wait_for("no request to be left", lambda: gate.status()["requests_in_hand"] == 0)
    same(t, gate.stop(), 0)


def reload(t):
    shop, gate = begin(t)
    c = g.Client(gate.http)
    c.ask("GET /bff/users/held HTTP/1.1\r\nHost: h\r\n\r\n")
    t.check(shop.held.wait(f.LIMIT), "a part is on its way")
    with open(gate.config_path, encoding="utf-8") as config:
        gate.write(config.read().replace("id = user.id", "number = user.id"))
    gate.signal(signal.SIGHUP)
    f.wait_for("the new configuration", lambda: gate.status()["plan"] >= 2)
    t.check("number" in ask(gate, "/bff/users/7")[2], "new requests have the new shape")
    shop.hold.set()
    status, _, body = c.answer()
    same(t, (status, json.loads(body)["id"]), (200, 7123456789012345678), "the one in hand has the old one")
    c.close()
    same(t, gate.stop(), 0)


def refused(t):
    good = CONFIG.format(users="127.0.0.1:1", orders="127.0.0.1:2", timeout=5)
    for old, new, want in (
            ("'user = users /users/7'", "'user = nobody /users/7'", "there is no service 'nobody'"),
            ("compose: whole", "compose: hole", "there is no composition 'hole'"),
            ("compose: whole", "compose: whole, service: users", "it takes the place of service"),
            ("id = user.id", "id = uesr.id", "the name of a part"),
            ("{user.address.city}", "{usr.address.city}", "{usr.address.city} is no segment"),
            ("{user.address.city}", "{near.x}", "{near.x} is no segment"),
            ("required: [user]", "required: [usr]", "there is no part 'usr'"),
            ("'/{user}'", "'/{user'", "in braces stands one name"),
            ("id = user.id", "errors = user.id", "the member 'errors'")):
        t.check(old in good, old)
        gate = g.Gateway(t, good.replace(old, new, 1), "--check-config", serve=False)
        t.check(gate.wait() != 0, f"{new} is refused")
        t.check(want in gate.log(), f"{new}: {gate.log()}")
    same(t, g.Gateway(t, good, "--check-config", serve=False).wait(), 0)


def documented(t):
    """The configuration of docs/gateway.md."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/gateway.md"), encoding="utf-8") as page:
        text = page.read().split("\n## One answer from several services\n")[1]

    def tell(up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        g.reply(peer, 200, json.dumps({"name": "Ann", "address": {"city": "Oslo"}, "title": r.target, "items":
                                       [{"id": 1, "total": 2, "created_at": "c", "lines": [{"sku": "s", "count": 3, "x": 0}]}]}).encode())
    up = g.Upstream(tell)
    yaml = text.split("```yaml\n")[1].split("```")[0].replace("127.0.0.1:8001", up.address).replace("127.0.0.1:8002", up.address)
    gate = g.Gateway(t, yaml)
    same(t, ask(gate, "/bff/page/456?limit=2")[2], {"name": "Ann", "city": {"name": "/cities/Oslo"}, "orders": [
        {"id": 1, "total": 2, "when": "c", "first": {"sku": "s", "count": 3}}]})
    same(t, sorted(r.target for r in up.requests), ["/cities/Oslo", "/orders?user=456&limit=2", "/users/456"])
    same(t, ask(gate, "/bff/page/456", "X-Client: mobile\r\n")[2], {"name": "Ann", "last": 1})


if __name__ == "__main__":
    with f.Test("gateway_compose") as test:
        for part in (shapes, failures, filters, injection, deadline, leaving, reload, refused, documented):
            test.section(part)
