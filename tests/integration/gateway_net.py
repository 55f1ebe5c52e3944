#!/usr/bin/env python3
"""
firn-proxy's connections and choices: splits, deadlines of waiting and of tunnels, interim answers, Unix sockets, IPv6, PROXY
protocol, names whose addresses change, files that are half written, an access log that nobody reads.
"""
import base64
import collections
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from engines.ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from tokens import Key, bearer  # noqa: E402  pylint: disable=wrong-import-position


def tell(up, peer, line, fields):
    r = up.keep(peer.body(line, fields))
    g.reply(peer, 200, json.dumps({"target": r.target, "fields": r.fields, "server": up.address}).encode())


def ask(gate, path, fields="", method="GET"):
    status, low, body = g.get(gate.http, path, fields, method)
    try:
        return status, low, json.loads(body)
    except ValueError:
        return status, low, body


def one(up, service="", routes="  - { path: /, service: a }\n", more=""):
    address = up if isinstance(up, str) else up.address
    return f"services:\n  - {{ name: a, servers: ['{address}'], {service} }}\nroutes:\n{routes}{more}"


def checked(t, text):
    path = t.state("check.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", path], capture_output=True, text=True, check=False,
                          timeout=f.LIMIT)
    return said.returncode, said.stdout + said.stderr


def connect(port):
    try:
        return g.Client(f"127.0.0.1:{port}")
    except (f.Gone, OSError):
        return None


