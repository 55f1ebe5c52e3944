#!/usr/bin/env python3
"""
Crowds of clients and servers that are slow, servers and Redis that break at every byte, reloads and deaths under load: firn-proxy goes
on serving others, loses no request that it can answer, and its memory stays bounded.

FIRN_TEST_CROWD=10000 makes the crowds as large as the documentation says.
"""
import os
import random
import resource
import selectors
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, ".."))
sys.path.insert(0, os.path.join(here, "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Server as Redis  # noqa: E402  pylint: disable=wrong-import-position

SEED = int(os.environ.get("FIRN_TEST_SEED", "") or time.time_ns() % 1_000_000_007)
SPARE = 200  # connections of others


def crowd(wanted):
    """As many as file descriptors allow: the gateway, which inherits the limit, has two for each connection and some of its own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    need = 2 * (wanted + SPARE) + 512
    if hard != resource.RLIM_INFINITY and hard < need:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (need, need))
            return wanted
        except (ValueError, OSError):  # only root may raise it, and not everywhere
            wanted = (hard - 512) // 2 - SPARE
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted


CROWD = crowd(int(os.environ.get("FIRN_TEST_CROWD", "") or 300))
CONNECTIONS = CROWD + SPARE
PATIENCE_MS = 4000 if CROWD <= 1000 else 15000  # so that all of a crowd are there at once
PER_CLIENT_BYTES = 96 * 1024  # what a client that does nothing good may cost, with the kernel's help
RULES = "retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0"


def sanitized(t):
    return "asan" in t.bin or "tsan" in t.bin


def echo(up, peer, line, fields):
    """The target comes back, so that nobody can have another one's answer."""
    up.keep(peer.body(line, fields))
    g.reply(peer, 200, line.split(" ")[1].encode())


def own_answers(t, gate, path, n, what):
    """Others are served meanwhile, each with their own answer."""
    c = g.Client(gate.http)
    for i in range(n):
        c.ask(f"GET {path}/{i} HTTP/1.1\r\nHost: a\r\n\r\n")
        status, _, body = c.answer()
        t.equal((status, body), (200, f"{path}/{i}".encode()), f"another client beside {what}")
    c.close()


# --- clients ---

HEAD = b"POST /echo/slow HTTP/1.1\r\nHost: a\r\n"
SLOW = [  # (what, what it sends at first, what it goes on with)
    ("half a head", b"GET / HTTP/1.1\r\nX: ", b"a"),
    ("nothing", b"", b""),
    ("half a body", HEAD + b"Content-Length: 1000000\r\n\r\nhalf", b"x"),
    ("half a chunk", HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\nhalf", b"x"),
    ("half a chunk size", HEAD + b"Transfer-Encoding: chunked\r\n\r\n00", b"0"),
    ("endless trailers", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a"),
    ("endless chunks", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ("a large answer unread", b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n", b""),
    ("idle after an answer", b"GET /echo/idle HTTP/1.1\r\nHost: a\r\n\r\n", b""),
]


def slow_clients(t):
    """Each kind of them, a crowd at once, sending a little now and then."""
    def serve(up, peer, line, fields):
        if line.startswith("GET /big"):
            peer.body(line, fields)
            peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n")
            for _ in range(1024):
                peer.sock.sendall(g.PIECE)
            return None
        return echo(up, peer, line, fields)
    slow, good = g.Upstream(serve), g.Upstream(echo)
    gate = g.Gateway(t, f"""services:
  - {{ name: slow, servers: ['{slow.address}'], connections: 64, {RULES} }}
  - {{ name: good, servers: ['{good.address}'], {RULES} }}
routes: [{{ path: /, service: slow }}, {{ path: /good, service: good }}]
limits: {{ header_ms: {PATIENCE_MS}, body_ms: {PATIENCE_MS}, idle_ms: {PATIENCE_MS}, write_ms: {PATIENCE_MS}, connections: {CONNECTIONS} }}
""")
    own_answers(t, gate, "/good", 20, "nobody")
    before, host, port = gate.rss(), *gate.http.split(":")
    look, socks, most = selectors.DefaultSelector(), [], 0
    began = time.monotonic()
    for i in range(CROWD):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(f.LIMIT)
        s.connect((host, int(port)))
        what, first, more = SLOW[i % len(SLOW)]
        s.sendall(first)
        s.setblocking(False)
        look.register(s, selectors.EVENT_READ, [what, more])
        socks.append(s)
        if i % 1000 == 999:
            own_answers(t, gate, "/good", 5, f"{i} slow clients")
    ended, last = {}, 0.0
    while look.get_map() and time.monotonic() - began < f.LIMIT:
        most = max(most, gate.rss())
        for key, _ in look.select(0.05):
            what = key.data[0]
            if what == "a large answer unread" and time.monotonic() - began < PATIENCE_MS / 1000 + 11:
                look.unregister(key.fileobj)  # it does not read; it is looked at in the end
                continue
            try:
                data = key.fileobj.recv(65536)
            except BlockingIOError:
                continue
            except ConnectionError:
                data = b""
            if not data:
                ended[what] = ended.get(what, 0) + 1
                look.unregister(key.fileobj)
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            own_answers(t, gate, "/good", 3, "slow clients")
            for key in list(look.get_map().values()):
                try:
                    key.fileobj.send(key.data[1])
                except OSError:
                    pass
    t.check(not look.get_map(), f"deadlines end all of them: {ended}; {len(look.get_map())} are left")
    f.wait_for("no connection to be left", lambda: gate.status()["connections"] == 0)
    for s in socks:
        s.close()
    t.equal(gate.status()["requests_in_hand"], 0, "nothing is in hand")
    t.check(sanitized(t) or most - before < CROWD * PER_CLIENT_BYTES + (24 << 20), f"{CROWD} clients cost {most - before} bytes")
    t.say(f"{CROWD} slow clients: {before >> 20} MiB before, {most >> 20} MiB at most, {gate.rss() >> 20} MiB after")
    own_answers(t, gate, "/good", 5, "nobody any more")
    gate.stop()


def slow_servers(t):
    """A crowd waits for a server that accepts and says nothing, or says one byte now and then; other services are not held up."""
    def stuck(up, peer, line, fields):
        peer.body(line, fields)
        if "trickle" in line:
            try:
                for c in b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000:
                    peer.sock.sendall(bytes([c]))
                    time.sleep(0.2)
            except OSError:
                return False
        while peer.sock.recv(65536):
            pass
        return False
    bad, good = g.Upstream(stuck), g.Upstream(echo)
    gate = g.Gateway(t, f"""services:
  - {{ name: stuck, servers: ['{bad.address}'], connections: 32, first_byte_ms: {PATIENCE_MS // 2}, timeout_ms: {PATIENCE_MS}, {RULES} }}
  - {{ name: good, servers: ['{good.address}'], {RULES} }}
routes: [{{ path: /, service: stuck }}, {{ path: /good, service: good }}]
limits: {{ connections: {CONNECTIONS} }}
""")
    own_answers(t, gate, "/good", 20, "nobody")
    before, most = gate.rss(), 0
    clients = []
    for i in range(CROWD):
        c = g.Client(gate.http)
        c.ask(f"GET /{'trickle' if i % 8 == 0 else 'never'} HTTP/1.1\r\nHost: a\r\n\r\n")
        clients.append(c)
        if i % 1000 == 999:
            most = max(most, gate.rss())
            own_answers(t, gate, "/good", 5, f"{i} that wait")
    own_answers(t, gate, "/good", 50, "a crowd that waits")
    most = max(most, gate.rss())
    codes = {}
    for c in clients:
        try:
            status = c.answer()[0]
        except f.Gone:
            status = 0
        codes[status] = codes.get(status, 0) + 1
        c.close()
    t.check(set(codes) <= {503, 504, 0} and sum(codes.values()) == CROWD, f"each has an end: {codes}")
    f.wait_for("nothing to be in hand", lambda: gate.status()["requests_in_hand"] == 0)
    t.check(sanitized(t) or most - before < CROWD * PER_CLIENT_BYTES + (24 << 20), f"{CROWD} that wait cost {most - before} bytes")
    t.say(f"{CROWD} wait for slow servers: {codes}; {before >> 20} MiB before, {most >> 20} MiB at most")
    gate.stop()


# --- servers that die ---

ANSWERS = {  # name: (bytes, the body)
    "length": (b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n", b"hello"),
    "interim": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    "close": (b"HTTP/1.0 200 OK\r\nX-A: b\r\n\r\nhello", b"hello"),
    "none": (b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", b""),
}


def certificate(t):
    run = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
           "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", t.state("key.pem"), "-out", t.state("cert.pem")]
    subprocess.run(run, check=True, capture_output=True, timeout=f.LIMIT)
    return t.state("cert.pem"), t.state("key.pem")


class TlsUpstream(g.Upstream):
    def __init__(self, answer, cert, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        super().__init__(answer)

    def serve(self, sock):
        try:
            super().serve(self.context.wrap_socket(sock, server_side=True))
        except (ssl.SSLError, OSError):
            sock.close()


def dying(t):
    """A server that ends after each number of bytes: with FIN, with a reset, inside of TLS without and with its farewell."""
    def cut(up, peer, line, fields):
        peer.body(line, fields)
        _, kind, n, how = line.split(" ")[1].split("/")
        s = peer.sock
        if int(n):
            s.sendall(ANSWERS[kind][0][:int(n)])
        if how == "bye":
            s.unwrap()
        if how == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    cert, key = certificate(t)
    plain, sealed = g.Upstream(cut), TlsUpstream(cut, cert, key)
    gate = g.Gateway(t, f"""services:
  - {{ name: plain, servers: ['{plain.address}'], {RULES} }}
  - {{ name: tls, servers: ['{sealed.address}'], tls: true, tls_ca: '{cert}', connect_ms: 60000, {RULES} }}
routes: [{{ path: /plain, rewrite: /, service: plain }}, {{ path: /tls, rewrite: /, service: tls }}]
""")
    asked = 0
    for kind, (text, want) in ANSWERS.items():
        begun = text.index(b"HTTP/1.1 200") if kind == "interim" else 0
        head = text.index(b"\r\n\r\n", begun) + 4
        for way, hows in (("plain", ("close", "reset")), ("tls", ("cut", "bye"))):
            for how in hows:
                for n in range(0, len(text) + 1, 1 if way == "plain" else 3):
                    asked += 1
                    c = g.Client(gate.http)
                    c.ask(f"GET /{way}/{kind}/{n}/{how} HTTP/1.1\r\nHost: a\r\n\r\n")
                    try:
                        status, _, body = c.answer()
                    except f.Gone:
                        status, body = 0, b""
                    c.close()
                    what = f"{way}, {kind}, {n} of {len(text)} bytes, {how}: {status} {body!r}"
                    if kind == "close" and n >= head:  # the end of the connection is the answer's, if it is a proper one
                        if how in ("close", "bye"):
                            t.check((status, body) == (200, want[:n - head]), what)
                        else:
                            t.check(status in (0, 502), what)
                    elif n == len(text):
                        t.check(status in (200, 204) and body == want, what)
                    elif n < head:
                        t.check(status == 502, what)
                    else:
                        t.check(status == 0 or (status == 502 and how == "reset"), what)
    t.say(f"{asked} answers")
    f.wait_for("nothing to be in hand", lambda: gate.status()["requests_in_hand"] == 0)
    gate.stop()


# --- Redis that breaks ---


class Relay:
    """In front of Redis. On each connection the answers to EVALSHA are spoiled at a byte: cut off, another byte, or silence."""

    def __init__(self, port):
        self.to, self.how, self.left, self.spoiled = port, None, 0, 0
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def spoil(self, how, at):
        """The byte `at` of the answers from now on, once."""
        self.left, self.how = at, how

    def accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        begun = threading.Event()
        try:
            with socket.create_connection(("127.0.0.1", self.to)) as redis:
                threading.Thread(target=self.back, args=(redis, sock, begun), daemon=True).start()
                while True:
                    data = sock.recv(65536)
                    if not data:
                        break
                    if b"EVALSHA" in data:
                        begun.set()
                    redis.sendall(data)
        except OSError:
            pass

    def back(self, redis, sock, begun):
        try:
            while True:
                data = redis.recv(65536)
                if not data:
                    break
                if begun.is_set() and self.how:
                    at, how = self.left, self.how
                    self.left -= len(data)
                    if at < len(data):
                        self.how = None
                        self.spoiled += 1
                        sock.sendall(data[:at])
                        if how == "silence":
                            continue
                        if how == "cut":
                            break
                        data = b"!" + data[at + 1:]
                sock.sendall(data)
        except OSError:
            pass
        finally:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def redis_breaks(t):
    """Answers of Redis that break at every byte: requests are counted here meanwhile, and none fails or waits."""
    redis = Redis(t.state("redis"), appendonly="no", appendfsync="no")
    redis.start()
    relay, up = Relay(redis.port), g.Upstream(echo)
    gate = g.Gateway(t, f"""loops: 1
services: [{{ name: a, servers: ['{up.address}'] }}]
redis: {{ address: '{relay.address}', timeout_ms: 100 }}
rates: [{{ name: r, count: 1000000 }}]
routes: [{{ path: /, service: a, rates: [r] }}]
""")

    def connected():
        return gate.status()["redis"]["connected"] == 1
    f.wait_for("Redis", connected)
    own_answers(t, gate, "/warm", 3, "Redis")
    for how in ("cut", "garbage", "silence"):
        for at in range(2 if how == "silence" else 12):
            seen = relay.spoiled
            relay.spoil(how, at)

            def spoiled(how=how, at=at, seen=seen):  # a late answer keeps Redis from being asked for a while
                own_answers(t, gate, f"/{how}/{at}", 1, f"Redis, {how} at byte {at}")
                return relay.spoiled > seen
            f.wait_for("an answer to be spoiled", spoiled)
            own_answers(t, gate, f"/{how}/{at}/after", 3, f"Redis, {how} at byte {at}")
            f.wait_for("Redis again", connected)
    t.equal(relay.spoiled, 26, "answers of Redis spoiled")
    gate.stop()
    relay.sock.close()
    redis.stop()


# --- changes under load ---


class Load:
    """Clients that ask and ask; each answer must be the request's own."""

    def __init__(self, gate, n=4):
        self.gate, self.over, self.answered, self.lost, self.wrong = gate, threading.Event(), [], [], []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]
        for x in self.threads:
            x.start()

    def run(self, me):
        c, n = None, 0
        while not self.over.is_set():
            n += 1
            target = f"/load/{me}/{n}"
            try:
                c = c or g.Client(self.gate.http)
                c.ask(f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
                status, low, body = c.answer()
                (self.answered if (status, body) == (200, target.encode()) else self.wrong).append((target, status, body[:200]))
                if low.get("connection") == "close":
                    c.close()
                    c = None
            except (f.Gone, f.NotThere, OSError, ValueError, IndexError) as e:
                self.lost.append((target, repr(e)))
                c = None
                time.sleep(0.005)
        if c:
            c.close()

    def stop(self):
        self.over.set()
        for x in self.threads:
            x.join()


def reload_storm(t):
    """A reload every 50 ms, of files that are good, broken, or half written (in place, as editors do)."""
    print(f"  seed {SEED}")
    rng = random.Random(SEED)
    ups = [g.Upstream(echo) for _ in range(3)]

    def good(i):
        names = ", ".join(f"'{u.address}'" for u in rng.sample(ups, 1 + i % 3))
        more = f"  - {{ path: /x{i}, service: a, request_set: ['X-A: {i}'] }}\n" * (i % 2)
        return f"services:\n  - {{ name: a, servers: [{names}], {RULES} }}\nroutes:\n  - {{ path: /, service: a }}\n{more}watch: true\n"
    gate = g.Gateway(t, good(2))
    load = Load(gate)
    kinds = {"good": 0, "broken": 0, "half": 0}
    for i in range(60):
        text = good(i)
        kind = rng.choice(list(kinds))
        kinds[kind] += 1
        if kind == "good":
            gate.write(text)
        elif kind == "broken":
            gate.write(text.replace("service: a", "service: b") if i % 2 else text + "\t- {[\n")
        else:
            with open(gate.config_path, "w", encoding="utf-8") as out:
                out.write(text[:rng.randrange(len(text))])
        gate.signal(signal.SIGHUP)
        time.sleep(0.05)  # the storm's rate
    gate.write(good(1))
    gate.signal(signal.SIGHUP)
    f.wait_for("the last file to be used", lambda: gate.status()["reload_error"] is None)
    n = len(load.answered)
    f.wait_for("requests under it", lambda: len(load.answered) > n + 20)
    load.stop()
    t.equal((load.wrong[:5], load.lost[:5]), ([], []), f"{len(load.wrong)} wrong and {len(load.lost)} lost of {len(load.answered)}")
    t.say(f"{kinds}, plan {gate.status()['plan']}, {len(load.answered)} requests")
    seen = [r.target for u in ups for r in u.requests]
    t.equal(len(seen), len(set(seen)), "no request came twice")
    t.equal(gate.stop(), 0, "it ends")


def killed(t):
    """kill -9 under load, and started again on its port: an answer that was given is the server's, and no request is sent twice."""
    up = g.Upstream(echo)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1:%d" % free.getsockname()[1]
    text = f"services:\n  - {{ name: a, servers: ['{up.address}'], {RULES} }}\nroutes:\n  - {{ path: /, service: a }}\n"
    gate = g.Gateway(t, text, f"--listen-http={address}")
    t.equal(gate.http, address, "its port")
    load = Load(gate)
    for i in range(5):
        n = len(load.answered)
        f.wait_for("requests", lambda n=n: len(load.answered) > n + 50)
        gate.kill()
        gate = g.Gateway(t, text, f"--listen-http={address}")
        t.equal(gate.http, address, f"started again at once, {i}")
    n = len(load.answered)
    f.wait_for("requests", lambda: len(load.answered) > n + 50)
    load.stop()
    t.equal(load.wrong[:5], [], "no wrong answer")
    t.check(len(load.lost) > 0, "its deaths were noticed")
    f.wait_for("the server to be done", lambda: gate.status()["requests_in_hand"] == 0)
    seen = [r.target for r in up.requests]
    t.equal(len(seen), len(set(seen)), "no request came twice")
    t.check({a[0] for a in load.answered} <= set(seen), "every answer is of a request that was seen")
    t.say(f"{len(load.answered)} answered, {len(load.lost)} lost in five deaths")
    gate.stop()


if __name__ == "__main__":
    with f.Test("gateway_attack") as test:
        test.say(f"crowds of {CROWD}")
        for part in (slow_clients, slow_servers, dying, redis_breaks, reload_storm, killed):
            test.section(part)
