#!/usr/bin/env python3
"""
firnd and web pages: what browsers send for pages of other sites, for names that point to 127.0.0.1, and for origins that are
allowed; and clients that are no browsers, which notice nothing of it. tests/browser has the same with a real browser.
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from firnd import Firnd, Stream, Test, wait_for  # noqa: E402

JSON = "application/json"
FOREIGN = ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"},
           {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
           {"Origin": "http://localhost:1"})
OWN = ({}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://HOST"},
       {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"})


def ask(address, path, method="GET", body=b"", version="1.1", **fields):
    """(status, header fields in lower case, body); a field None is left out."""
    fields = {"Host": address, **{k.replace("_", "-"): v for k, v in fields.items()}}
    if body:
        fields["Content-Length"] = str(len(body))
    head = f"{method} {path} HTTP/{version}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v is not None)
    s = Stream(address)
    s.send(head.encode() + b"Connection: close\r\n\r\n" + body)
    status = int(s.line().split()[1])
    got = {}
    while True:
        line = s.line().decode()
        if not line:
            break
        name, value = line.split(": ", 1)
        got[name.lower()] = value
    body = s.exactly(int(got.get("content-length", 0))) if method != "HEAD" else b""
    s.close()
    return status, got, body


def spelled(fields, address):
    return {k: v.replace("HOST", address) for k, v in fields.items()}


READS = ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/node", "/v1/kinds", "/v1/layouts", "/v1/inspect/1",
         "/v1/sequences", "/v1/nodes", "/v1/slots", "/v1/events", "/web/words.js")
MINTS = (("GET", "/generate"), ("HEAD", "/generate"), ("GET", "/generate?n=2"), ("POST", "/generate"), ("GET", "/v1/ids/uuidv7"),
         ("GET", "/v1/ids/ticket"), ("GET", "/v1/sequences/default/next"), ("POST", "/v1/sequences/default/next"))
CHANGES = (("POST", "/v1/sequences", b'{"name":"page"}'), ("POST", "/v1/leases", b"{}"), ("DELETE", "/v1/leases/" + "0" * 32, b""),
           ("DELETE", "/v1/sequences/default", b""), ("POST", "/v1/cluster", b'{"action":"transfer"}'))


def pages(t):
    """Pages of other origins read and do nothing else; firnd's own pages, and clients that are no browsers, do everything."""
    f = Firnd(t, t.state("pages")).wait_ready()
    first = json.loads(ask(f.ticket, "/generate")[2])["id"]
    for fields in FOREIGN:
        for path in READS:
            t.equal(ask(f.home, path, **fields)[0], 200, f"GET {path} with {fields}")
        for method, path in MINTS:
            status, got, body = ask(f.home, path, method, **fields)
            t.equal(status, 403, f"{method} {path} with {fields}: {body}")
            t.check("access-control-allow-origin" not in got, "nothing is allowed by itself")
        t.equal(ask(f.snowflake, "/generate", **fields)[0], 403, f"the Snowflake port with {fields}")
        t.equal(ask(f.ticket, "/generate", **fields)[0], 403, f"the ticket port with {fields}")
        for method, path, body in CHANGES:
            status, _, said = ask(f.home, path, method, body, Content_Type=JSON, **fields)
            t.equal(status, 403, f"{method} {path} with {fields}: {said}")
            t.check(b"foreign-origin" in said and b"http.origins" in said, f"the cure: {said}")
    t.equal(int(json.loads(ask(f.ticket, "/generate")[2])["id"]), int(first) + 1, "no page burnt a number")
    for fields in OWN:
        for method, path in MINTS:
            t.equal(ask(f.home, path, method, **spelled(fields, f.home))[0], 200, f"{method} {path} with {fields}")
        status, _, said = ask(f.home, "/v1/sequences", "POST", b'{"name":"own"}', Content_Type=JSON, **spelled(fields, f.home))
        t.check(status in (200, 201), f"POST with {fields}: {status} {said}")
    t.equal(ask(f.home, "/generate", Origin="a", origin="b")[0], 400, "Origin twice")
    t.equal(ask(f.home, "/generate", "OPTIONS", Origin="https://evil.example")[0], 405, "a preflight where nothing is allowed")
    f.stop()


