#!/usr/bin/env python3
"""
firn-proxy's tokens and rates with real parts: tokens that openssl signs, key files that change or break, one Redis for two
gateways that is slow, wrong, full of errors or gone.
"""
import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, ".."))
sys.path.insert(0, os.path.join(here, "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Server  # noqa: E402  pylint: disable=wrong-import-position
from engines.stopped import wait_stopped  # noqa: E402  pylint: disable=wrong-import-position
from tokens import Key, b64, bearer, part  # noqa: E402  pylint: disable=wrong-import-position

ALGS = ("HS256", "RS256", "ES256", "EdDSA")
SOON = int(time.time()) + 3600  # exp of good tokens
keys = {}


def tell(up, peer, line, fields):
    r = up.keep(peer.body(line, fields))
    g.reply(peer, 200, json.dumps({"target": r.target, "fields": r.fields}).encode())


def ask(gate, path, fields="", method="GET"):
    status, low, body = g.get(gate.http, path, fields, method)
    try:
        return status, low, json.loads(body)
    except ValueError:
        return status, low, body


def values(told, *names):
    """Of the fields that the service got; '_' counts as '-', as it does for services that make variables of fields."""
    return [v for n, v in told["fields"] if n.lower().replace("_", "-") in names]


def key(t, alg):
    if alg not in keys:
        keys[alg] = Key(t.dir, alg)
    return keys[alg]


def write(path, data):
    """As a careful operator does: never half a file."""
    with open(path + ".new", "wb") as out:
        out.write(data)
    os.rename(path + ".new", path)
    return path


def jwks(*of):
    return json.dumps({"keys": [k.jwk() for k in of]}).encode()


def claims(**more):
    all_of_them = {"sub": "456", "iss": "https://issuer.example", "aud": ["other", "shop"], "exp": SOON, "roles": ["a", "b"], **more}
    return {k: v for k, v in all_of_them.items() if v is not None}


def metric(gate, line):
    text = f.get(gate.admin, "/metrics")[1]
    return int(float(([x.rsplit(" ", 1)[1] for x in text.splitlines() if x.startswith(line + " ")] or ["-1"])[0]))


# --- tokens ---


def token_config(t, up, more=""):
    files = {"set": write(t.state("keys.json"), jwks(*(key(t, a) for a in ALGS[1:]))),
             "secret": write(t.state("secret"), base64.b64encode(key(t, "HS256").secret) + b"\n"),
             "pem": write(t.state("rs256.pem"), key(t, "RS256").public)}
    return f"""services:
  - {{ name: a, servers: ['{up.address}'] }}
tokens:
  - name: keys
    jwks: {files["set"]}
    issuers: ['https://issuer.example']
    audiences: [shop]
    leeway_s: 5
    copy: ['sub: X-User-ID', 'roles?: X-Roles', 'tenant?: X-Tenant']
  - {{ name: secret, secret_file: {files["secret"]}, forward: true }}
  - {{ name: pem, pem: {files["pem"]} }}
routes:
  - {{ path: /keys, service: a, token: keys }}
  - {{ path: /secret, service: a, token: secret }}
  - {{ path: /pem, service: a, token: pem }}
  - {{ path: /maybe, service: a, token: keys, token_optional: true }}
  - {{ path: /open, service: a }}
{more}"""


def with_secret(t):
    """The HS256 key as the file has it: text of base64."""
    k = Key(t.dir, "HS256")
    k.secret = base64.b64encode(key(t, "HS256").secret)
    return k


LIES = ("X-User-ID: 1\r\nx-user-id: 2\r\nX_User_ID: 3\r\nX-User_Id: 4\r\nX-Roles: admin\r\nx_roles: admin\r\nX-Tenant: t\r\nX_TENANT: t\r\n")


def good_tokens(t):
    up = g.Upstream(tell)
    gate = g.Gateway(t, token_config(t, up))
    for alg in ALGS[1:]:
        for _ in range(2):  # the second one is in the cache
            status, _, told = ask(gate, "/keys", LIES + bearer(key(t, alg).token(claims())))
            t.equal((status, values(told, "x-user-id"), values(told, "x-roles"), values(told, "x-tenant"), values(told, "authorization")),
                    (200, ["456"], ["a,b"], [], []), alg)
    same = key(t, "ES256").token(claims())
    before = metric(gate, "firn_proxy_token_cache_hits_total")
    t.equal([ask(gate, "/keys", bearer(same))[0] for _ in range(8)], [200] * 8, "one token, many times")
    t.check(metric(gate, "firn_proxy_token_cache_hits_total") >= before + 8 - len(os.sched_getaffinity(0)), "the cache spares signatures")
    status, _, told = ask(gate, "/secret", LIES + bearer(with_secret(t).token(claims())))
    t.equal((status, values(told, "x-user-id"), values(told, "x-roles"), len(values(told, "authorization"))), (200, ["456"], [], 1), "HS256, forwarded")
    status, low, told = ask(gate, "/pem", bearer(key(t, "RS256").token(claims(), kid=None)))
    t.equal((status, values(told, "x-user-id")), (200, ["456"]), "a PEM key and a token without kid")
    for path in ("/open", "/maybe"):
        status, _, told = ask(gate, path, LIES)
        t.equal((status, values(told, "x-user-id", "x-roles", "x-tenant")), (200, []), f"{path}: nothing that a client claims passes")
    status, _, told = ask(gate, "/open", bearer("opaque") + "Cookie: a\r\n")
    t.equal((status, values(told, "authorization")), (200, ["Bearer opaque"]), "a route without a token leaves Authorization alone")
    status, _, told = ask(gate, "/maybe", bearer(key(t, "EdDSA").token(claims())))
    t.equal((status, values(told, "x-user-id")), (200, ["456"]), "token_optional with a token")
    t.equal([ask(gate, "/maybe", fields)[0] for fields in ("", "Authorization: \r\n")], [200, 401], "token_optional without a token")
    for value in ("Bearer x", "Bearer\tx", "Bearer,x", "Bearer", "bearer", "Token x", "Basic eDp5", "JWT x"):
        t.equal(ask(gate, "/maybe", f"Authorization: {value}\r\n")[0], 401, f"token_optional with Authorization: {value}")
    status, low, _ = ask(gate, "/keys", bearer(key(t, "EdDSA").token(claims(sub="u1"))))
    t.equal(gate.line(low["x-request-id"])["user"], "u1", "the user is in the access log")
    tokens = {x["name"]: x for x in gate.status()["links"]["jwt"]["tokens"]}
    t.equal((tokens["keys"]["keys"], tokens["secret"]["keys"], tokens["pem"]["error"]), (3, 1, None), "/status")
    gate.stop()


def bad_tokens(t):
    up = g.Upstream(tell)
    gate = g.Gateway(t, token_config(t, up))
    good = key(t, "ES256").token(claims())
    head, body, sig = good.split(".")
    other = Key(t.dir, "ES256", "other")
    stranger = Key(t.dir, "ES256", "stranger")
    stranger.kid = key(t, "ES256").kid
    rs = key(t, "RS256")

    def hs_with(secret, kid):
        text = f"{part({'alg': 'HS256', 'kid': kid})}.{part(claims())}"
        return f"{text}.{b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"
    now = int(time.time())
    cases = [("expired", "expired", key(t, "ES256").token(claims(exp=now - 60))), ("not valid yet", "not_yet", key(t, "ES256").token(claims(nbf=now + 3600))),
             ("without exp", "no_expiry", key(t, "ES256").token(claims(exp=None))), ("wrong audience", "audience", key(t, "ES256").token(claims(aud="bank"))),
             ("wrong issuer", "issuer", key(t, "ES256").token(claims(iss="https://evil.example"))), ("no user", "claim_missing", key(t, "ES256").token(claims(sub=None))),
             ("empty user", "claim_missing", key(t, "ES256").token(claims(sub=""))), ("a user with a line break", "claim_value", key(t, "ES256").token(claims(sub="4\r\nX-Admin: 1"))),
             ("other claims under the same signature", "signature", f"{head}.{part(claims(sub='1'))}.{sig}"), ("another's signature", "signature", stranger.token(claims())),
             ("a key that is not in the set", "unknown_key", other.token(claims())),
             ("a key that the token brings", "unknown_key", other.token(claims(), jwk=other.jwk())), ("a key by URL", "unknown_key", other.token(claims(), jku="http://evil.example/k", x5u="http://evil.example/c")),
             ("crit", "critical", key(t, "ES256").token(claims(), crit=["exp"])), ("the signature cut off", "signature", f"{head}.{body}."),
             ("two parts", "format", f"{head}.{body}"), ("four parts", "format", good + ".x"), ("no token at all", "format", "x"), ("a long one", "too_long", "a" * 9000)]
    for alg in ("none", "None", "nOnE", ""):
        cases.append((f"alg '{alg}'", "algorithm", f"{part({'alg': alg})}.{body}."))
    cases.append(("alg none with a kid", "algorithm", f"{part({'alg': 'none', 'kid': key(t, 'ES256').kid})}.{body}."))
    for name, secret in (("PEM", rs.public), ("PEM without its last line break", rs.public.strip()), ("DER", rs.der), ("JWK", json.dumps(rs.jwk()).encode())):
        cases.append((f"the public key as a secret: {name}", "algorithm", hs_with(secret, rs.kid)))
    cases.append(("the key of another algorithm", "algorithm", key(t, "RS256").token(claims(), kid=key(t, "ES256").kid)))
    cases.append(("HS512", "algorithm", key(t, "ES256").token(claims(), alg="HS512")))
    for path in ("/keys", "/maybe"):
        for name, verdict, token in cases:
            before = metric(gate, f'firn_proxy_tokens_total{{verdict="{verdict}"}}')
            status, low, body_ = ask(gate, path, bearer(token))
            t.equal((status, low.get("content-type")), (401, "application/problem+json"), f"{path}: {name}")
            t.check(low["www-authenticate"].startswith("Bearer") and verdict not in low["www-authenticate"] + json.dumps(body_), f"{name}: {low}")
            t.equal(gate.line(low["x-request-id"]).get("token"), verdict, f"{name}: the log knows why")
            t.equal(metric(gate, f'firn_proxy_tokens_total{{verdict="{verdict}"}}'), before + 1, f"{name}: counted")
    for name, fields in (("none", ""), ("Basic", "Authorization: Basic YTpi\r\n"), ("Bearer alone", "Authorization: Bearer \r\n"), ("in the query", "")):
        status, low, _ = ask(gate, f"/keys?access_token={good}" if name == "in the query" else "/keys", fields)
        t.equal((status, "www-authenticate" in low), (401, True), f"Authorization: {name}")
    for name, fields in (("one", bearer(good)), ("Basic", "authorization: Basic YTpi\r\n")):
        t.equal(ask(gate, "/keys", bearer(good) + fields)[0], 400, f"two Authorization headers: {name}")
    t.equal(ask(gate, "/secret", bearer(rs.token(claims(), kid=None)))[0], 401, "RS256 where a secret is expected")
    t.equal(ask(gate, "/pem", bearer(hs_with(rs.public, None)))[0], 401, "HS256 with the PEM as the secret")
    t.equal(len(up.requests), 0, "the service saw none of them")
    t.equal(ask(gate, "/keys", bearer(good))[0], 200, "and a good one still passes")
    gate.stop()


def one_connection(t):
    """Nothing of a request stays for the next one on its connection."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, token_config(t, up), "--loops=1")
    c = g.Client(gate.http)

    def send(path, fields="", method="GET", body=b""):
        c.send(f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode() + body)
        status, _, text = c.answer()
        return status, values(json.loads(text), "x-user-id") if status == 200 else None
    one, two = (bearer(key(t, "ES256").token(claims(sub=s))) for s in ("one", "two"))
    for _ in range(3):
        t.equal([send("/keys", one), send("/open"), send("/maybe"), send("/keys", two), send("/maybe"), send("/keys", one)],
                [(200, ["one"]), (200, []), (200, []), (200, ["two"]), (200, []), (200, ["one"])], "users and nobody in turn")
        t.equal([send("/keys", "Content-Length: 5\r\n", "POST", b"hello"), send("/keys", one)], [(401, None), (200, ["one"])], "a body that is refused is passed over")
        t.equal([send("/keys", "Expect: 100-continue\r\nContent-Length: 0\r\n", "POST"), send("/open")], [(401, None), (200, [])], "refused before its body is asked for")
    c.ask("".join(f"GET {p} HTTP/1.1\r\nHost: a\r\n{h}\r\n" for p, h in (("/keys", one), ("/open", ""), ("/keys", two), ("/keys", ""))))
    t.equal([(s, values(json.loads(b), "x-user-id") if s == 200 else None) for s, _, b in (c.answer() for _ in range(4))],
            [(200, ["one"]), (200, []), (200, ["two"]), (401, None)], "sent at once")
    c.close()
    gate.stop()


def composed(t):
    """All parts of a composed route get the token's user and nobody gets the token; the request counts once."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, token_config(t, up, """  - { path: /me, compose: me, token: keys, rates: [few] }
compositions:
  - { name: me, parts: ['user = a /users/{header:X-User-ID}', 'orders = a /orders?user={header:X-User-ID}'] }
rates: [{ name: few, count: 2, by: user }]
"""))
    token = bearer(key(t, "ES256").token(claims(sub="4&5")))
    t.equal([ask(gate, "/me", LIES + token)[0] for _ in range(3)], [200, 200, 429], "counted once for each request")
    t.equal(ask(gate, "/me", LIES)[0], 401, "nobody else gets in")
    parts = [(r.target, values({"fields": r.fields}, "x-user-id"), r.values("authorization")) for r in up.requests]
    t.equal(sorted(set(map(str, parts))), sorted(map(str, [("/orders?user=4%265", ["4&5"], []), ("/users/4%265", ["4&5"], [])])), "each part")
    gate.stop()


def cached(t):
    """Answers that are kept: a user's own stay with that user, shared ones still want a token, and hits count."""
    def answer(up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        g.reply(peer, 200, json.dumps({"n": len(up.requests), "fields": r.fields}).encode(), "Cache-Control: max-age=300\r\n")
    up = g.Upstream(answer)
    gate = g.Gateway(t, token_config(t, up, """  - { path: /mine, service: a, token: keys, cache: memory, cache_by_user: true, cache_ttl_s: 300 }
  - { path: /all, service: a, token: keys, cache: memory, cache_public: true, cache_ttl_s: 300, rates: [few] }
  - { path: /neither, service: a, token: secret, cache: memory, cache_ttl_s: 300 }
rates: [{ name: few, count: 3, by: user }]
"""), "--loops=1")
    one, two = (bearer(key(t, "ES256").token(claims(sub=s))) for s in ("one", "two"))

    def asked(path, token, more=LIES):
        status, low, told = ask(gate, path, more + token)
        return status, low.get("x-cache"), values(told, "x-user-id") if status == 200 else None
    t.equal([asked("/mine", x) for x in (one, one, two, two, one)],
            [(200, "MISS", ["one"]), (200, "HIT", ["one"]), (200, "MISS", ["two"]), (200, "HIT", ["two"]), (200, "HIT", ["one"])], "by user")
    t.equal([asked("/all", x)[:2] for x in (one, two, one, one, one)], [(200, "MISS"), (200, "HIT"), (200, "HIT"), (200, "HIT"), (429, None)], "for all who have a token; hits count")
    for path in ("/mine", "/all"):
        t.equal(asked(path, "")[0], 401, f"{path}: a kept answer is for nobody without a token")
        t.equal(asked(path, bearer(key(t, "ES256").token(claims(sub="one", exp=1))))[0], 401, f"{path}: nor for an old one")
    secret = bearer(with_secret(t).token(claims(sub="one")))
    t.equal([asked("/neither", secret)[1] for _ in range(2)], ["BYPASS", "BYPASS"], "what a token opens is not kept unless the route says so")
    gate.stop()


def issuers(t):
    """Users of two issuers with one name, and users with other claims, have no answer in common, in memory and in Redis."""
    def answer(up, peer, line, fields):
        r = up.keep(peer.body(line, fields))
        g.reply(peer, 200, json.dumps({"fields": r.fields}).encode(), "Cache-Control: max-age=300\r\n")
    up, redis = g.Upstream(answer), started(t, "redis-issuers")
    gate = g.Gateway(t, token_config(t, up, f"""  - {{ name: one, path: /x, service: a, token: keys, cache: redis, cache_by_user: true, cache_name: p, cache_ttl_s: 300 }}
  - {{ name: two, path: /x, headers: ['X-B: *'], service: a, token: pem, cache: redis, cache_by_user: true, cache_name: p, cache_ttl_s: 300 }}
redis: {{ address: '127.0.0.1:{redis.port}', timeout_ms: 60000 }}
"""), "--loops=1")
    connected(gate)
    blue, red = (bearer(key(t, "RS256").token(claims(tenant=x, sub="456"))) for x in ("blue", "red"))
    for fields, cache, tenant in ((blue, "MISS", ["blue"]), (blue, "HIT", ["blue"]), (red, "MISS", ["red"]), ("X-B: 1\r\n" + blue, "MISS", []),
                                  ("X-B: 1\r\n" + red, "HIT", []), (blue, None, ["blue"])):
        status, low, told = ask(gate, "/x", fields)
        t.equal((status, values(told, "x-user-id"), values(told, "x-tenant")), (200, ["456"], tenant), "the answer of this user of this issuer")
        t.check(cache in (None, low["x-cache"]), f"{low['x-cache']}, not {cache}")
    gate.stop()
    redis.stop()


def keys_change(t):
    up = g.Upstream(tell)
    path = write(t.state("changing.json"), jwks(key(t, "ES256")))
    config = f"""services:
  - {{ name: a, servers: ['{up.address}'] }}
tokens:
  - {{ name: k, jwks: {path} }}
routes:
  - {{ path: /, service: a, token: k }}
"""
    gate = g.Gateway(t, config)
    old, new = key(t, "ES256").token(claims()), key(t, "EdDSA").token(claims())

    def answers():
        return ask(gate, "/", bearer(old))[0], ask(gate, "/", bearer(new))[0]
    t.equal(answers(), (200, 401), "the first key")
    write(path, jwks(key(t, "EdDSA")))
    f.wait_for("the file to be read", lambda: answers() == (401, 200))
    t.check("token_keys_read" in gate.log(), "and the log says so")
    errors = metric(gate, 'firn_proxy_token_key_errors_total{token="k"}')
    write(path, b'{"keys": [')
    f.wait_for("the error", lambda: gate.status()["links"]["jwt"]["tokens"][0]["error"])
    t.equal((answers(), errors, metric(gate, 'firn_proxy_token_key_errors_total{token="k"}')), ((401, 200), 0, 1), "half a file changes nothing")
    gate.signal(signal.SIGHUP)
    f.wait_for("the reload", lambda: gate.status()["plan"] >= 2)
    t.equal((answers(), metric(gate, 'firn_proxy_token_key_errors_total{token="k"}')), ((401, 200), 2), "nor does it at a reload")
    t.check(path in gate.status()["links"]["jwt"]["tokens"][0]["error"], "/status names the file")
    os.unlink(path)
    gate.signal(signal.SIGHUP)
    f.wait_for("the missing file", lambda: "cannot read" in (gate.status()["links"]["jwt"]["tokens"][0]["error"] or ""))
    t.equal(answers(), (401, 200), "nor does a file that is gone")
    write(path, jwks(key(t, "ES256"), key(t, "EdDSA")))
    f.wait_for("both keys", lambda: answers() == (200, 200))
    t.equal(gate.status()["links"]["jwt"]["tokens"][0]["error"], None, "and the error is over")
    write(gate.config_path, (config + "  - { path: /x, service: a, token: none }\n").encode())
    f.wait_for("the refusal", lambda: gate.status()["reload_error"])
    t.check("there is no token 'none'" in gate.status()["reload_error"], "a route that names no token is refused")
    gate.stop()
    write(path, b"{}")
    bad = g.Gateway(t, config, serve=False)
    t.equal(bad.wait(), 1, "it does not start without keys")
    t.check("tokens: 'k'" in bad.log(), f"and says why: {bad.log()}")


# --- rates ---


def rate_config(up, rates, routes, redis=None, more=""):
    shared = f"redis: {{ address: '{redis if isinstance(redis, str) else f'127.0.0.1:{redis.port}'}', timeout_ms: 60000, {more} }}\n" if redis else ""
    return (f"services:\n  - {{ name: a, servers: ['{up.address}'] }}\ntrust: [127.0.0.0/8]\n{shared}rates:\n"
            + "".join(f"  - {{ {r} }}\n" for r in rates) + "routes:\n" + "".join(f"  - {{ service: a, {r} }}\n" for r in routes))


def connected(gate):
    return gate.wait_redis()


def client(address):
    return f"X-Forwarded-For: {address}\r\n"


def crowd(gates, n, fields="", path="/"):
    """n requests from many connections at once: their statuses and heads."""
    said, lock = [], threading.Lock()

    def run(i):
        c = g.Client(gates[i % len(gates)].http)
        for _ in range(10):
            c.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
            status, low, _ = c.answer()
            with lock:
                said.append((status, low))
        c.close()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(n // 10)]
    for x in threads:
        x.start()
    for x in threads:
        x.join(f.LIMIT)
    return said


def statuses(said):
    return {s: sum(x == s for x, _ in said) for s in {x for x, _ in said}}


def started(t, name, **settings):
    server = Server(t.state(name), appendonly="no", appendfsync="no", **settings)
    server.start()
    return server


KEY = "limit:minute:127.0.0.1"


def counted_together(t):
    """100 per minute over two gateways: the 101st is refused, wherever it comes in."""
    redis = started(t, "together")
    up = g.Upstream(tell)
    config = rate_config(up, ["name: minute, count: 100, period_s: 60"], ["path: /, rates: [minute]"], redis)
    gates = [connected(g.Gateway(t, config)) for _ in range(2)]
    try:
        said = crowd(gates, 150)
        t.equal(statuses(said), {200: 100, 429: 50}, "150 requests over two gateways")
        t.equal(len(up.requests), 100, "the service saw those that passed")
        for status, low in said:
            if status == 429:
                t.check(1 <= int(low["retry-after"]) <= 60 and low["ratelimit-limit"] == "100" and low["ratelimit-remaining"] == "0", f"429: {low}")
        left = sorted(int(low["ratelimit-remaining"]) for status, low in said if status == 200)
        t.equal(left, list(range(100)), "each that passed was told another number")
        begun = [int(x) for x in redis.do("GET", KEY).split()]
        t.equal(begun[1], 100, "what Redis counted")
        for gate in gates:
            status, low, problem = ask(gate, "/")
            t.equal((status, low["content-type"], problem["type"]), (429, "application/problem+json", "urn:firn:problem:too-many-requests"), "the 101st on each")
            line = gate.line(low["x-request-id"])
            t.equal((line["rate"], line["status"]), ("minute", 429), "the access log names the rate")
        t.equal(ask(gates[0], "/", client("10.0.0.9"))[0], 200, "another address passes")
        t.equal(sum(metric(x, 'firn_proxy_limited_total{rate="minute"}') for x in gates), 52, "metrics")
        t.equal(sum(metric(x, 'firn_proxy_rate_away_total{rate="minute"}') for x in gates), 0, "Redis decided on all")
        t.equal(sorted(redis.do("KEYS", "*")), [b"limit:minute:10.0.0.9", b"limit:minute:127.0.0.1"], "keys in Redis")
        t.check(0 < redis.do("PTTL", KEY) <= 60000, "the key goes away by itself")
        for age, passes in ((30, 0), (60, 100)):  # a gateway that remembers no refusal asks Redis
            at, n = begun
            redis.do("SET", KEY, f"{at - age * 1000000} {n}", "KEEPTTL")
            fresh = connected(g.Gateway(t, config))
            t.equal(statuses(crowd([fresh], 110)).get(200, 0), passes, f"{age} s later")
            fresh.stop()
        redis.do("SCRIPT", "FLUSH")
        t.equal(ask(gates[0], "/", client("10.0.0.10"))[0], 200, "a script that Redis forgot is loaded again")
        t.equal(metric(gates[0], 'firn_proxy_rate_away_total{rate="minute"}'), 0, "by the same request")
    finally:
        for gate in gates:
            gate.stop()
        redis.stop()


def counted_here(t):
    """Without Redis: one table for all loops."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, rate_config(
        up, ["name: m, count: 100, period_s: 3600", "name: short, count: 2, period_s: 1", "name: key, by: 'header:X-Api-Key', count: 3, period_s: 3600", "name: smooth, kind: smooth, count: 1, period_s: 3600, burst: 4",
             "name: wide, count: 1, period_s: 3600, ipv6_bits: 48"],
        ["path: /, rates: [m]", "path: /short, rates: [short]", "path: /key, rates: [key]", "path: /smooth, rates: [smooth]", "path: /both, rates: [key, m]",
         "path: /wide, rates: [wide]", "path: /free"]), "--loops=2")
    t.equal(statuses(crowd([gate], 150)), {200: 100, 429: 50}, "150 requests over two loops")
    t.equal(statuses(crowd([gate], 150, path="/free")), {200: 150}, "a route without rates")
    t.check("ratelimit-limit" not in g.get(gate.http, "/free")[1], "nor has it their headers")
    t.equal([ask(gate, "/short", client("10.1.1.1"))[0] for _ in range(2)], [200, 200], "two per second")
    f.wait_for("a third in one second", lambda: 429 in [ask(gate, "/short", client("10.1.1.1"))[0] for _ in range(3)])
    f.wait_for("the next second", lambda: ask(gate, "/short", client("10.1.1.1"))[0] == 200)
    t.equal([ask(gate, "/key", f"X-Api-Key: {k}\r\n")[0] for k in ("a", "a", "b", "a", "a", "b")], [200, 200, 200, 200, 429, 200], "by a header")
    for junk in ("X-Api-Key: b\r\nX-Api-Key: d\r\n", "X_Api_Key: d\r\nX-Api-Key: d\r\n", "X-Api-Key: d\r\nx.api.key: d\r\n", "X_API_KEY: d\r\n", "x-api-key: d\r\nX-API-KEY:\r\n"):
        t.equal([ask(gate, path, junk)[0] for path in ("/key", "/both", "/free")], [400, 400, 200], f"two readings of the header: {junk!r}")
    t.equal([ask(gate, "/key", "x-api-key: d\r\nX-Api-Keys: d\r\n")[0] for _ in range(4)], [200, 200, 200, 429], "none of them was counted")
    t.equal([ask(gate, "/key")[0] for _ in range(4)], [200, 200, 200, 429], "those without the header are one")
    said = [ask(gate, "/smooth", client("10.1.1.2")) for _ in range(5)]
    t.equal([s for s, _, _ in said], [200] * 4 + [429], "a burst of 4, then one each hour")
    t.check(3500 < int(said[4][1]["retry-after"]) <= 3600 and said[0][1]["ratelimit-limit"] == "4", f"{said[4][1]}")
    status, low, _ = ask(gate, "/both", client("10.1.1.3") + "X-Api-Key: a\r\n")
    t.equal((status, gate.line(low["x-request-id"])["rate"]), (429, "key"), "all rates of a route must let it pass")
    status, low, _ = ask(gate, "/both", client("10.1.1.3") + "X-Api-Key: c\r\n")
    t.equal((status, low["ratelimit-remaining"], low["ratelimit-limit"]), (200, "2", "3"), "the headers are those of the narrower one")
    for path, first, same, other in (("/wide", "2001:db8:1::1", "2001:db8:1:ffff::2", "2001:db8:2::1"), ("/wide", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2")):
        t.equal([ask(gate, path, client(a))[0] for a in (first, same, other)], [200, 429, 200], f"{first} and {same} are one client")
    t.equal([ask(gate, "/", client(f"2001:db8:0:7::{i:x}"))[0] for i in range(1, 102)].count(429), 1, "a /64 is one client by default")
    t.equal(ask(gate, "/", client("2001:db8:0:8::1"))[0], 200, "the next /64 is another one")
    passed = metric(gate, 'firn_proxy_rate_passed_total{rate="m"}')
    gate.signal(signal.SIGHUP)
    f.wait_for("the reload", lambda: gate.status()["plan"] >= 2)
    t.equal((ask(gate, "/")[0], metric(gate, 'firn_proxy_rate_passed_total{rate="m"}')), (429, passed), "a reload forgets no count")
    gate.stop()


def by_user(t):
    redis = started(t, "users")
    up = g.Upstream(tell)
    k = key(t, "ES256")
    path = write(t.state("users.json"), jwks(k))
    gate = connected(g.Gateway(t, rate_config(
        up, ["name: u, by: user, count: 2", "name: ip, count: 1000"], ["path: /, token: k, rates: [u, ip]", "path: /maybe, token: k, token_optional: true, rates: [u]"], redis,
        "prefix: 'shop:'") + f"tokens:\n  - {{ name: k, jwks: {path} }}\n"))
    users = ["456", "a:b", "a", "b", "a%3Ab", "u:456", "*", "x y", "../..", "456'", "~" + "a" * 64, "A" * 300, "A" * 299 + "B"]
    for user in users:
        token = bearer(k.token(claims(sub=user)))
        t.equal([ask(gate, "/", token + client(f"10.2.{i}.1"))[0] for i in range(3)], [200, 200, 429], f"user {user[:20]}: from any address, and apart from all others")
    names = redis.do("KEYS", "shop:limit:u:*")
    t.equal(len(names), len(users), f"a key for each: {names}")
    t.check(all(n.count(b":") == 3 and b"*" not in n and b" " not in n and len(n) < 600 for n in names), f"no user writes another's key: {names}")
    t.check(b"shop:limit:u:456" in names and b"shop:limit:u:a%3Ab" in names, f"{names}")
    t.equal([ask(gate, "/", client("10.3.0.1"))[0] for _ in range(4)], [401] * 4, "without a token")
    t.equal(redis.do("EXISTS", "shop:limit:ip:10.3.0.1"), 1, "which the address pays for")
    t.equal([ask(gate, "/maybe", client("10.3.0.2"))[0] for _ in range(3)], [200, 200, 429], "who needs no token is counted by address")
    t.equal(ask(gate, "/maybe", client("10.3.0.3"))[0], 200, "and apart")
    gate.stop()
    redis.stop()


def parrot(answer):
    """A server that says what a test wants to each command."""
    sock = socket.create_server(("127.0.0.1", 0))

    def serve(peer):
        text = b""
        try:
            while True:
                while b"\r\n" not in text:
                    data = peer.recv(65536)
                    if not data:
                        return
                    text += data
                count, text = text.split(b"\r\n", 1)
                words = []
                for _ in range(int(count[1:])):
                    while b"\r\n" not in text:
                        text += peer.recv(65536)
                    n, text = text.split(b"\r\n", 1)
                    while len(text) < int(n[1:]) + 2:
                        text += peer.recv(65536)
                    words.append(text[:int(n[1:])])
                    text = text[int(n[1:]) + 2:]
                peer.sendall(answer if words[0] == b"EVALSHA" else b"+OK\r\n")
        except (OSError, ValueError):
            pass
        finally:
            peer.close()

    def run():
        while True:
            try:
                peer, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(peer,), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()
    return sock


AWAY = ["name: here, count: 3", "name: closed, count: 3, away: closed"]
AWAY_ROUTES = ["path: /here, rates: [here]", "path: /closed, rates: [closed]"]


def redis_wrong(t):
    """Redis that answers nonsense, errors, or is nobody: the rate says what happens."""
    up = g.Upstream(tell)
    for name, answer in (("an error", b"-ERR no\r\n"), ("a text", b"$2\r\nhi\r\n"), ("two numbers", b"*2\r\n:1\r\n:1\r\n"), ("too much", b"*3\r\n:7\r\n:1\r\n:1\r\n"),
                         ("minus", b"*3\r\n:1\r\n:-1\r\n:1\r\n"), ("texts", b"*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n"), ("no script, ever", b"-NOSCRIPT no\r\n"),
                         ("no Redis", b"HTTP/1.1 200 OK\r\n\r\n"), ("null", b"*-1\r\n")):
        sock = parrot(answer)
        gate = connected(g.Gateway(t, rate_config(up, AWAY, AWAY_ROUTES, f"127.0.0.1:{sock.getsockname()[1]}")))
        t.equal([ask(gate, "/here")[0] for _ in range(4)], [200, 200, 200, 429], f"{name}: this gateway counts")
        status, low, _ = ask(gate, "/closed")
        t.equal((status, low["retry-after"]), (503, "1"), f"{name}: closed")
        gate.stop()
        sock.close()
    redis = started(t, "wrong")
    gate = connected(g.Gateway(t, rate_config(up, AWAY, AWAY_ROUTES, redis)))
    redis.do("RPUSH", "limit:here:127.0.0.1", "x")
    t.equal([ask(gate, "/here")[0] for _ in range(4)], [200, 200, 200, 429], "a key of another type")
    redis.do("SET", "limit:closed:127.0.0.1", "garbage")
    t.equal([ask(gate, "/closed")[0] for _ in range(4)], [200, 200, 200, 429], "a value that is none of ours counts as none")
    redis.do("CONFIG", "SET", "maxmemory", "1")
    t.equal(ask(gate, "/closed", client("10.9.9.9"))[0], 503, "Redis that is out of memory")
    gate.stop()
    redis.stop()


def reload(gate, config):
    before = gate.status()["plan"]
    gate.write(config)
    gate.signal(signal.SIGHUP)
    f.wait_for("the reload", lambda: gate.status()["plan"] > before)


def redis_gone(t):
    """Killed, and back; stopped, with clients that leave and a reload meanwhile."""
    redis = started(t, "gone")
    up = g.Upstream(tell)
    config = rate_config(up, AWAY, AWAY_ROUTES, redis)
    gate = connected(g.Gateway(t, config))
    t.equal([ask(gate, p)[0] for p in ("/here", "/closed")], [200, 200], "with Redis")
    redis.end(signal.SIGKILL)
    f.wait_for("the gateway to notice", lambda: gate.status()["redis"]["connected"] == 0)
    t.check("redis_away" in gate.log() and gate.status()["redis"]["error"], "it says so")
    t.equal([ask(gate, "/here")[0] for _ in range(4)], [200, 200, 200, 429], "killed: this gateway counts")
    t.equal(ask(gate, "/closed")[0], 503, "killed: closed")
    redis.start()
    connected(gate)
    t.equal(ask(gate, "/closed", client("10.4.0.1"))[0], 200, "and it is back")

    redis.tell(signal.SIGSTOP)
    wait_stopped([redis.process.pid])
    leavers = [g.Client(gate.http) for _ in range(8)]
    for i, c in enumerate(leavers):
        c.ask(f"GET /{'here' if i % 2 else 'closed'} HTTP/1.1\r\nHost: a\r\n{client(f'10.4.1.{i}')}\r\n")
    f.wait_for("requests that wait", lambda: gate.status()["requests_in_hand"] == 8)
    for c in leavers[:4]:
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        c.close()
    f.wait_for("four to be gone", lambda: gate.status()["requests_in_hand"] == 4)
    redis.tell(signal.SIGCONT)
    t.equal([c.answer()[0] for c in leavers[4:]], [200] * 4, "those that stayed are answered")
    for c in leavers[4:]:
        c.close()

    redis.tell(signal.SIGSTOP)
    wait_stopped([redis.process.pid])
    waiting = [g.Client(gate.http) for _ in range(4)]
    for i, c in enumerate(waiting):
        c.ask(f"GET /{'here' if i % 2 else 'closed'} HTTP/1.1\r\nHost: a\r\n{client(f'10.4.2.{i}')}\r\n")
    f.wait_for("requests that wait", lambda: gate.status()["requests_in_hand"] == 4)
    reload(gate, config.replace("timeout_ms: 60000", "timeout_ms: 50"))  # the connection is made anew
    t.equal(sorted(c.answer()[0] for c in waiting), [200, 200, 503, 503], "a reload that ends the connection: as without Redis")
    for c in waiting:
        c.close()
    t.equal((ask(gate, "/here", client("10.4.3.1"))[0], ask(gate, "/closed", client("10.4.3.1"))[0]), (200, 503), "stopped: answered after timeout_ms")
    t.check(metric(gate, "firn_proxy_redis_timeouts_total") + metric(gate, "firn_proxy_redis_refused_total") > 0, "which is counted")
    redis.tell(signal.SIGCONT)
    f.wait_for("Redis again", lambda: ask(gate, "/closed", client("10.4.3.2"))[0] != 503)
    redis.tell(signal.SIGSTOP)
    wait_stopped([redis.process.pid])
    last = g.Client(gate.http)
    reload(gate, config.replace("timeout_ms: 60000", "timeout_ms: 59999"))
    last.ask(f"GET /closed HTTP/1.1\r\nHost: a\r\n{client('10.4.4.1')}\r\n")
    f.wait_for("a request that waits", lambda: gate.status()["requests_in_hand"] == 1)
    reload(gate, config.replace("redis:", "#redis:"))
    t.equal(last.answer()[0], 503, "Redis is taken out of the configuration")
    t.equal((gate.status()["redis"], ask(gate, "/closed", client("10.4.4.1"))[0]), (None, 200), "and then the table is all there is")
    redis.tell(signal.SIGCONT)
    t.equal(gate.stop(), 0, "a clean end")

    gate = connected(g.Gateway(t, config + "limits: { drain_ms: 50 }\n"))
    redis.tell(signal.SIGSTOP)
    wait_stopped([redis.process.pid])
    late = [g.Client(gate.http) for _ in range(4)]
    for i, c in enumerate(late):
        c.ask(f"GET /here HTTP/1.1\r\nHost: a\r\n{client(f'10.4.5.{i}')}\r\n")
    f.wait_for("requests that wait", lambda: gate.status()["requests_in_hand"] == 4)
    t.equal(gate.stop(), 0, "an end while requests wait for Redis")
    for c in late:
        c.close()
    redis.tell(signal.SIGCONT)
    redis.stop()


def storm(t):
    """Redis that stops, dies and comes back, reloads and changed keys, all while requests come in: each gets its one answer."""
    redis = started(t, "storm")
    up = g.Upstream(tell)
    path = write(t.state("storm.json"), jwks(key(t, "ES256")))
    config = rate_config(up, ["name: ip, count: 100000", "name: u, by: user, count: 40", "name: closed, by: user, count: 100000, away: closed"],
                         ["path: /, token: k, rates: [ip, u]", "path: /closed, token: k, rates: [closed]"], redis).replace("60000", "20")
    config += f"tokens:\n  - {{ name: k, jwks: {path} }}\nlog: {{ access: false }}\n"
    gate = connected(g.Gateway(t, config))
    tokens = [bearer(key(t, "ES256").token(claims(sub=f"s{i}"))) for i in range(8)]
    said, ended = [], threading.Event()

    def run(i):
        while not ended.is_set():
            said.extend(crowd([gate], 40, tokens[i], "/closed" if i % 2 else "/"))
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(tokens))]
    for x in threads:
        x.start()
    for n in range(6):
        redis.tell(signal.SIGSTOP)
        gate.signal(signal.SIGHUP)
        f.wait_for("a reload", lambda want=n + 2: gate.status()["plan"] >= want)
        redis.tell(signal.SIGCONT)
        write(path, jwks(key(t, "ES256"), key(t, "EdDSA")) if n % 2 else jwks(key(t, "ES256")))
        if n % 3 == 2:
            redis.end(signal.SIGKILL)
            redis.start()
        gate.write(config + f"# {n}\n" if n % 2 else config.replace("timeout_ms: 20", f"timeout_ms: {21 + n}"))
    ended.set()
    for x in threads:
        x.join(f.LIMIT)
    got = statuses(said)
    t.say(f"{len(said)} requests: {got}")
    t.check(set(got) <= {200, 429, 503} and got.get(200, 0) > 0 and len(said) % 40 == 0, f"each has its answer: {got}")
    connected(gate)
    f.wait_for("a good end", lambda: ask(gate, "/closed", tokens[1])[0] == 200)
    t.equal(gate.status()["requests_in_hand"], 0, "and nothing is left")
    t.equal(gate.stop(), 0, "a clean end")
    redis.stop()


if __name__ == "__main__":
    with f.Test("gateway_guards") as test:
        for case in (good_tokens, bad_tokens, one_connection, composed, cached, issuers, keys_change, counted_together, counted_here, by_user, redis_wrong, redis_gone, storm):
            test.section(case)
