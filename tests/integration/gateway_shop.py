#!/usr/bin/env python3
"""
The gateway in front of real parts: Redis, a firnd, the five services of examples/shop and two gateways with the
configuration that firn up shop writes. Every figure that the gateway is made for, asked with curl and raw clients;
then firn up shop itself (docs/gateway.md), whose printed commands are executed.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, ".."), os.path.join(HERE, "..", "deploy")]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from collector import CLIENT, SERVER, Collector, parent  # noqa: E402  pylint: disable=wrong-import-position
from fakeclock import find_library  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Server as Redis  # noqa: E402  pylint: disable=wrong-import-position
from tokens import Key  # noqa: E402  pylint: disable=wrong-import-position
from up import Up, folders, nothing_left  # noqa: E402  pylint: disable=wrong-import-position

BREAKER_BODY = b'{"error": "Service temporarily unavailable"}'
SERVICES = ("users", "orders", "products", "payments", "notifications")
# The last two digits of the ports in examples/shop/gateway.yaml.
PORTS = {"12": "users", "13": "orders", "14": "products", "15": "payments", "16": "notifications", "17": "notifications-2"}


class Service:
    """One firn-shop; standard output is its log of requests."""

    def __init__(self, t, kind, ids, name=None):
        name = name or kind
        self.test, self.name = t, name
        self.out, self.err = (os.path.join(t.dir, f"shop-{name}.{k}") for k in ("out", "err"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([os.path.join(t.bin, "firn-shop"), kind, "127.0.0.1:0", ids, name], stdout=out, stderr=err,
                                            stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.address = f.wait_for(f"{name} to serve", lambda: re.search(r"address=(\S+)", self.log()))[1]

    def log(self):
        with open(self.err, encoding="utf-8") as log:
            return log.read()

    def lines(self):
        with open(self.out, encoding="utf-8") as log:
            return [json.loads(x) for x in log.read().rpartition("\n")[0].splitlines()]

    def line(self, request_id):
        return f.wait_for(f"{self.name}'s line of {request_id}", lambda: [x for x in self.lines() if x["id"] == request_id])

    def admin(self, path):
        c = f.Http(self.address)
        status, _ = c.post(path, {})
        c.close()
        self.test.equal(status, 200, f"{self.name}: {path}")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.test.equal(self.process.wait(f.LIMIT), 0, f"{self.name} ends: {self.log()[-2000:]}")
        for word in f.BAD_WORDS:
            self.test.check(word not in self.log(), f"{self.name}'s log is free of {word}: {self.log()[-2000:]}")


def patient(text):
    """The example's configuration with deadlines that a slow machine meets: no answer is late, and Redis decides on all."""
    text, n = re.subn(r"^redis: \{ address: ('[^']+')", r"redis: { address: \1, timeout_ms: 60000", text, flags=re.M)
    text, m = re.subn(r"\btimeout_ms: [12]000\b", "timeout_ms: 60000", text)
    assert (n, m) == (1, 3), "the deadlines of gateway.yaml"
    return text


