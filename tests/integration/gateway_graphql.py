#!/usr/bin/env python3
"""
GraphQL at the gateway, where HTTP, services and clients matter: which requests are made, deadlines, limits, clients that go away,
answers that are too large, and schemas that are refused. What queries mean is compared with npm graphql in tests/differential.
"""
import base64
import gzip
import hashlib
import hmac
import json
import os
import sys
import threading
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position

SCHEMA = """
type Query {
  user(id: ID!): User @get(service: "users", path: "/users/{id}")
  me: User @get(service: "users", path: "/users/{header:X-Me}")
  mine: [Order] @get(service: "orders", path: "/orders?limit=1&user={header:X-Me}")
  any(user: ID, filter: JSON): [Order] @get(service: "orders", path: "/orders?user={user}&filter={filter}")
  users: [User!]! @get(service: "users", path: "/users", at: "items")
}
scalar JSON
type User {
  id: ID
  name: String
  orders(limit: Int): [Order] @get(service: "orders", path: "/orders?user={.id}&limit={limit}")
}
type Order { id: ID! product: Product @get(service: "orders", path: "/products/{.product}")
  own: Product @get(service: "orders", path: "/products/{.id}") }
type Product { id: ID! big: String }
"""
CONFIG = """
services:
  - {{ name: users, servers: ['{users}'], retries: 0, breaker_failures: 0, eject_after: 0 }}
  - {{ name: orders, servers: ['{orders}'], retries: 0, breaker_failures: 0, eject_after: 0 }}
routes:
  - {{ path: /graphql, graphql: true }}
graphql: {{ schema: {schema}, {more} }}
"""
USERS = 40


