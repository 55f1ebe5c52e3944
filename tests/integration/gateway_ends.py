#!/usr/bin/env python3
"""
How messages of firn-proxy end when one side is slow, early or gone: who is to blame, what the breaker learns, and that nobody
takes a part of an answer for the whole.

Usage: tests/integration/gateway_ends.py BUILD/bin [SECTION]
"""
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402
import gateway as g  # noqa: E402

LONG = 10 * 60 * 1000  # ms: longer than the test
BIG = 12 << 20         # more than the kernel keeps between two processes


def config(up, service, more=""):
    return f"services:\n  - {{ name: a, servers: ['{up.address}'], {service} }}\nroutes:\n  - {{ path: /, service: a }}\n{more}"


class Shop:
    """An upstream that answers by path; `gate` holds back what waits for it."""

    def __init__(self):
        self.gate = threading.Event()
        self.bad = False
        self.up = g.Upstream(self.answer)

    def answer(self, up, peer, line, fields):
        path = line.split(" ")[1]
        s = peer.sock
        if path == "/early":  # answers and closes while the client still sends
            g.reply(peer, 413, b"too large: " + g.pattern(2000), "Connection: close\r\n")
            return False
        up.keep(peer.body(line, fields))
        if self.bad:
            g.reply(peer, 500, b"broken")
        elif path == "/big":
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
            s.sendall(g.pattern(BIG))
        elif path == "/bigchunks":
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(BIG >> 16):
                s.sendall(b"10000\r\n" + g.PIECE + b"\r\n")
            s.sendall(b"0\r\n\r\n")
        elif path == "/events":  # a stream that goes on
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            self.gate.wait(f.LIMIT)
            s.sendall(b"4\r\nlast\r\n0\r\n\r\n")
        elif path == "/trailers":
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Internal: head\r\n\r\n2\r\nok\r\n0\r\n"
                      b"X-Sum: 1\r\nX_Internal: secret\r\nServer: old\r\nX-More: 2\r\n\r\n")
        elif path == "/never":
            self.gate.wait(f.LIMIT)
            return False
        else:
            g.reply(peer, 200, b"ok")
        return None


def small_window(address):
    """A client that takes little before it reads."""
    c = g.Client.__new__(g.Client)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(f.LIMIT)
    host, port = address.rsplit(":", 1)
    sock.connect((host, int(port)))
    c.sock, c.buf = sock, b""
    return c


def rest(c):
    """Everything to the end of the connection."""
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    parts = [c.buf]
    while parts[-1] or len(parts) == 1:
        parts.append(c.sock.recv(1 << 20))
    c.close()
    return b"".join(parts)