class World:
    """All parts. They live through all sections, which ask for rows, users and routes of their own."""

    def __init__(self, t):
        self.test = t
        self.collector = Collector()
        self.redis = Redis(t.state("redis"), appendonly="no")
        self.redis.start()
        self.firnd = f.Firnd(t, t.steady("shop"), f"--tracing-endpoint={self.collector.url}").wait_ready()
        ids = f"firn://{self.firnd.snowflake}"
        self.services = {name: Service(t, name.split("-")[0], ids, name) for name in PORTS.values()}
        self.folder, self.tokens, self.users = t.state("up"), {}, 5000
        os.mkdir(self.folder)
        self.key = Key(self.folder, "ES256", "shop-1")
        with open(os.path.join(self.folder, "token.pem"), "wb") as pem:
            pem.write(self.key.public)
        shop = os.path.join(ROOT, "examples", "shop")
        with open(os.path.join(shop, "gateway.yaml"), encoding="utf-8") as text:
            self.config = self.moved(text.read())
        shutil.copy(os.path.join(shop, "schema.graphql"), self.folder)
        self.gates = [self.gateway(), self.gateway()]
        for process in (self.firnd, *self.gates):
            t.running.remove(process)  # not the sections end them

    def token(self, user, **claims):
        """A header with a token as firn up shop makes them; one for each user."""
        if claims or user not in self.tokens:
            text = {"sub": user, "iss": "firn-up-shop", "aud": "shop", "exp": int(time.time()) + 3600, **claims}
            self.tokens[user] = f"Authorization: Bearer {self.key.token({k: v for k, v in text.items() if v is not None})}"
        return self.tokens[user]

    def new_user(self):
        """Nobody's requests were counted yet."""
        self.users += 1
        return str(self.users)

    def moved(self, text):
        text = patient(text).replace("127.0.0.1:9023", f"127.0.0.1:{self.redis.port}")
        return re.sub(r"127\.0\.0\.1:90(\d\d)", lambda m: self.services[PORTS[m[1]]].address, text).replace("var/shop", self.folder)

    def gateway(self):
        return g.Gateway(self.test, self.config + f"\ntracing: {{ endpoint: '{self.collector.url}', timeout_ms: 60000 }}\n").wait_redis()

    def end(self):
        for gate in self.gates:
            self.test.equal(gate.stop(), 0, f"the gateway ends: {gate.log()[-2000:]}")
        for service in self.services.values():
            service.end()
        self.test.equal(self.firnd.stop(), 0, "firnd ends")
        self.redis.stop()


def curl(*args):
    """(status, fields in lower case, body) by the curl of this machine."""
    said = subprocess.run(["curl", "-sS", "-i", "--max-time", str(int(f.LIMIT)), *args], capture_output=True, check=True, timeout=f.LIMIT)
    head, _, body = said.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (x.split(": ", 1) for x in rest)}, body


def ask(gate, path, *args, token=None):
    status, low, body = curl(f"http://{gate.http}{path}", *args, *(["-H", token] if token else []))
    return status, low, json.loads(body)


# --- sections ---