class Shop:
    def __init__(self):
        self.held, self.gone = threading.Event(), threading.Event()
        self.at_once = self.most = 0
        self.lock = threading.Lock()
        self.users, self.orders = g.Upstream(self.answer), g.Upstream(self.answer)

    def asked(self):
        return [r.target for s in (self.users, self.orders) for r in s.requests]

    def answer(self, up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            return self.page(peer, r.target)
        finally:
            with self.lock:
                self.at_once -= 1

    def page(self, peer, target):
        path = target.split("?")[0]
        last = path.rsplit("/", 1)[1]
        if last == "stuck":
            self.held.set()
            if not peer.sock.recv(1):
                self.gone.set()
            return False
        if last == "503":
            g.reply(peer, 503, b'{"secret":1}')
        elif last == "endless":
            peer.sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                while True:
                    peer.sock.sendall(b"10000\r\n" + b"[" * 65536 + b"\r\n")
            except OSError:
                self.gone.set()
            return False
        elif path == "/users":
            g.reply(peer, 200, json.dumps({"items": [{"id": n, "name": f"n{n}"} for n in range(USERS)]}).encode())
        elif last in ("noid", "nullid"):
            g.reply(peer, 200, b'{"name": "x"}' if last == "noid" else b'{"id": null}')
        elif path == "/orders":
            user = (target + "&user=all").split("user=")[1].split("&")[0]
            g.reply(peer, 200, json.dumps([{"id": f"{user}.{n}", "product": n} for n in range(2)]).encode())
        elif path.startswith("/products/"):
            g.reply(peer, 200, json.dumps({"id": last, "big": "x" * 20000}).encode())
        else:
            g.reply(peer, 200, json.dumps({"id": urllib.parse.unquote(last), "name": "Ann"}).encode())
        return None


def begin(t, more="timeout_ms: 60000"):
    shop = Shop()
    schema = os.path.join(t.dir, f"schema-{g.Gateway.count}.graphql")
    with open(schema, "w", encoding="utf-8") as out:
        out.write(SCHEMA)
    gate = g.Gateway(t, CONFIG.format(users=shop.users.address, orders=shop.orders.address, schema=schema, more=more))
    return shop, gate, schema


def post(gate, body, fields="Content-Type: application/json\r\n", path="/graphql"):
    c = g.Client(gate.http)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        c.ask(f"POST {path} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status, low, text = c.answer()
        return status, low, json.loads(text)
    finally:
        c.close()


def ask(gate, query, variables=None, fields=""):
    return post(gate, {"query": query, "variables": variables}, "Content-Type: application/json; charset=utf-8\r\n" + fields)[2]


def same(t, is_, should, what="as expected"):
    t.equal(is_, should, what)


def requests(t):
    shop, gate, _ = begin(t)
    status, low, body = post(gate, {"query": "query A { user(id: 1) { name } } query B($i: ID!) { user(id: $i) { id orders(limit: 1) { id } } }",
                                    "variables": {"i": "a b"}, "operationName": "B"})
    same(t, (status, low["content-type"]), (200, "application/json"))
    same(t, body, {"data": {"user": {"id": "a b", "orders": [{"id": "a%20b.0"}, {"id": "a%20b.1"}]}}})
    same(t, shop.asked(), ["/users/a%20b", "/orders?user=a%20b&limit=1"])
    same(t, shop.users.requests[0].method, "GET")
    same(t, shop.users.requests[0].values("content-type") + shop.users.requests[0].values("content-length"), [])
    same(t, shop.users.requests[0].values("x-request-id"), [low["x-request-id"]])
    line = gate.line(low["x-request-id"])
    same(t, (line["parts"], line["status"], line["service"]), (2, 200, None))
    # By GET, and a header as a value.
    query = urllib.parse.urlencode({"query": "query($x: Boolean!) { me { id name @include(if: $x) } }", "variables": '{"x": false}'})
    status, _, text = g.get(gate.http, f"/graphql?{query}", "X-Me: 7/../8\r\n")
    same(t, json.loads(text)["data"], {"me": None}, "a value that is no path")
    status, _, text = g.get(gate.http, f"/graphql?{query}", "X-Me: 7\r\n")
    same(t, (status, json.loads(text)), (200, {"data": {"me": {"id": "7"}}}))
    same(t, g.get(gate.http, f"/graphql?{query}", method="HEAD")[::2], (200, b""))
    # What is no GraphQL request.
    for body, fields in ((b"", "Content-Type: application/json\r\n"), (b"{", "Content-Type: application/json\r\n"),
                         (b"[]", "Content-Type: application/json\r\n"), (b"{}", "Content-Type: application/json\r\n"),
                         (b'{"query": 1}', "Content-Type: application/json\r\n"),
                         (b'{"query": "{me{id}}", "variables": []}', "Content-Type: application/json\r\n"),
                         (b'{"query": "{me{id}}", "operationName": 1}', "Content-Type: application/json\r\n"),
                         (b'{"query": "{me{id}}"}', "Content-Type: text/plain\r\n"), (b'{"query": "{me{id}}"}', "")):
        status, low, answer = post(gate, body, fields)
        same(t, (status, "data" in answer, bool(answer["errors"][0]["message"])), (400, False, True), body)
    same(t, g.get(gate.http, "/graphql")[0], 400)
    status, low, _ = g.get(gate.http, "/graphql", method="DELETE")
    same(t, (status, low["allow"]), (405, "GET, HEAD, POST"))
    same(t, g.get(gate.http, "/graphql?query=%zz")[0], 400)
    status = post(gate, b'{"query":"' + b"x" * 300000 + b'"}')[0]
    same(t, status, 413)
    for word in ("mutation", "subscription"):
        t.check(word in ask(gate, word + " { a }")["errors"][0]["message"], f"a {word} is refused by its name")
    metrics = g.get(gate.admin, "/metrics")[2].decode()
    t.check('firn_proxy_graphql_queries_total{result="ok"} ' in metrics, "the metrics count queries")
    same(t, gate.stop(), 0)


def fan(t):
    shop, gate, _ = begin(t, "timeout_ms: 60000, calls: 1000, cost: 1000000")
    body = ask(gate, "{ users { id orders { id product { id } } } }")
    same(t, len(body["data"]["users"]), USERS)
    same(t, body["data"]["users"][7], {"id": "7", "orders": [{"id": f"7.{n}", "product": {"id": str(n)}} for n in (0, 1)]})
    same(t, len(shop.asked()), 1 + USERS + 2, "what is asked once is asked once")
    t.check(shop.most <= 16, f"at most 16 requests at once: {shop.most}")
    same(t, "errors" in body, False)
    # A large object of which the same member is asked for again and again.
    query = "{ user(id: 1) { orders { product { " + " ".join(f"a{n}: id" for n in range(3900)) + " } } } }"
    body = ask(gate, query)
    same(t, body["errors"][0]["message"], "the answer is too large")


def failures(t):
    shop, gate, _ = begin(t, "timeout_ms: 60000, calls: 10, bytes: 50000")
    body = ask(gate, "{ a: user(id: 1) { name } b: user(id: 503) { name } }")
    same(t, body["data"], {"a": {"name": "Ann"}, "b": None})
    same(t, [e["path"] for e in body["errors"]], [["b"]])
    t.check("secret" not in json.dumps(body), "what a service says inside stays there")
    # More requests than are allowed, answers that are too large alone and together.
    body = ask(gate, "{ users { id orders { id } } }")
    same(t, (len(body["errors"]), body["errors"][0]["path"][0]), (USERS - 9, "users"))
    body = ask(gate, '{ user(id: "endless") { id } }')
    same(t, (body["data"], body["errors"][0]["path"]), ({"user": None}, ["user"]))
    t.check(shop.gone.wait(f.LIMIT), "an answer that is too large is given up")
    query = "{ a: user(id: 1) { orders { own { id } } } b: user(id: 2) { orders { own { id } } } }"
    body = ask(gate, query)
    said = [e["message"] for e in body["errors"]]
    same(t, (len(said), set(said)), (2, {"the services' answers are too large together"}))
    t.check("errors" not in ask(gate, query.split(" b:")[0] + " }"), "two products fit")
    # A service that is away.
    shop.users.close()
    body = ask(gate, "{ user(id: 1) { name } __typename }")
    same(t, body["data"], {"user": None, "__typename": "Query"})


def filters(t):
    """Only an argument of the client may leave a parameter out."""
    shop, gate, _ = begin(t)
    missing = "a value that its request needs is missing"
    for user in ("noid", "nullid"):
        body = ask(gate, f'{{ user(id: "{user}") {{ orders(limit: 1) {{ id }} }} }}')
        same(t, body["data"], {"user": {"orders": None}}, user)
        same(t, [(e["message"], e["path"]) for e in body["errors"]], [(missing, ["user", "orders"])])
    for query in ("{ mine { id } }", "{ mine: any(filter: { user: 1 }) { id } }"):
        body = ask(gate, query)
        same(t, (body["data"], [e["message"] for e in body["errors"]]), ({"mine": None}, [missing]), query)
    same(t, shop.orders.requests, [], "no orders were asked for")
    same(t, ask(gate, "{ mine { id } }", fields="X-Me: 5\r\n")["data"]["mine"][0], {"id": "5.0"})
    for query in ("{ any { id } }", "{ any(user: null) { id } }"):
        same(t, ask(gate, query)["data"]["any"][0], {"id": "all.0"})
    same(t, [r.target for r in shop.orders.requests], ["/orders?limit=1&user=5", "/orders", "/orders"])


def deadline(t):
    _, gate, _ = begin(t, "timeout_ms: 3000")
    body = ask(gate, '{ slow: user(id: "stuck") { id } user(id: 1) { id } }')
    same(t, body["data"], {"slow": None, "user": {"id": "1"}})
    same(t, [e["path"] for e in body["errors"]], [["slow"]])


def leaving(t):
    shop, gate, _ = begin(t, "timeout_ms: 60000")
    c = g.Client(gate.http)
    data = json.dumps({"query": '{ a: user(id: "stuck") { id } b: user(id: "stuck") { id } user(id: 1) { id } }'}).encode()
    c.ask(b"POST /graphql HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    t.check(shop.held.wait(f.LIMIT), "a part is on its way")
    g.reset(c)
    t.check(shop.gone.wait(f.LIMIT), "it is given up when the client goes away")
    f.wait_for("no request to be left", lambda: gate.status()["requests_in_hand"] == 0)
    # In the middle of its query.
    c = g.Client(gate.http)
    c.ask(b"POST /graphql HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    g.reset(c)
    f.wait_for("no request to be left", lambda: gate.status()["requests_in_hand"] == 0)
    same(t, gate.stop(), 0)


def limits(t):
    shop, gate, _ = begin(t, "depth: 3, cost: 500, introspection: false")
    for query, says in (("{ users { orders { product { id } } } }", "deeper than 3"),
                        ("{ " + " ".join(f"a{n}: users {{ orders {{ id }} }}" for n in range(3)) + " }", "costs 630, more than 500"),
                        ("{ __schema { queryType { name } } }", "introspection is switched off"),
                        ("{ a " + "{ b " * 100 + "}" * 101, "deeper than 64"),
                        ("{ " + "a " * 25000 + "}", "more than 20000 words")):
        body = ask(gate, query)
        t.check("data" not in body and says in body["errors"][0]["message"], f"{says}: {json.dumps(body)[:300]}")
    same(t, shop.asked(), [], "nothing was asked")


def schemas(t):
    _, gate, path = begin(t)
    config = open(gate.config_path, encoding="utf-8").read()
    name = os.path.basename(path)

    def check(text, yaml=config):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        again = g.Gateway(t, yaml, "--check-config", serve=False)
        return again.wait(), again.log()
    for old, new, says in (('service: "users", path: "/users/{id}"', 'service: "nobody", path: "/"', f"{name}:3:23: there is no service 'nobody'"),
                           ("{id}", "{if}", f"{name}:3:23: path: {{if}} is no argument"),
                           ("type Order", "interface Order", "interfaces are not supported"),
                           ("[Order]", "[Orders]", f"{name}:5:10: there is no type 'Orders'"),
                           ("type Query", "type Quest", "the schema needs type Query"),
                           ("me: User @get", "me: User @put", "has no meaning here: @ 'put'")):
        t.check(old in SCHEMA, old)
        code, log = check(SCHEMA.replace(old, new, 1))
        t.check(code != 0 and ("graphql.schema" in log), f"{new} is refused")
        t.check(says in log, f"{says}: {log}")
    code, log = check(SCHEMA, config.replace("graphql: { schema", "#"))
    t.check(code != 0 and "graphql: needs graphql.schema (column " in log, log)
    # A broken schema changes nothing; a better one does, without a restart.
    with open(path, "w", encoding="utf-8") as out:
        out.write("type")
    gate.signal(1)
    f.wait_for("the reload to fail", lambda: gate.status()["reload_error"])
    same(t, ask(gate, "{ user(id: 1) { name } }"), {"data": {"user": {"name": "Ann"}}})
    with open(path, "w", encoding="utf-8") as out:
        out.write(SCHEMA.replace("name: String", "called: String @from(path: \"name\")"))
    f.wait_for("the reload", lambda: ask(gate, "{ user(id: 1) { called } }") == {"data": {"user": {"called": "Ann"}}})


def links(t):
    """Tokens, rates and compression: what the other links of the chain do for these routes."""
    shop, _, schema = begin(t)
    secret = os.path.join(t.dir, "secret")
    with open(secret, "w", encoding="ascii") as out:
        out.write("s" * 40)

    def b64(data):
        return base64.urlsafe_b64encode(data if isinstance(data, bytes) else json.dumps(data).encode()).rstrip(b"=").decode()
    text = b64({"alg": "HS256"}) + "." + b64({"sub": "456", "exp": 4000000000})
    token = text + "." + b64(hmac.new(b"s" * 40, text.encode(), hashlib.sha256).digest())
    config = CONFIG.replace("graphql: true", "graphql: true, token: shop, rates: [few], gzip: on").replace(
        "graphql: {{", "  - {{ path: /bff, compose: me, token: shop, gzip: on }}\ngraphql: {{")
    gate = g.Gateway(t, config.format(users=shop.users.address, orders=shop.orders.address, schema=schema, more="timeout_ms: 60000") +
                     f"gzip: {{ min_bytes: 10 }}\ntokens: [{{ name: shop, secret_file: {secret} }}]\n"
                     "rates: [{ name: few, count: 3, by: user }]\n"
                     "compositions: [{ name: me, parts: ['me = users /users/{header:X-User-ID}'] }]\n")
    bearer = f"Authorization: Bearer {token}\r\nX-User-ID: 1\r\n"
    same(t, g.get(gate.http, "/graphql?query=%7Bme%7Bid%7D%7D")[0], 401)
    same(t, g.get(gate.http, "/bff")[0], 401)
    status, low, body = g.get(gate.http, "/bff", bearer + "Accept-Encoding: gzip\r\n")
    same(t, (status, low.get("content-encoding")), (200, "gzip"))
    same(t, json.loads(gzip.decompress(body)), {"me": {"id": "456", "name": "Ann"}})
    same(t, shop.users.requests[-1].values("x-user-id"), ["456"])
    same(t, shop.users.requests[-1].values("authorization"), [])
    status, low, body = g.get(gate.http, "/graphql?query=%7Buser(id:7)%7Bid%7D%7D", bearer + "Accept-Encoding: gzip\r\n")
    same(t, json.loads(gzip.decompress(body)), {"data": {"user": {"id": "7"}}})
    same(t, shop.users.requests[-1].values("x-user-id"), ["456"])
    same(t, [g.get(gate.http, "/graphql?query=%7B__typename%7D", bearer)[0] for _ in range(3)], [200, 200, 429])
    same(t, gate.stop(), 0)


def minting(t):
    """Each place in an answer that asks for an ID has an ID of its own, and no cache is told that it may keep it."""
    def mint(up, peer, line, fields):
        up.keep(peer.body(line, fields))
        g.reply(peer, 200, json.dumps({"id": str(len(up.requests))}).encode())
    up = g.Upstream(mint)
    schema = os.path.join(t.dir, "mint.graphql")
    with open(schema, "w", encoding="utf-8") as out:
        out.write('type Query { a: ID @get(service: "mint", path: "/new", at: "id")\n'
                  'b: ID @get(service: "plain", path: "/v1/ids/order", at: "id")\n'
                  'c: ID @get(service: "plain", path: "/generate", at: "id")\n'
                  'd: ID @get(service: "plain", path: "/other", at: "id") }\n')
    gate = g.Gateway(t, f"services: [{{ name: mint, servers: ['{up.address}'], mints: true }}, {{ name: plain, servers: ['{up.address}'] }}]\n"
                     "compositions: [{ name: two, parts: ['x = mint /new', 'y = mint /new'] }, { name: none, parts: ['x = plain /other'] }]\n"
                     f"graphql: {{ schema: {schema} }}\n"
                     "routes: [{ path: /graphql, graphql: true }, { path: /two, compose: two }, { path: /none, compose: none }]\n")
    for field in "abc":
        query = urllib.parse.quote(" ".join(f"{x}:{field}" for x in ("one", "two", "three")))
        _, low, text = g.get(gate.http, f"/graphql?query=%7B{query}%7D")
        ids = json.loads(text)["data"].values()
        same(t, len(set(ids)), 3, f"{field}: each ID once")
        same(t, low.get("cache-control"), "no-store")
    before = len(up.requests)
    _, low, text = g.get(gate.http, "/graphql?query=%7Bx:d%20y:d%7D")
    same(t, (len(up.requests) - before, low.get("cache-control")), (1, None), "what does not mint is asked for once")
    _, low, text = g.get(gate.http, "/two")
    body = json.loads(text)
    t.check(body["x"] != body["y"], "two parts have two IDs")
    same(t, low.get("cache-control"), "no-store")
    same(t, g.get(gate.http, "/none")[1].get("cache-control"), None)
    same(t, gate.stop(), 0)


def documented(t):
    """The schema and the configuration of docs/gateway.md."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/gateway.md"), encoding="utf-8") as page:
        text = page.read().split("\n## GraphQL\n")[1]

    def tell(up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        g.reply(peer, 200, json.dumps({"id": 7123456789012345678, "profile": {"display_name": "Ann"}, "title": r.target, "items":
                                       [{"id": 1, "total": 2.5, "product_id": "p"}]}).encode())
    up = g.Upstream(tell)
    yaml = text.split("```yaml\n")[1].split("```")[0].replace("127.0.0.1:8001", up.address).replace("127.0.0.1:8002", up.address)
    with open(os.path.join(t.dir, "shop.graphql"), "w", encoding="utf-8") as out:
        out.write(text.split("```graphql\n")[1].split("```")[0])
    gate = g.Gateway(t, yaml)
    same(t, ask(gate, "{ user(id: 5) { id name orders { total product { title } } } }"),
         {"data": {"user": {"id": "7123456789012345678", "name": "Ann", "orders": [{"total": 2.5, "product": {"title": "/products/p"}}]}}})
    same(t, [r.target for r in up.requests], ["/users/5", "/orders?user=7123456789012345678&limit=5", "/products/p"])


if __name__ == "__main__":
    with f.Test("gateway_graphql") as test:
        for part in (requests, fan, failures, filters, deadline, leaving, limits, schemas, links, minting, documented):
            test.section(part)