def bodies(t):
    """A body that changes something says that it is JSON; what a form can send is not taken."""
    f = Firnd(t, t.state("bodies")).wait_ready()
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain;a=,application/json",
                 "text/plain, application/json", "application/jsonx"):
        for method, path, body in CHANGES:
            if body:
                status, _, said = ask(f.home, path, method, body, Content_Type=kind)
                t.equal(status, 415, f"{path} as {kind}: {said}")
                t.check(b"--json" in said, f"the cure: {said}")
    for kind in (JSON, "application/json; charset=utf-8", "Application/JSON"):
        t.check(ask(f.home, "/v1/sequences", "POST", b'{"name":"b"}', Content_Type=kind)[0] in (200, 201), f"as {kind}")
    t.check(ask(f.home, "/v1/leases", "POST")[0] != 415, "no body needs no type")
    t.equal(ask(f.home, "/generate", "POST", b"n=2", Content_Type="application/x-www-form-urlencoded")[0], 200, "a form that mints")
    t.equal(ask(f.home, "/generate", "POST", b"n=2", Content_Type="text/plain")[0], 415, "a form in text/plain")
    f.stop()


def names(t):
    """Names in Host: those of this machine and those in the settings; and a health check may call firnd what it likes."""
    f = Firnd(t, t.state("names"), "--http-hosts=ids.example.com, box.example").wait_ready()
    plain = Firnd(t, t.state("plain")).wait_ready()
    port = plain.snowflake.rsplit(":", 1)[1]
    good = ["127.0.0.1", f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", "[::1]:1", "a.localhost", "10.0.0.1", "firn", "firn:80"]
    evil = ["evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.nip.io"]
    for host in good + [os.uname().nodename]:
        for path in ("/generate", "/v1/node", "/generate?n=2"):
            t.equal(ask(plain.snowflake, path, Host=host)[0], 200, f"{path} of {host}")
    for host in evil + ["ids.example.com"]:
        for method, path in (("GET", "/generate"), ("GET", "/v1/node"), ("GET", "/"), ("POST", "/generate"), ("OPTIONS", "/generate")):
            status, _, said = ask(plain.snowflake, path, method, Host=host)
            t.equal(status, 421, f"{method} {path} of {host}: {said}")
            t.check(b"http.hosts" in said, f"the cure: {said}")
        for path in ("/healthz", "/readyz", "/metrics"):
            t.equal(ask(plain.snowflake, path, Host=host)[0], 200, f"{path} of {host}: a health check")
    # One connection: the name is looked at for every request, not once.
    s = Stream(plain.snowflake)
    for host, want in (("localhost", b"200"), ("localhost", b"200"), ("evil.example", b"421"), ("localhost", b"200"), ("evilhosts", b"200"),
                       ("evil.host", b"421")):
        s.send(f"GET /generate HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        t.equal(s.line().split()[1], want, f"{host} on a kept connection")
        length = 0
        while line := s.line():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split()[1])
        s.exactly(length)
    s.close()
    t.equal(ask(plain.home, "/generate", version="1.0", Host=None)[0], 200, "HTTP/1.0 without Host, as wrk -H and HAProxy may send it")
    t.equal(ask(plain.home, "http://evil.example/generate", Host="localhost")[0], 421, "the name in the target counts")
    for host in ("ids.example.com", "IDS.EXAMPLE.COM:443", "box.example", "localhost"):
        t.equal(ask(f.home, "/generate", Host=host)[0], 200, f"{host} is in http.hosts")
    t.equal(ask(f.home, "/generate", Host="other.example")[0], 421, "a name that is not")
    t.equal(ask(plain.home, "/v1/sequences/default", "DELETE", Host="firn")[0], 421, "deletion under a name without a dot")
    t.equal(ask(plain.home, "/v1/cluster", "POST", b'{"action":"transfer"}', Content_Type=JSON, Host="firn")[0], 421,
            "administration under a name without a dot")
    t.equal(ask(plain.home, "/v1/cluster", "POST", b'{"action":"transfer"}', Content_Type=JSON, Host="localhost")[0], 404,
            "administration under our own: this one's store is no cluster")
    f.stop()
    plain.stop()


def cors(t):
    """Origins in the settings mint, from preflight to error; others do not."""
    app, dev = "https://app.example.com", "http://localhost:3000"
    path = os.path.join(t.dir, "cors.yaml")
    with open(path, "w", encoding="ascii") as out:
        out.write(f"http: {{ origins: [{app}, '{dev}'] }}\nauth:\n  tokens:\n    - name: web\n      kinds: [snowflake]\n"
                  f"      token_sha256: {hashlib.sha256(b'secret').hexdigest()}\n")
    f = Firnd(t, t.state("cors"), config=path).wait_ready()
    bearer = {"Authorization": "Bearer secret"}
    for origin, site in ((app, "cross-site"), (dev, "same-site"), (app, None)):
        from_page = {"Origin": origin, "Sec-Fetch-Site": site}
        for where in ("/generate", "/v1/ids/uuidv4", "/v1/sequences"):
            status, got, _ = ask(f.home, where, "OPTIONS", Access_Control_Request_Method="POST",
                                 Access_Control_Request_Headers="authorization,content-type,idempotency-key", **from_page)
            t.equal((status, got.get("access-control-allow-origin"), got.get("vary")), (204, origin, "Origin"), f"preflight of {where}")
            t.check("POST" in got["access-control-allow-methods"] and "DELETE" in got["access-control-allow-methods"], "methods")
            t.check("Authorization" in got["access-control-allow-headers"], "headers")
            t.check("access-control-allow-credentials" not in got and "content-length" not in got, "no cookies, no body")
        for what, fields, want in (("an ID", bearer, 200), ("no token", {}, 401), ("a bad one", {"Authorization": "Bearer x"}, 401)):
            for port in (f.home, f.snowflake):
                status, got, _ = ask(port, "/generate", **fields, **from_page)
                t.equal((status, got.get("access-control-allow-origin")), (want, origin), f"{what} for a page of {origin}")
                t.equal(got.get("access-control-expose-headers"), "*", "what the page may read")
        status, got, _ = ask(f.home, "/nothing", **from_page)
        t.equal((status, got.get("access-control-allow-origin")), (404, origin), "an error is readable")
    status, got, _ = ask(f.home, "/generate", Origin="https://evil.example", **bearer)
    t.equal((status, got.get("access-control-allow-origin"), got.get("vary")), (403, None, "Origin"), "another origin")
    status, got, _ = ask(f.home, "/v1/kinds")
    t.equal((status, got.get("access-control-allow-origin"), got.get("vary")), (200, None, "Origin"), "caches keep answers apart")
    f.stop()
    f = Firnd(t, t.state("star"), "--http-origins=*").wait_ready()
    # Deferred answers too: a ticket waits for its commit.
    for address in (f.snowflake, f.ticket):
        status, got, _ = ask(address, "/generate", Origin="https://any.example", Sec_Fetch_Site="cross-site")
        t.equal((status, got.get("access-control-allow-origin"), got.get("vary")), (200, "*", None), "all origins")
    t.equal(ask(f.ticket, "/generate", Sec_Fetch_Site="cross-site")[0], 403, "a request without Origin is no CORS")
    f.stop()


def settings(t):
    for flag, word in (("--http-hosts=http://a", "no host name"), ("--http-origins=a.example", "no origin"),
                       ("--http-origins=https://a/", "no origin"), ("--http-hosts=a,", "comma")):
        f = Firnd(t, t.state("settings"), flag, serve=False)
        wait_for("firnd to end", lambda: not f.alive())
        t.check(f.process.returncode != 0 and word in f.log(), f"{flag}: {f.log()}")
        t.running.remove(f)


def main():
    with Test("browsers") as t:
        for part in (pages, bodies, names, cors, settings):
            t.section(part)


main()