def service(t, w):
    """What each service of the shop does by itself: rows of their owners, new ones with IDs of firnd, refusals."""
    orders = w.services["orders"]

    def to(one, path, method="GET", body=b"", **fields):
        c = f.Http(one.address)
        c.ask(path, method, body, "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in fields.items()))
        status, told = c.answer()
        c.close()
        return status, json.loads(told) if told else None
    t.equal([x["id"] for x in to(orders, "/orders?user_id=user_457")[1]], ["124"], "chosen by a member")
    t.equal([x["id"] for x in to(orders, "/orders", X_User_ID="457")[1]], ["124"], "a user's own")
    t.equal(to(orders, "/orders/123", X_User_ID="457")[0], 404, "another's is not there")
    t.equal([x["id"] for x in to(w.services["users"], "/users", X_User_ID="456")[1]], ["456"], "a user sees one user")
    status, made = to(orders, "/orders", "POST", b'{"amount":3,"user_id":"user_456"}', X_User_ID="458")
    t.equal((status, made["user_id"], made["status"]), (201, "user_458", "new"), "the owner is who asks, whatever the body says")
    t.equal(to(orders, f"/orders/{made['id']}", X_User_ID="458"), (200, made), "and it is there")
    again = [to(orders, "/orders", "POST", b'{"amount":4}', X_User_ID="458", Idempotency_Key="k") for _ in range(2)]
    t.equal([s for s, _ in again], [201, 200], "a repetition makes nothing")
    t.equal(again[0][1], again[1][1], "and has the same answer")
    other = to(orders, "/orders", "POST", b'{"amount":4}', X_User_ID="459", Idempotency_Key="k")
    t.check(other[0] == 201 and other[1]["id"] != again[0][1]["id"], "another user's key is another key")
    for body in (b"", b"[]", b"{}", b'{"amount":-1}', b'{"amount":1,"more":2}', b'{"amount":1} x', b'{"amount":"' + b"9" * 80 + b'"}'):
        t.equal(to(orders, "/orders", "POST", body, X_User_ID="458")[0], 400, f"{body}")
    for path, method, status in (("/", "GET", 404), ("/users", "GET", 404), ("/orders/1/2", "GET", 404), ("/orders/x", "GET", 404),
                                 ("/orders/123", "POST", 405), ("/orders", "PUT", 405), ("/orders?fail=418", "GET", 418)):
        t.equal(to(orders, path, method)[0], status, f"{method} {path}")
    alone = Service(t, "orders", "firn://127.0.0.1:1/?timeout=200ms&retries=0&deadline=1s", "alone")
    status, told = to(alone, "/orders", "POST", b'{"amount":1,"user_id":"user_1"}', Idempotency_Key="k")
    t.equal(status, 503, f"without firnd nothing is made: {told}")
    t.check("127.0.0.1:1" in told["error"], f"and the answer says why: {told}")
    t.equal(to(alone, "/orders/123")[0], 200, "what is there is read")
    t.equal(len(to(alone, "/orders")[1]), 2, "and nothing half made is among it")
    alone.end()


def routes(t, w):
    """Five live services behind one port; /api/products/123 is /products/123 there."""
    token = w.token("456")
    for name in SERVICES:
        row = {"users": 456}.get(name, 123)
        for gate in w.gates:
            status, low, told = ask(gate, f"/api/{name}/{row}", token=token)
            t.equal((status, told["id"]), (200, str(row)), f"/api/{name}/{row}: {told}")
            line, = w.services[low["x-served-by"]].line(low["x-request-id"])  # perhaps the canary's
            t.equal(line["path"], f"/{name}/{row}", "the path at the service")
        t.equal(ask(w.gates[0], f"/api/{name}/9", token=token)[0], 404, f"{name}: no such row")
    status, _, told = ask(w.gates[0], "/api/orders/123", token=token)
    t.equal((told["user_id"], told["amount"]), ("user_456", 10000), "the order")


def cache(t, w):
    """cache:products:123 is in Redis for 300 s: MISS, then HIT at both gateways, never for one user what another one got."""
    products = w.services["products"]

    def get(gate, *args):
        status, low, told = ask(gate, "/api/products/123", "-H", "Host: shop.example", *args)  # one name for all gateways
        t.equal((status, told["name"]), (200, "Cast-iron teapot"), f"{told}")
        return low["x-cache"]

    def asked():
        return sum(x["path"] == "/products/123" for x in products.lines())
    t.equal([get(w.gates[n]) for n in (0, 0, 1, 1)], ["MISS", "HIT", "HIT", "HIT"], "one request after another, at two gateways")
    t.equal(asked(), 1, "the service was asked once")
    left = w.redis.do("PTTL", "cache:products:123")
    t.check(300000 - f.LIMIT * 1000 < left <= 300000, f"its TTL is 300 s: {left} ms")
    t.equal(get(w.gates[0], "-H", w.token("456")), "BYPASS", "a request that says who it is gets no shared answer")
    for user, status in (("456", 200), ("457", 404), ("456", 200)):
        got, low, _ = ask(w.gates[0], "/api/orders/123", token=w.token(user))
        t.equal((got, low.get("x-cache") in (None, "BYPASS")), (status, True), f"the order for user {user}: {low}")
    t.equal(sorted(w.redis.do("KEYS", "cache:*")), [b"cache:products:123"], "nothing else was kept")
    before = asked()  # with the one that was passed on
    clock, why = find_library(t)
    if not clock:
        t.say(f"the clock is not moved: {why}")
        return
    gate = g.Gateway(t, w.config, env=clock.env()).wait_redis()
    t.equal(get(gate), "HIT", "at a third gateway, from Redis")
    clock.set(240)  # less than 300, as this has taken some seconds, too
    t.equal((get(gate), asked()), ("HIT", before), "after 240 s")
    clock.set(301)
    t.equal((get(gate), asked()), ("MISS", before + 1), "gone after 300 s, and fetched anew")
    gate.stop()


def identity(t, w):
    """A good token is X-User-ID: 456 at the service, whatever the client says; others get 401."""
    gate, now = w.gates[0], int(time.time())
    status, low, told = ask(gate, "/api/headers", "-H", "X-User-ID: 1", "-H", "x_user_id: 2", "-H", "X-Roles: admin", token=w.token("456"))
    t.equal(status, 200, f"a good token: {told}")
    got = {k.lower().replace("_", "-"): v for k, v in told.items()}
    t.equal((got["x-user-id"], "x-roles" in got, "authorization" in got, got["x-gateway"]), ("456", False, False, "firn"), f"the service gets {told}")
    line, = w.services["users"].line(low["x-request-id"])
    t.equal((line["user"], gate.line(low["x-request-id"])["user"]), ("456", "456"), "and both logs name the user")
    t.equal(ask(gate, "/api/orders/124", token=w.token("456"))[0], 404, "another user's order is not there")
    good = w.token("460", iat=now)
    head, claims, signature = good.rsplit(" ", 1)[1].split(".")
    other = Key(w.folder, "ES256", "other").token({"sub": "456", "iss": "firn-up-shop", "aud": "shop", "exp": now + 60}, kid="shop-1")
    none = Key(w.folder, "HS256", "shop-1")
    none.sign = lambda data: b""
    for what, token in (("none at all", None), ("no token", "Authorization: Basic NDU2OjQ1Ng=="), ("expired", w.token("461", exp=now - 60)),
                        ("not yet", w.token("462", nbf=now + 600)), ("another audience", w.token("463", aud="bank")),
                        ("another issuer", w.token("464", iss="me")), ("no expiry", w.token("465", exp=None)),
                        ("another key", f"Authorization: Bearer {other}"), ("no signature", f"Authorization: Bearer {head}.{claims}."),
                        ("another's claims", f"Authorization: Bearer {head}.{w.token('466').split('.')[1]}.{signature}"),
                        ("alg none", "Authorization: Bearer " + none.token({"sub": "456", "exp": now + 60}, alg="none"))):
        status, low, _ = curl(f"http://{gate.http}/api/orders", *(["-H", token] if token else []))
        t.equal((status, "www-authenticate" in low), (401, True), what)


def rates(t, w):
    """100 requests per minute, counted over two gateways together: the 101st is 429 with Retry-After."""
    user = w.new_user()
    token = w.token(user)
    connections = [g.Client(gate.http) for gate in w.gates]

    def one(n):
        c = connections[n % 2]
        c.ask(f"GET /api/orders HTTP/1.1\r\nHost: shop\r\n{token}\r\n\r\n")
        return c.answer()
    t.equal([one(n)[0] for n in range(100)], [200] * 100, "100 requests, in turn at two gateways")
    for n in (0, 1):
        status, low, _ = one(n)
        t.equal(status, 429, f"the 101st at gateway {n + 1}")
        t.check(1 <= int(low["retry-after"]) <= 60, f"Retry-After: {low}")
    for c in connections:
        c.close()
    left = w.redis.do("PTTL", f"limit:user:{user}")
    t.check(0 < left <= 60000, f"its key in Redis ends with the minute: {left}")
    t.equal(ask(w.gates[0], "/api/orders", token=w.token(w.new_user()))[::2], (200, []), "another user is served, who has no orders")


def failover(t, w):
    """Two gateways, one is killed under load: clients repeat what was not answered at the other one, and nothing is lost or made
    twice."""
    gates = [w.gates[0], w.gateway()]
    t.running.remove(gates[1])
    count, clients, each, lock = 150, 6, 50, threading.Lock()  # each: requests of one user, who has 100 per minute
    tokens = [[w.token(w.new_user()) for _ in range(count // each)] for _ in range(clients)]
    made, wrong, done = {}, [], [0, 0]  # done: answers; of those, on a repetition
    half, killed = threading.Event(), threading.Event()

    def one(c, key, token):
        c.ask("/api/orders", "POST", b'{"amount":1}', f"Idempotency-Key: {key}\r\n{token}\r\n")
        return c.answer()

    def work(who):
        at, c = who % 2, None
        for n in range(count):
            key, tries = f"load-{who}-{n}", 0
            if n == count * 2 // 3:  # so that each of them goes on behind it
                killed.wait(f.LIMIT)
            while tries < 20:  # it repeats until there is an answer
                try:
                    c = c or f.Http(gates[at].http)
                    status, body = one(c, key, tokens[who][n // each])
                    if status != 503:
                        break
                    tries += 1
                    time.sleep(0.1)  # what was sent by the gateway that died is still being worked on
                except (f.Gone, OSError):
                    c, at, tries = None, 1 - at, tries + 1
            else:
                wrong.append(f"{key}: no answer")
                return
            with lock:
                done[0] += 1
                done[1] += tries > 0
                if status not in (200, 201):
                    wrong.append(f"{key}: {status} {body[:200]}")
                else:
                    made[key] = json.loads(body)["id"]
                if done[0] == count * clients // 3:
                    half.set()
        if c:
            c.close()
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(clients)]
    for thread in threads:
        thread.start()
    t.check(half.wait(f.LIMIT), "a third of the load is done")
    gates[1].process.kill()
    gates[1].process.wait(f.LIMIT)
    killed.set()
    for thread in threads:
        thread.join(f.LIMIT)
    t.equal(wrong, [], "no request is lost or refused")
    t.equal(len(made), count * clients, "every order is made")
    t.equal(len(set(made.values())), count * clients, "each with an ID of its own")
    t.check(done[1] > 0, "somebody had to repeat a request")
    _, body = f.get(w.services["orders"].address, "/orders?amount=1")
    t.equal(sorted(x["id"] for x in body), sorted(made.values()), "and the service has each of them once")


def breaker(t, w):
    """It opens and answers with the exact body, nothing reaches the service; then it closes again."""
    text = w.config.replace("breaker_open_ms: 4000", "breaker_open_ms: 3600000")
    t.check(text != w.config, "a breaker that stays open")
    gate, payments, token = g.Gateway(t, text).wait_redis(), w.services["payments"], w.token(w.new_user())
    c = g.Client(gate.http)

    def pay():
        c.ask(f"GET /api/payments HTTP/1.1\r\nHost: shop\r\n{token}\r\n\r\n")
        return c.answer()

    def closed():
        time.sleep(0.2)  # a user has 100 requests per minute
        return pay()[0] == 200
    payments.admin("/admin/fail?status=500")
    t.equal([pay()[0] for _ in range(5)], [500] * 5, "the service's own failures")
    before = len(payments.lines())
    status, low, body = pay()
    t.equal((status, body, low["content-type"]), (503, BREAKER_BODY, "application/json"), "the breaker is open")
    t.check(int(low["retry-after"]) >= 1, "Retry-After")
    t.equal(len(payments.lines()), before, "the service was not asked")
    t.equal(ask(gate, "/api/orders", token=token)[0], 200, "other services are served")
    t.equal(curl(f"http://{gate.http}/api/payments", "-H", token)[::2], (503, BREAKER_BODY), "curl sees the same")
    c.close()
    gate.stop()
    c = g.Client(w.gates[0].http)  # with breaker_open_ms of the example
    t.equal([pay()[0] for _ in range(5)], [500] * 5, "the service fails at another gateway")
    t.equal(w.gates[0].service("payments")["breaker_opened"], 1, "whose breaker opens")
    payments.admin("/admin/heal")
    f.wait_for("the breaker to close", closed)
    t.equal([pay()[0] for _ in range(5)], [200] * 5, "it is closed")
    c.close()


def clients(t, w):
    """Web, mobile and partner clients get the same data in shapes of their own; a service that fails is null and an error."""
    gate, payments = w.gates[0], w.services["payments"]
    web = {"user": {"id": "456", "name": "User 456", "tier": "gold"},
           "orders": [{"id": "123", "product": "123", "amount": 10000, "status": "paid"}],
           "payments": [{"order": "123", "status": "captured"}], "messages": [{"text": "Order 123 is paid"}]}

    def home(*args):
        status, _, told = ask(gate, "/api/home", *args, token=w.token("456"))
        t.equal(status, 200, f"{told}")
        if "orders" in told:  # other sections make more of them
            told["orders"] = [x for x in told["orders"] if x["id"] == "123"]
        return told
    t.equal(home(), web, "web")
    t.equal(home("-H", "X-Client: mobile"), {"name": "User 456", "last_order": {"id": "123", "status": "paid"}}, "mobile")
    t.equal(ask(gate, "/partner/orders/123", token=w.token("456"))[2], {"order": "123", "status": "paid", "product": "Cast-iron teapot", "in_stock": 12}, "partner")
    t.equal(ask(gate, "/partner/orders/9", token=w.token("456"))[0], 404, "an order that is not there")
    payments.admin("/admin/fail?status=500&count=1")
    told = home()
    t.equal((told["payments"], len(told["errors"]), told["orders"]), (None, 1, web["orders"]), "payments fail: null, and why")
    t.equal(home(), web, "and then not")


def bodies(t, w):
    """Members of JSON bodies are renamed and dropped; answers are compressed for who takes gzip."""
    for gate in w.gates:
        status, _, told = ask(gate, "/api/products/124")
        t.equal((status, told), (200, {"id": "124", "name": "Tea cup", "price": 1500, "available": 80}), "a product")
    products = f"http://{w.gates[0].http}/api/products"
    _, low, plain = curl(products)
    _, packed, same = curl(products, "--compressed")
    t.equal((low.get("content-encoding"), packed.get("content-encoding")), (None, "gzip"), "compressed for who asks for it")
    t.check(len(plain) > 64 and same == plain, "and the same text")
    status, _, told = ask(w.gates[0], "/api/orders/123", "-H", "X-Fault: yes", token=w.token("456"))
    t.equal(status, 503, f"an injected fault: {told}")
    t.equal(ask(w.gates[0], "/api/orders/123", token=w.token("456"))[0], 200, "for those that ask alone")


def graphql(t, w):
    """One query joins services, as the user whose token it has; a service that fails is null and an error with its place."""
    def query(text, token=None, **variables):
        body = json.dumps({"query": text, "variables": variables})
        status, _, told = ask(w.gates[0], "/graphql", "-H", "Content-Type: application/json", "-d", body, token=token)
        return status, told
    mine = w.token("456")
    joined = "query ($id: ID!) { order(id: $id) { amount product { name available } payments { status } } me { id tier } }"
    want = {"order": {"amount": 10000, "product": {"name": "Cast-iron teapot", "available": 12}, "payments": [{"status": "captured"}]},
            "me": {"id": "456", "tier": "gold"}}
    t.equal(query(joined, mine, id="123"), (200, {"data": want}), "users, orders, products and payments in one query")
    t.equal(query(joined)[0], 401, "not without a token")
    _, told = query("{ order(id: 124) { amount } me { name } }", mine)
    t.equal(told["data"], {"order": None, "me": {"name": "User 456"}}, "another user's order is not there")
    w.services["payments"].admin("/admin/fail?status=500&count=1")
    _, told = query("{ order(id: 123) { amount payments { status } } }", mine)
    t.equal((told["data"], told["errors"][0]["path"]), ({"order": None}, ["order", "payments"]), f"payments fail: {told}")
    t.equal("data" in query("mutation { pay }", mine)[1], False, "no mutations")
    status, told = query("{ __schema { queryType { name } types { name } } }", mine)
    t.check({"User", "Order", "Product"} <= {x["name"] for x in told["data"]["__schema"]["types"]}, f"introspection: {status} {told}")


def canary(t, w):
    """Of 100 requests exactly 10 go to the next version; the header of the A/B test chooses it."""
    token = w.token(w.new_user())

    def served_by(*args):
        return curl(f"http://{w.gates[0].http}/api/notifications", "-I", "-H", token, *args)[1]["x-served-by"]
    got = [served_by() for _ in range(50)]
    t.equal((got.count("notifications"), got.count("notifications-2")), (45, 5), "of 50 requests")
    t.equal({served_by("-H", "X-Variant: b") for _ in range(5)}, {"notifications-2"}, "variant b")


def one_id(t, w):
    """One line of JSON for each request at gateway and service, and the same request ID at gateway, service and firnd."""
    gate, orders = w.gates[1], w.services["orders"]
    status, low, made = ask(gate, "/api/orders", "-H", f"traceparent: {parent(77)}", "-d", '{"amount":2}', token=w.token("456"))
    t.equal(status, 201, f"{made}")
    name = low["x-request-id"]
    at_gate = gate.line(name)
    at_service, = orders.line(name)
    t.equal((at_gate["status"], at_gate["path"], at_gate["service"], at_gate["user"]), (201, "/api/orders", "orders", "456"), "the gateway's line")
    t.equal((at_service["status"], at_service["path"], at_service["method"]), (201, "/orders", "POST"), "the service's line")
    t.equal(sum(x["id"] == name for x in gate.lines()), 1, "one line")
    t.check('"amount":2' in at_gate["request_body"].replace(" ", "") and made["id"] in at_gate["answer_body"], f"with both bodies: {at_gate}")
    t.check(w.token("456").split()[-1] not in json.dumps(at_gate) and "[redacted]" in json.dumps(at_gate["request_headers"]), "and no token")

    def ids():
        spans = w.collector.of_trace(77)
        return spans if {"GET /v1/ids/{kind}"} <= {s["name"] for s in spans} else None
    spans = f.wait_for("firnd's span", ids)
    firnd = [s for s in spans if s["name"] == "GET /v1/ids/{kind}"][0]
    t.equal(firnd["of"]["firn.request_id"], name, "firnd has the request ID")
    t.equal(firnd["kind"], SERVER, "a span of a server")
    tries = f.wait_for("the gateway's spans", lambda: [s for s in w.collector.of_trace(77) if s["kind"] == CLIENT])
    t.equal(firnd["parentSpanId"], tries[0]["spanId"], "below the gateway's try, whose span the service passes on")
    t.equal(at_service["traceparent"].split("-")[1:3], [f"{77:032x}", tries[0]["spanId"]], "and the service's line names it")


# --- firn up shop ---


def tour(said):
    """The commands as printed, by what stands above them."""
    text = said[said.index("\n# ") + 1:said.index("\nKill one")]
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in re.split(r"^# ", text, flags=re.M) if part.strip()]


# What the output of each part of the tour has, by a word of its title.
EXPECTED = {
    "The token": [],
    "Five services": ['"User 456"', '"user_id":"user_456"', '"Cast-iron teapot"', '"captured"', '"Order 123 is paid"'],
    "The cache": ["X-Cache: MISS\nX-Cache: HIT\nX-Cache: HIT\n"],
    "no token gets 401": ["HTTP/1.1 401 Unauthorized\n", '"X-User-ID":"456"'],
    "A new order": ['"status":"new"'],
    "JSON bodies": ['"stock":12,"supplier_cost":6100}\n', '{"id":"123","name":"Cast-iron teapot","price":10000,"available":12}\n',
                    "Content-Encoding: gzip\n"],
    "One request for several": ['"payments":[{"order":"123","status":"captured"}]', '"last_order":{"id":"123","status":"paid"}',
                                '{"order":"123","status":"paid","product":"Cast-iron teapot","in_stock":12}'],
    "GraphQL": ['{"data":{"me":{"name":"User 456","orders":[{"id":"123","amount":10000,"product":{"name":"Cast-iron teapot"},'
                '"payments":[{"status":"captured"}]}'],
    "circuit breaker": [" 500\n", BREAKER_BODY.decode() + " 503\n", '"captured"} 200\n'],
    "Faults on purpose": [" 503 after "],
    "Canary": ["      9 X-Served-By: notifications\n", "      1 X-Served-By: notifications-2\n", "\nX-Served-By: notifications-2\n"],
    "100 requests per minute": ["    100 {", "} 200\n", "HTTP/1.1 429 Too Many Requests\n", "\nRetry-After: "],
    "One line of JSON": ['"route":"users"', '"service":"users"', '"request_headers":', "amount"],
    "Numbers for Prometheus": ['firn_proxy_requests_total{status="2xx"} ', 'firn_proxy_requests_total{status="4xx"} '],
}


def up_shop(t, _):
    """It starts, every command that it prints does what it says, what is killed comes back, and Ctrl-C leaves nothing."""
    up = Up(t, "shop", terminal=True)
    up.wait_said("Kill one")
    said = up.out()
    pids = [int(p) for p in re.findall(r"127\.0\.0\.1:\d+ +(\d+)", said)]
    t.equal(len(pids), 10, "two gateways, six services, firnd and Redis are in the table")
    config_path = os.path.join(t.dir, *folders(t), "gateway.yaml")
    with open(config_path, encoding="utf-8") as text:
        config = patient(text.read())
    with open(config_path + ".new", "w", encoding="utf-8") as out:
        out.write(config)
    os.rename(config_path + ".new", config_path)
    for port in (1, 11):
        f.wait_for("the gateways to read it", lambda at=f"127.0.0.1:{up.base + port}": (lambda s: s["plan"] >= 2 and s["redis"]["connected"] == s["redis"]["loops"])(
            f.get(at, "/status")[1]))
    parts = tour(said)
    t.equal(sorted(w for w in EXPECTED if not any(w in title for title, _ in parts)), [], "each part of the tour is there")
    t.equal([title for title, _ in parts if not any(w in title for w in EXPECTED)], [], "and no other")
    shell = subprocess.run(["bash", "-c", "".join(f"printf '@@@ %s\\n' {json.dumps(title)}\n{lines}" for title, lines in parts)],
                           capture_output=True, text=True, check=False, timeout=f.LIMIT)
    t.equal((shell.returncode, shell.stderr), (0, ""), "the commands work")
    output = {title: text for title, _, text in (x.partition("\n") for x in shell.stdout.split("@@@ ")[1:])}
    for word, texts in EXPECTED.items():
        got = "".join(text for title, text in output.items() if word in title)
        for text in texts:
            t.check(text in got.replace("\r\n", "\n"), f"{word}: {text} is not in: {got}")
    late = re.search(r" 503 after ([\d.]+) s", shell.stdout)
    t.check(late and float(late[1]) >= 0.3, f"a fault of 300 ms: {late}")
    t.check(re.search(r"^(300|2\d\d)$", shell.stdout, re.M), "the TTL that redis-cli tells")
    ids = re.findall(r'"id":"(\d+)"', "".join(text for title, text in output.items() if "A new order" in title))
    t.check(len(ids) == 2 and ids[0] == ids[1] and int(ids[0]) > 1 << 40, f"one order with an ID of firnd: {ids}")
    up.wait_said(r"\r\x1b\[K10 of 10 ready  requests: gateway 1 [1-9]\d*, gateway 2 [1-9]")
    up.pids()
    os.kill(pids[1], signal.SIGKILL)
    up.wait_said("gateway-2 ended by signal 9", up.err)
    up.wait_said("gateway-2 DOWN  9 of 10 ready  requests: gateway 1")
    t.equal(curl(f"http://127.0.0.1:{up.base}/api/products/123")[0], 200, "the other gateway serves")
    up.seen.add(int(up.wait_said(r"gateway-2 runs again, pid (\d+)", up.err)[1]))
    t.equal(up.end(signal.SIGINT), 0, f"exit status: {up.log()}")
    nothing_left(t, up, "nothing is left after Ctrl-C")
    t.equal(folders(t), [], "the temporary folder is gone")
    t.check("All stopped." in up.said.decode(), "it says so")


def pictured(t, _):
    """The picture of the chain in docs/gateway.md has each of its links, in their order."""
    with open(os.path.join(ROOT, "src", "proxy", "chain.c"), encoding="utf-8") as c:
        links = re.findall(r'^    \{ "(\w+)"', c.read(), re.M)
    with open(os.path.join(ROOT, "docs", "gateway.md"), encoding="utf-8") as page:
        picture = page.read().split("```")[1]
    drawn = [x for x in re.findall(r"\w+", " ".join(line for line in picture.splitlines() if "▶" in line)) if x in links]
    t.equal(drawn, links, "links")


def up_refuses(t, _):
    for args, what in ((["--store", "memory:"], "--balancer and --store are not for the shop"), (["now"], "unexpected operand"),
                       (["--state", "/proc/firn"], "--state")):
        up = Up(t, "shop", *args)
        t.equal(up.end(), 2, f"exit status of {args}")
        t.check(what in up.err(), f"{args}: {up.err()}")


def main():
    with f.Test("gateway_shop") as t:
        w = World(t)
        try:
            for section in (service, cache, routes, identity, rates, breaker, bodies, canary, clients, graphql, one_id, failover, up_shop, up_refuses, pictured):
                t.section(section, w)
        finally:
            w.end()


if __name__ == "__main__":
    main()