def metric(gate, name):
    for line in f.get(gate.admin, "/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return float(line.split(" ")[-1])
    return None


# --- splits ---


def split(t):
    a, b = g.Upstream(tell), g.Upstream(tell)
    issuer = Key(t.dir, "HS256")
    issuer.secret = base64.b64encode(issuer.secret)
    with open(t.state("secret"), "wb") as out:
        out.write(issuer.secret)
    gate = g.Gateway(t, f"""tokens:
  - {{ name: all, secret_file: {t.state("secret")} }}
services:
  - {{ name: v1, servers: ['{a.address}'] }}
  - {{ name: v2, servers: ['{b.address}'] }}
routes:
  - {{ name: canary, path: /canary, split: ['v1 90', 'v2 10'] }}
  - {{ name: header, path: /header, split: ['v1 50', 'v2 50'], split_by: 'header:X-User' }}
  - {{ name: cookie, path: /cookie, split: ['v1 50', 'v2 50'], split_by: 'cookie:session' }}
  - {{ name: address, path: /address, split: ['v1 50', 'v2 50'], split_by: address }}
  - {{ name: user, path: /user, split: ['v1 50', 'v2 50'], split_by: user, token: all }}
  - {{ path: /ab, service: v1 }}
  - {{ path: /ab, headers: ['X-Variant: b'], service: v2 }}
""", "--loops=2")
    clients = [g.Client(gate.http) for _ in range(8)]  # on both loops, which share the state
    served, lock = collections.Counter(), threading.Lock()

    def run(c):
        for _ in range(125):
            c.ask("GET /canary HTTP/1.1\r\nHost: a\r\n\r\n")
            server = json.loads(c.answer()[2])["server"]
            with lock:
                served[server] += 1
    threads = [threading.Thread(target=run, args=(c,)) for c in clients]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    t.equal((served[a.address], served[b.address]), (900, 100), "a canary of 10 % gets 100 of 1,000 requests")
    t.equal(metric(gate, 'firn_proxy_split_total{route="canary",service="v2"}'), 100.0, "the metric")
    t.equal([x["requests"] for x in gate.status()["links"]["split"]["canary"]], [900, 100], "/status")
    _, low, told = ask(gate, "/canary")
    line = gate.line(low["x-request-id"])
    t.equal(line["service"], "v1" if told["server"] == a.address else "v2", "the access log names the service")
    for path, field in (("/header", "X-User: {}\r\n"), ("/cookie", "Cookie: x=1; session={}\r\n")):
        got = {}
        for user in range(30):
            servers = {ask(gate, path, field.format(user))[2]["server"] for _ in range(3)}
            t.equal(len(servers), 1, f"{path}: {user} stays with one service")
            got[user] = servers.pop()
        t.equal(set(got.values()), {a.address, b.address}, f"{path}: both are used")
    got = set()
    for user in range(12):
        token = bearer(issuer.token({"sub": f"u{user}", "exp": int(time.time()) + 3600}, kid=None))
        servers = {ask(gate, "/user", token + f"X-User-ID: {n}\r\n")[2]["server"] for n in range(3)}
        t.equal(len(servers), 1, f"the user u{user} stays with one service")
        got |= servers
    t.equal(got, {a.address, b.address}, "by user: both are used")
    t.equal(len({ask(gate, "/address")[2]["server"] for _ in range(10)}), 1, "by address")
    t.equal({ask(gate, "/header")[2]["server"] for _ in range(2)}, {a.address, b.address}, "without the header in turn")
    t.equal((ask(gate, "/ab")[2]["server"], ask(gate, "/ab", "X-Variant: b\r\n")[2]["server"]), (a.address, b.address), "A/B by a header")
    for c in clients:
        c.close()
    gate.stop()
    a.close()
    b.close()


# --- deadlines ---


def held(up, peer, line, fields):
    """Answers when the test says so."""
    up.keep(peer.body(line, fields))
    up.go.wait(f.LIMIT)
    g.reply(peer, 200, b"late")


def crowd(t):
    up = g.Upstream(held)
    up.go = threading.Event()
    gate = g.Gateway(t, one(up, "connections: 1, wait_ms: 300, retries: 0, breaker_failures: 0"), "--loops=1")
    first = g.Client(gate.http)
    first.ask("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("the connection to be in use", lambda: up.requests)
    others = [g.Client(gate.http) for _ in range(3)]
    for c in others:
        c.ask("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    for c in others:
        status, low, _ = c.answer()
        t.equal((status, low["retry-after"]), (503, "1"), "who waits for a connection for too long")
    t.equal(metric(gate, 'firn_proxy_crowded_total{service="a"}'), 3.0, "is counted")
    t.equal(gate.service("a")["servers"][0]["errors"], 0, "and no fault of the server")
    up.go.set()
    t.equal(first.answer()[2], b"late", "the one that has it goes on")
    for c in [first, *others]:
        c.ask("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal(c.answer()[0], 200, "and all are served again")
        c.close()
    gate.stop()
    up.close()


def held_but_checks(up, peer, line, fields):
    if " /health " in line:
        up.keep(peer.body(line, fields))
        g.reply(peer, 200, b"well")
    else:
        held(up, peer, line, fields)


def busy(t):
    """A server whose connections are all in use is not down: checks that find no connection say nothing."""
    up = g.Upstream(held_but_checks)
    up.go = threading.Event()
    gate = g.Gateway(t, one(up, "connections: 1, wait_ms: 300, health_path: /health, health_ms: 100"), "--loops=1")
    f.wait_for("a health check", lambda: up.requests)
    c = g.Client(gate.http)
    while up.requests[-1].target != "/slow":
        c.ask("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        f.wait_for("the connection to be in use", lambda: up.requests[-1].target == "/slow" or select.select([c.sock], [], [], 0)[0])
        if up.requests[-1].target != "/slow":
            c.answer()  # 503: a check had the connection for longer than wait_ms
    time.sleep(1.6)  # time for checks that would fail; nothing waits for it
    t.equal((up.requests[-1].target, gate.service("a")["servers"][0]["state"]), ("/slow", "up"), "it is up")
    up.go.set()
    t.equal(c.answer()[0], 200, "and serves")
    f.wait_for("the next check", lambda: up.requests[-1].target == "/health")
    c.close()
    gate.stop()
    up.close()


def tunnel_server(up, peer, line, fields):
    up.keep(g.Request(line, fields, 0, "", []))
    peer.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
    while True:
        data = peer.buf or peer.sock.recv(65536)
        peer.buf = b""
        if not data:
            break
        peer.sock.sendall(data)
    up.go.wait(f.LIMIT)  # it has seen the client's end and keeps its own side open
    return False


def open_tunnel(gate):
    c = g.Client(gate.http)
    c.ask("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n\r\n")
    assert c.answer()[0] == 101
    return c


def tunnels(t):
    up = g.Upstream(tunnel_server)
    up.go = threading.Event()
    gate = g.Gateway(t, one(up, "tunnel_ms: 5000, tunnel_end_ms: 86400, breaker_failures: 1", more="limits: { idle_ms: 50, write_ms: 50 }\n"))
    c = open_tunnel(gate)
    for _ in range(30):  # longer than tunnel_ms as a whole, and than the deadlines of requests
        c.send(b"x")
        t.equal(c.exactly(1), b"x", "a tunnel that is used stays")
        time.sleep(0.2)
    try:
        t.check(c.ended(), "one without a byte ends")
    except (ConnectionError, f.Gone):
        t.check(True, "by a reset")
    f.wait_for("no request to be left", lambda: gate.status()["requests_in_hand"] == 0)
    t.equal(gate.service("a")["breaker"], "closed", "and is no failure of the service")
    c.close()
    gate.stop()
    gate = g.Gateway(t, one(up, "tunnel_ms: 3600000, tunnel_end_ms: 300"))
    c = open_tunnel(gate)
    c.sock.shutdown(socket.SHUT_WR)
    f.wait_for("the tunnel to end after its client did", lambda: gate.status()["requests_in_hand"] == 0)
    t.check(any("tunnel" in x.get("error", "") for x in f.wait_for("its line", gate.lines)), "the log says why")
    c.close()
    up.go.set()
    gate.stop()
    up.close()


def idle(t):
    """idle_ms counts from the answer, not from the end of write_ms."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, one(up, more="limits: { idle_ms: 300, write_ms: 3600000, header_ms: 3600000 }\n"))
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    t.equal(c.answer()[0], 200, "an answer")
    t.check(c.ended(), "its connection ends before write_ms")
    c.close()
    gate.stop()
    gate = g.Gateway(t, one(up, more="limits: { idle_ms: 400, write_ms: 100, header_ms: 3600000 }\n"))
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    c.answer()
    t.check(c.ended(), "and after a shorter write_ms it still ends")
    c.close()
    gate.stop()
    up.close()


# --- interim answers ---


def hints(up, peer, line, fields):
    up.keep(peer.body(line, fields))
    peer.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-Secret: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n"
                      b"HTTP/1.1 102 Processing\r\n\r\n")
    g.reply(peer, 200, b"after")


def interim(t):
    up = g.Upstream(hints)
    gate = g.Gateway(t, one(up, routes="  - { path: /, service: a, answer_remove: [x-secret] }\n"))
    c = g.Client(gate.http)
    for _ in range(2):
        c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal(c.head(), (103, [("Link", "</a.css>")]), "103 passes, without fields of the connection and removed ones")
        t.equal(c.head(), (102, []), "102 too")
        status, _, body = c.answer()
        t.equal((status, body), (200, b"after"), "then the answer")
    c.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    t.equal(c.head()[0], 100, "100 is the gateway's own")
    c.ask("hi")
    t.equal([c.head()[0], c.head()[0]], [103, 102], "and comes once")
    t.equal(c.answer()[0], 200, "then the answer")
    c.close()
    c = g.Client(gate.http)
    c.ask("GET / HTTP/1.0\r\n\r\n")
    t.equal(c.head()[0], 200, "HTTP/1.0 knows none")
    c.close()
    gate.stop()
    up.close()


# --- addresses ---


def unix(t):
    """Servers on Unix sockets, with bodies both ways, TLS aside."""
    up = g.Upstream(tell, path=t.state("app.sock"))
    gate = g.Gateway(t, one(up, "health_path: /health, health_ms: 100"))
    status, low, told = ask(gate, "/a")
    t.equal((status, told["target"], told["server"]), (200, "/a", up.address), "a Unix socket")
    t.equal(gate.line(low["x-request-id"])["server"], up.address, "its line")
    c = g.Client(gate.http)
    data = g.pattern(3000000)
    c.ask(b"POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    status = c.answer()[0]
    t.equal((status, [r.body_len for r in up.requests if r.target == "/big"]), (200, [len(data)]), "with a body")  # beside health checks
    c.ask("GET /b HTTP/1.0\r\n\r\n")
    told = json.loads(c.answer()[2])
    t.equal([v for n, v in told["fields"] if n == "Host"], ["localhost"], "and a Host for who brings none")
    c.close()
    f.wait_for("a health check", lambda: any(r.target == "/health" for r in up.requests))
    up.close()
    os.unlink(t.state("app.sock"))
    t.equal(ask(gate, "/a")[0], 503, "a socket that is gone")
    up = g.Upstream(tell, path=t.state("app.sock"))
    f.wait_for("the next server on it", lambda: ask(gate, "/a")[0] == 200)
    gate.stop()
    up.close()
    for bad in ("unix:app.sock", "unix:/" + "x" * 120, 'unix:/a"b'):
        code, said = checked(t, one(bad))
        t.check(code != 0 and "is no Unix socket" in said, f"{bad}: {said}")


def ask_unix(path, target="/a", fields=""):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(f.LIMIT)
    s.connect(path)
    s.sendall(f"GET {target} HTTP/1.0\r\nHost: a\r\n{fields}\r\n".encode())
    text = b""
    while part := s.recv(65536):
        text += part
    s.close()
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(body)


def unix_listener(t):
    """Clients on a Unix socket, a file that a killed gateway left, one that is in use."""
    up = g.Upstream(tell)
    path = t.state("front.sock")
    listen = f"--listen-http=unix:{path},127.0.0.1:0"
    gate = g.Gateway(t, one(up), listen, "--loops=2")
    t.equal(gate.http, "unix:" + path[:58], "it says where")
    for _ in range(4):
        status, told = ask_unix(path, fields="X-Forwarded-For: 203.0.113.1\r\n")
        t.equal((status, [v for n, v in told["fields"] if n == "X-Forwarded-For"]), (200, ["unknown"]), "a client without an address")
    f.wait_for("its line", lambda: [x for x in gate.lines() if x["client"] == "unix"])
    second = g.Gateway(t, one(up), listen, serve=False)
    t.equal(second.wait(), 1, "a socket that is in use")
    t.check("cannot listen on unix:" in second.log(), second.log())
    gate.kill()
    gate = g.Gateway(t, one(up, more="trust: [unix]\n"), listen, "--loops=1")
    status, told = ask_unix(path, fields="X-Forwarded-For: 203.0.113.1\r\n")
    t.equal((status, [v for n, v in told["fields"] if n == "X-Forwarded-For"]), (200, ["203.0.113.1, unknown"]), "after kill -9; trusted")
    t.check("203.0.113.1" in [x["client"] for x in f.wait_for("its line", gate.lines)], "the client that it told")
    gate.stop()
    t.check(not os.path.exists(path), "it takes its socket away")
    with open(path, "w", encoding="ascii"):
        pass
    refused = g.Gateway(t, one(up), listen, serve=False)
    t.equal((refused.wait(), os.path.isfile(path)), (1, True), "a file that is no socket stays")
    os.unlink(path)
    up.close()


def ipv6(t):
    up = g.Upstream(tell, host="::1")
    gate = g.Gateway(t, one(up), "--listen-http=[::1]:0")
    status, low, told = ask(gate, "/a")
    t.equal((status, told["server"]), (200, up.address), "IPv6 on both sides")
    t.equal([v for n, v in told["fields"] if n == "X-Forwarded-For"], ["::1"], "X-Forwarded-For")
    t.equal(gate.line(low["x-request-id"])["client"], "::1", "the log")
    gate.stop()
    up.close()


V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v2(source, port, to="10.9.9.9", to_port=80, more=b""):
    body = socket.inet_aton(source) + socket.inet_aton(to) + port.to_bytes(2, "big") + to_port.to_bytes(2, "big") + more
    return V2 + b"\x21\x11" + len(body).to_bytes(2, "big") + body


def proxied_in(t):
    up = g.Upstream(tell)
    cert, key = certificates(t)
    gate = g.Gateway(t, one(up, more=f"trust: [127.0.0.0/8]\ntls: {{ cert: '{cert}', key: '{key}' }}\n"),
                     "--listen-proxy-protocol=true", "--listen-https=127.0.0.1:0", "--limits-connections-per-address=3")
    request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

    def forwarded(head, cut=0):
        c = g.Client(gate.http)
        if cut:
            c.ask(head[:cut])
            time.sleep(0.01)
        c.ask(head[cut:] + request)
        status, low, body = c.answer()
        c.close()
        told = json.loads(body)
        return status, gate.line(low["x-request-id"])["client"], [v for n, v in told["fields"] if n == "X-Forwarded-For"]
    t.equal(forwarded(v2("203.0.113.7", 4711)), (200, "203.0.113.7", ["203.0.113.7"]), "version 2")
    t.equal(forwarded(b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n"), (200, "2001:db8::7", ["2001:db8::7"]), "version 1")
    t.equal(forwarded(v2("203.0.113.8", 1, more=b"\x04\0\x02xx"), 20), (200, "203.0.113.8", ["203.0.113.8"]), "in pieces, with an extension")
    t.equal(forwarded(V2 + b"\x20\0\0\0"), (200, "127.0.0.1", ["127.0.0.1"]), "the proxy for itself")
    for head in (b"", b"PROXY TCP4 x\r\n", V2 + b"\x21\x11\0\x01x"):
        c = g.Client(gate.http)
        try:
            c.ask(head + request)
            t.check(c.ended(), f"without a header nothing is answered: {head}")
        except (OSError, f.Gone):
            t.check(True, "a reset")
        c.close()
    f.wait_for("them to be counted", lambda: metric(gate, "firn_proxy_unproxied_total") == 3)
    # The client counts, not the proxy: three of one, three of another.
    clients = []
    for source in ("203.0.113.1",) * 3 + ("203.0.113.2",) * 3:
        c = g.Client(gate.http)
        c.ask(v2(source, 5) + request)
        t.equal(c.answer()[0], 200, f"a place for {source}")
        clients.append(c)
    c = g.Client(gate.http)
    try:
        c.ask(v2("203.0.113.2", 5) + request)
        t.check(c.ended(), "limits are those of the client")
    except (OSError, f.Gone):
        t.check(True, "a reset")
    for x in [c, *clients]:
        x.close()
    # In front of TLS.
    host, port = gate.https.rsplit(":", 1)
    raw = socket.create_connection((host, int(port)), timeout=f.LIMIT)
    raw.sendall(v2("203.0.113.9", 9))
    context = ssl.create_default_context(cafile=cert)
    with context.wrap_socket(raw, server_hostname="localhost") as s:
        s.sendall(b"GET /a HTTP/1.0\r\n\r\n")
        text = b""
        while part := s.recv(65536):
            text += part
    t.check(b"203.0.113.9" in text, f"in front of TLS: {text[:300]}")
    gate.stop()
    stranger = g.Gateway(t, one(up, more="trust: [192.0.2.0/24]\n"), "--listen-proxy-protocol=true")
    try:
        c = g.Client(stranger.http)
        c.ask(v2("203.0.113.7", 4711) + request)
        t.check(c.ended(), "a peer that is not trusted")
        c.close()
    except (OSError, f.Gone):
        t.check(True, "a reset")
    t.equal(metric(stranger, "firn_proxy_unproxied_total"), 1.0, "is counted")
    stranger.stop()
    code, said = checked(t, one(up, more="listen: { proxy_protocol: true }\n"))
    t.check(code != 0 and "listen.proxy_protocol: needs trust" in said, f"{said}")
    up.close()


def certificates(t):
    run = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", t.state("key.pem"), "-out", t.state("cert.pem")]
    subprocess.run(run, check=True, capture_output=True, timeout=f.LIMIT)
    return t.state("cert.pem"), t.state("key.pem")


class ProxiedUpstream(g.Upstream):
    """Each connection begins with a PROXY header of version 2, which it keeps."""

    def serve(self, sock):
        head = b""
        while len(head) < 16 or len(head) < 16 + int.from_bytes(head[14:16], "big"):
            part = sock.recv(1 if len(head) < 16 else 16 + int.from_bytes(head[14:16], "big") - len(head))
            if not part:
                sock.close()
                return
            head += part
        with self.lock:
            self.heads = [*getattr(self, "heads", []), head]
        super().serve(sock)


def proxied_out(t):
    up = ProxiedUpstream(tell)
    gate = g.Gateway(t, one(up, "proxy_protocol: true, connections: 2", more="trust: [127.0.0.0/8]\n"))
    c = g.Client(gate.http)
    own = c.sock.getsockname()
    for _ in range(3):
        c.ask("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
        t.equal(c.answer()[0], 200, "a request")
    t.equal(up.connections, 3, "each has a connection of its own")
    head = up.heads[0]
    t.equal((head[:12], head[12:16], socket.inet_ntoa(head[16:20]), int.from_bytes(head[24:26], "big")),
            (V2, b"\x21\x11\0\x0c", "127.0.0.1", own[1]), "the client's address and port")
    t.equal(int.from_bytes(head[26:28], "big"), int(gate.http.rsplit(":", 1)[1]), "and the address that it asked")
    c.ask("GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.5\r\n\r\n")
    c.answer()
    t.equal(socket.inet_ntoa(up.heads[-1][16:20]) if len(up.heads[-1]) == 28 else "", "203.0.113.5", "as trusted proxies tell it")
    c.close()
    gate.stop()
    checks = ProxiedUpstream(tell)
    gate = g.Gateway(t, one(checks, "proxy_protocol: true, health_path: /h, health_ms: 100"))
    f.wait_for("a health check", lambda: checks.requests)
    t.equal(checks.heads[0], V2 + b"\x20\0\0\0", "health checks are the gateway's own")
    gate.stop()
    up.close()
    checks.close()


def names(t):
    """A name with several addresses, which change while it runs; /etc/hosts is a file of the test's, in a mount namespace."""
    hosts = t.state("hosts")

    def write(*addresses):
        with open(hosts, "w", encoding="ascii") as out:  # the same inode, as it is mounted
            out.write("127.0.0.1 localhost\n" + "".join(f"{a} shop.firn-test.invalid\n" for a in addresses))
    a = g.Upstream(tell, host="127.0.0.2")
    b = g.Upstream(tell, port=a.port, host="127.0.0.3")
    write("127.0.0.2")
    before = ["unshare", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$0" "$@"']
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        print("NOT RUN: names: no mount namespaces here")
        return
    gate = g.Gateway(t, one(f"shop.firn-test.invalid:{a.port}", more="resolve_ms: 100\n"), before=before)

    def servers():
        return [x["address"] for x in gate.service("a")["servers"]]
    t.equal(servers(), [a.address], "one address")
    over, failures, counts = threading.Event(), [], []

    def run():
        c = g.Client(gate.http)
        while not over.is_set():
            c.ask("GET /n HTTP/1.1\r\nHost: a\r\n\r\n")
            status, _, body = c.answer()
            counts.append(json.loads(body)["server"] if status == 200 else failures.append(status))
        c.close()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for x in threads:
        x.start()
    write("127.0.0.2", "127.0.0.3")
    f.wait_for("both addresses", lambda: servers() == [a.address, b.address])
    f.wait_for("both to be used", lambda: b.address in counts[-50:] and a.address in counts[-50:])
    t.check(gate.service("a")["requests"] > 0, "counters go on")
    write("127.0.0.3")
    f.wait_for("the second alone", lambda: servers() == [b.address])
    f.wait_for("all requests to go there", lambda: set(counts[-50:]) == {b.address})  # each loop follows in its own time
    write()
    f.wait_for("a look-up that fails", lambda: metric(gate, "firn_proxy_lookup_errors_total"))
    t.equal((servers(), ask(gate, "/")[0]), ([b.address], 200), "the addresses stay")
    gate.wait_log("cannot be looked up")
    gate.signal(signal.SIGHUP)
    f.wait_for("a reload meanwhile", lambda: metric(gate, "firn_proxy_reloads_total") == 1)
    t.equal((servers(), ask(gate, "/")[0]), ([b.address], 200), "they stay across a reload")
    over.set()
    for x in threads:
        x.join()
    t.equal(failures, [], f"no request is lost; {len(counts)} answered")
    write("127.0.0.2")
    gate.write(one(f"shop.firn-test.invalid:{a.port}", more="resolve_ms: 0\nwatch: false\n"))
    gate.signal(signal.SIGHUP)
    f.wait_for("a look-up behind the reload", lambda: servers() == [a.address])
    gate.stop()
    a.close()
    b.close()


# --- files and logs ---


def files(t):
    up = g.Upstream(tell)
    text = one(up, more="watch: false\n")
    gate = g.Gateway(t, text)
    gate.write(text.split("routes:")[0] + "watch: false\n")
    gate.signal(signal.SIGHUP)
    f.wait_for("the refusal", lambda: gate.status()["reload_error"])
    t.check("there is no route in it" in gate.status()["reload_error"], f"a file without routes: {gate.status()['reload_error']}")
    t.equal(ask(gate, "/")[0], 200, "is not taken")
    gate.stop()
    code, said = checked(t, one(up, routes="  - { name: x, path: /a, service: a, methods: [GET, PUT], hosts: [h.example] }\n"
                                "  - { name: y, path: /a, service: a, methods: [PUT, GET], hosts: [H.example] }\n"))
    t.check(code != 0 and "'y': path: it matches the same requests as 'x'" in said, f"two routes that are one: {said}")
    code, said = checked(t, one(up, routes="  - { path: /a, split: ['a 1', 'b 1'] }\n"))
    t.check(code != 0 and "there is no service 'b'" in said, f"a split to a service that is not there: {said}")
    up.close()


def fifos(t):
    """A FIFO in place of a file that is read: an error, and the gateway goes on."""
    up = g.Upstream(tell)
    secret = t.state("fifo-secret")
    with open(secret, "w", encoding="utf-8") as out:
        out.write("0123456789abcdef" * 2)
    gate = g.Gateway(t, one(up, routes="  - { path: /, service: a, token: k, token_optional: true }\n", more=f"tokens: [{{ name: k, secret_file: {secret} }}]\n"))
    for path, told in ((secret, f"cannot read {secret}: not a regular file"), (gate.config_path, "not a regular file")):
        os.rename(path, path + ".kept")
        os.mkfifo(path)
        gate.signal(signal.SIGHUP)
        gate.wait_log(told)
        t.equal(ask(gate, "/x")[0], 200, f"serves with a FIFO as {path}")
        os.rename(path + ".kept", path)
    gate.stop()
    os.unlink(gate.config_path)
    os.mkfifo(gate.config_path)
    writer = threading.Thread(target=lambda: subprocess.run(["sh", "-c", 'printf "%s" "$1" > "$2"', "sh", one(up), gate.config_path], check=True))
    writer.start()
    said = subprocess.run([os.path.join(t.bin, "firn-proxy"), "--check-config", "-c", gate.config_path], capture_output=True, text=True, check=False,
                          timeout=f.LIMIT)
    writer.join()
    t.equal(said.returncode, 0, f"a pipe as configuration at the start: {said.stderr}")
    up.close()


def closed(t):
    """Started without stdin, stdout, stderr or all: their numbers are nobody else's."""
    up = g.Upstream(tell)
    port = free_port()
    path = t.state("closed.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(one(up, more=f"listen: {{ http: ['127.0.0.1:{port}'], admin: [] }}\nloops: 1\n"))
    for shut in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        p = subprocess.Popen(["sh", "-c", f'exec "$0" -c "$1" {shut}', os.path.join(t.bin, "firn-proxy"), path], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            c = f.wait_for("firn-proxy to serve", lambda: connect(port))
            for _ in range(20):
                c.ask("GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
                t.equal(c.answer()[0], 200, f"served with {shut}")
            t.equal([os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in range(3)], ["/dev/null"] * 3, f"descriptors with {shut}")
            c.close()
            p.send_signal(signal.SIGTERM)
            t.equal(p.wait(f.LIMIT), 0, f"ends with {shut}")
        finally:
            if p.poll() is None:
                p.kill()
    up.close()


def blocked(t):
    """stdout is a pipe that nobody reads: requests go on, lines are lost and counted."""
    up = g.Upstream(tell)
    gate = g.Gateway(t, one(up), "--loops=1", access=subprocess.PIPE)
    c = g.Client(gate.http)
    path = "/" + "x" * 4000
    while not metric(gate, "firn_proxy_log_lost_total"):
        for _ in range(50):
            c.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
            t.check(c.answer()[0] == 200, "answered though nobody reads the log")
    lines = []

    def read():
        for line in gate.process.stdout:
            lines.append(json.loads(line))  # every line is whole
    reader = threading.Thread(target=read)
    reader.start()
    c.ask("GET /last HTTP/1.1\r\nHost: a\r\n\r\n")
    c.answer()
    f.wait_for("room in the log again", lambda: (ask(gate, "/again"), lines and lines[-1]["path"] == "/again")[1])
    lost = metric(gate, "firn_proxy_log_lost_total")
    c.close()
    gate.stop()
    reader.join()
    gate.process.stdout.close()
    t.equal(len(lines) + int(lost), len(up.requests), "what is not in the log is counted")
    up.close()


def blocked_long(t):
    """A line that does not fit behind those that wait for stdout is lost whole, and counted."""
    body = b"\1" * 65536  # six bytes each in JSON

    def echo(_, peer, line, fields):
        g.reply(peer, 200, body if peer.body(line, fields).body_len else b"", "Content-Type: text/plain\r\n")
    up = g.Upstream(echo)
    gate = g.Gateway(t, one(up, routes="  - { path: /short, service: a }\n  - { path: /, service: a, log_headers: true, log_body_bytes: 65536 }\n"),
                     "--loops=1", access=subprocess.PIPE)
    c = g.Client(gate.http)
    long = "".join(f"X-{i}: " + "\xff" * 200 + "\r\n" for i in range(40))
    short = "/short" + "x" * 4000
    for _ in range(62):  # the pipe is full, and the loop's buffer almost where lines are dropped
        ask(gate, short)
    t.equal(metric(gate, "firn_proxy_log_lost_total"), 0, "short lines are kept")
    for _ in range(3):
        c.ask(f"POST /long HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n{long}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body)
        status, _, got = c.answer()
        t.equal((status, got == body), (200, True), "answered though its line is lost")
    c.close()
    ask(gate, "/short/last")
    t.equal(metric(gate, "firn_proxy_log_lost_total"), 3, "the long lines are counted")
    lines = []

    def read():
        for line in gate.process.stdout:
            lines.append(json.loads(line)["path"])  # every line is whole
    reader = threading.Thread(target=read)
    reader.start()
    f.wait_for("all lines", lambda: lines and lines[-1] == "/short/last")
    gate.stop()
    reader.join()
    gate.process.stdout.close()
    t.equal(lines, [short] * 62 + ["/short/last"], "short lines before and behind a long one that is lost")
    up.close()


if __name__ == "__main__":
    with f.Test("gateway_net") as test:
        for part in (split, crowd, busy, tunnels, idle, interim, unix, unix_listener, ipv6, proxied_in, proxied_out, names, files, fifos, closed, blocked, blocked_long):
            test.section(part)