def slow_clients(t):
    """Clients that send or read slowly until timeout_ms say nothing about the server."""
    shop = Shop()
    gate = g.Gateway(t, config(shop.up, f"timeout_ms: 1000, breaker_failures: 3, breaker_open_ms: {LONG}, "
                                        "eject_after: 3"))
    half = [g.Client(gate.http) for _ in range(6)]
    for c in half:
        c.ask("POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
    unread = [small_window(gate.http) for _ in range(6)]
    for c in unread:
        c.ask("GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    for c in half:
        t.equal(c.answer()[0], 504, "half a request, after timeout_ms")
        c.close()
    f.wait_for("all to be over", lambda: gate.status()["requests_in_hand"] == 0)
    for c in unread:
        c.close()
    service = gate.service("a")
    t.equal(service["breaker"], "closed", "the breaker, after twelve slow clients")
    t.equal(service["servers"][0]["state"], "up", "the server")
    t.check(service["servers"][0]["timeouts"] >= 12, f"the deadlines are counted: {service['servers'][0]}")
    t.equal(g.get(gate.http, "/")[0], 200, "the next request")
    for _ in range(3):
        t.equal(g.get(gate.http, "/never")[0], 504, "a server that is late")
    t.equal(gate.service("a")["breaker"], "open", "the breaker, after three answers that did not come")
    shop.gate.set()
    gate.stop()
    shop.up.close()


def probe(t):
    """A probe is over when its status is known, however long its body takes."""
    shop = Shop()
    shop.bad = True
    gate = g.Gateway(t, config(shop.up, "breaker_failures: 2, breaker_open_ms: 1"))
    f.wait_for("the breaker to open", lambda: g.get(gate.http, "/")[0] and gate.service("a")["breaker_opened"] > 0)
    shop.bad = False
    c = None

    def stream():
        nonlocal c
        if c:
            c.close()
        c = g.Client(gate.http)
        c.ask("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
        return c.head()[0] == 200

    f.wait_for("a stream as the probe", stream)
    t.equal(gate.service("a")["breaker"], "closed", "the breaker, while its probe goes on")
    t.equal([g.get(gate.http, "/")[0] for _ in range(3)], [200] * 3, "other requests meanwhile")
    shop.gate.set()
    parts = []
    c.chunked(parts.append)
    t.equal(b"".join(parts), b"firstlast", "the stream")
    gate.stop()
    shop.up.close()


def stalled(t):
    """The last answer of a connection waits for its reader as every other one does, and is never cut as if it were whole."""
    shop = Shop()
    gate = g.Gateway(t, config(shop.up, "", f"limits: {{ write_ms: {LONG} }}\n"))
    asks = ["GET /bigchunks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /bigchunks HTTP/1.0\r\nHost: a\r\n\r\n",
            "GET /big HTTP/1.0\r\nHost: a\r\n\r\n"]
    clients = [small_window(gate.http) for _ in asks for _ in range(2)]
    for i, c in enumerate(clients):
        c.ask(asks[i % len(asks)])
    time.sleep(5)  # longer than a connection lingers
    for i, c in enumerate(clients):
        t.check(rest(c).endswith(b"\r\n0\r\n\r\n" if i % len(asks) == 0 else g.PIECE), f"all of the answer to {asks[i % len(asks)][:30]!r}")
    gate.stop()
    gate = g.Gateway(t, config(shop.up, "", "limits: { write_ms: 300 }\n"))
    clients = [small_window(gate.http) for _ in range(4)]
    for c in clients:
        c.ask("GET /bigchunks HTTP/1.0\r\nHost: a\r\n\r\n")
    f.wait_for("those that do not read to be given up", lambda: gate.status()["connections"] == 0)
    for c in clients:
        try:
            while c.sock.recv(1 << 20):
                pass
            t.check(False, "an answer that was cut off ends with a reset, not as if it were whole")
        except ConnectionResetError:
            t.check(True, "a reset")
        c.close()
    gate.stop()
    shop.up.close()


def half_closed(t):
    """A client that ends its side while it still reads gets all of its answer."""
    shop = Shop()
    gate = g.Gateway(t, config(shop.up, "", f"limits: {{ write_ms: {LONG} }}\n"))
    for fields in ("", "Connection: close\r\n"):
        c = small_window(gate.http)
        c.ask(f"GET /big HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
        c.head()
        left = BIG
        while left > 0:
            piece = c.buf or c.sock.recv(65536)
            c.buf = b""
            if not piece:
                break
            if left > 100000 >= left - len(piece):
                c.sock.shutdown(socket.SHUT_WR)  # the rest of the answer is somewhere on its way
            left -= len(piece)
        t.equal(left, 0, f"what is missing of the answer, {fields!r}")
        c.close()
    gate.stop()
    shop.up.close()


def early(t):
    """A server that answers and closes while the request is still being sent: its answer arrives."""
    shop = Shop()
    gate = g.Gateway(t, config(shop.up, f"retries: 0, breaker_failures: 2, breaker_open_ms: {LONG}"))
    body = g.pattern(1 << 20)
    for i in range(40):
        c = g.Client(gate.http)
        try:
            c.ask(f"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n")
            for at in range(0, len(body), 1 << 16):
                c.ask(body[at:at + (1 << 16)])
        except OSError:
            pass  # the gateway has answered and does not take all of it
        status, _, text = c.answer()
        t.equal((status, text[:11], len(text)), (413, b"too large: ", 2011), f"the early answer {i}")
        c.close()
    t.equal(gate.service("a")["breaker"], "closed", "the breaker")
    t.equal(g.get(gate.http, "/")[0], 200, "the next request")
    gate.stop()
    shop.up.close()


def trailers(t):
    """What a route removes or sets does not come back behind the body."""
    shop = Shop()
    gate = g.Gateway(t, f"""services:
  - {{ name: a, servers: ['{shop.up.address}'] }}
routes:
  - {{ path: /, service: a, answer_remove: [X-Internal], answer_set: ['Server: gateway'] }}
""")
    c = g.Client(gate.http)
    c.ask("GET /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n")
    status, low, body = c.answer()
    t.equal((status, body, "x-internal" in low), (200, b"ok", False), "the answer")
    t.equal(c.trailers, ["X-Sum: 1", "X-More: 2"], "its trailers")
    c.close()
    g.get(gate.http, "/nothing", method="HEAD")
    g.get(gate.http, "/a%2fb", method="HEAD")
    lines = f.wait_for("the lines", lambda: len(gate.lines()) == 3 and gate.lines())  # loops write them in any order
    t.equal(sorted((x["method"], x["bytes_out"]) for x in lines), [("GET", 2), ("HEAD", 0), ("HEAD", 0)],
            "bytes that clients got: none in answer to HEAD")
    gate.stop()
    shop.up.close()


def pauses(t):
    """body_ms of a service: how long a stream may pause."""
    shop = Shop()
    gate = g.Gateway(t, config(shop.up, "body_ms: 200"))
    c = g.Client(gate.http)
    c.ask("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    c.head()
    try:
        c.chunked(lambda part: None)
        t.check(False, "the stream ends after body_ms")
    except (f.Gone, OSError):
        t.check(True, "the stream ends after body_ms")
    c.close()
    gate.write(config(shop.up, f"body_ms: {LONG}"))
    gate.signal(1)
    f.wait_for("the reload", lambda: gate.status()["reloads"] == 1)
    c = g.Client(gate.http)
    c.ask("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    c.head()
    time.sleep(1)
    shop.gate.set()
    parts = []
    c.chunked(parts.append)
    t.equal(b"".join(parts), b"firstlast", "with a long body_ms it goes on")
    c.close()
    gate.stop()
    shop.up.close()


def descriptors(t):
    """A crowd that uses all connections to servers that the descriptors allow: it waits or is told so; servers, the admin address and
    reloads are not harmed."""
    shops = [Shop() for _ in range(8)]
    text = "services:\n" + "".join(f"  - {{ name: s{i}, servers: ['{s.up.address}'], wait_ms: 500, breaker_failures: 3 }}\n"
                                   for i, s in enumerate(shops))
    parts = ", ".join(f"'p{i} = s{i % 8} {'/never' if i else '/'}'" for i in range(16))
    text += f"loops: 1\ncompositions: [{{ name: all, parts: [{parts}], timeout_ms: {LONG} }}]\nroutes: [{{ path: /all, compose: all }}, "
    text += "{ path: /, service: s0 }]\n"
    gate = g.Gateway(t, text, before=("prlimit", "--nofile=700:700"))
    crowd = [g.Client(gate.http) for _ in range(60)]
    for c in crowd:
        c.ask("GET /all HTTP/1.1\r\nHost: a\r\n\r\n")
    f.wait_for("the crowd to have what there is", lambda: any("crowded" in s and s["crowded"] > 0 for s in gate.status()["services"]))
    t.equal(f.get(gate.admin, "/healthz")[0], 200, "the admin address")
    gate.write(text + "# changed\n")
    gate.signal(1)
    f.wait_for("a reload", lambda: gate.status()["reloads"] == 1)
    t.equal([(s["breaker"], s["servers"][0]["state"], s["servers"][0]["errors"]) for s in gate.status()["services"]],
            [("closed", "up", 0)] * 8, "what the gateway says of its services")
    for s in shops:
        s.gate.set()
    for c in crowd:
        t.equal(c.answer()[0], 200, "an answer of the crowd")
        c.close()
    t.equal(g.get(gate.http, "/")[0], 200, "the next request")
    gate.stop()
    for s in shops:
        s.up.close()


if __name__ == "__main__":
    with f.Test("gateway_ends") as test:
        for part in (slow_clients, probe, stalled, half_closed, early, trailers, pauses, descriptors):
            test.section(part)
