#!/usr/bin/env python3
"""
firn-proxy's connections and choices: splits, deadlines of waiting and of tunnels, interim answers, files that are half
written, an access log that nobody reads.
"""
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position


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


def metric(gate, name):
    for line in f.get(gate.admin, "/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return float(line.split(" ")[-1])
    return None


# --- splits ---


def split(t):
    a, b = g.Upstream(tell), g.Upstream(tell)
    gate = g.Gateway(t, f"""services:
  - {{ name: v1, servers: ['{a.address}'] }}
  - {{ name: v2, servers: ['{b.address}'] }}
routes:
  - {{ name: canary, path: /canary, split: ['v1 90', 'v2 10'] }}
  - {{ name: header, path: /header, split: ['v1 50', 'v2 50'], split_by: 'header:X-User' }}
  - {{ name: cookie, path: /cookie, split: ['v1 50', 'v2 50'], split_by: 'cookie:session' }}
  - {{ name: address, path: /address, split: ['v1 50', 'v2 50'], split_by: address }}
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
    gate = g.Gateway(t, one(up, "tunnel_ms: 700, tunnel_end_ms: 86400, breaker_failures: 1", more="limits: { idle_ms: 50, write_ms: 50 }\n"))
    c = open_tunnel(gate)
    for _ in range(30):  # longer than tunnel_ms as a whole, and than the deadlines of requests
        c.send(b"x")
        t.equal(c.exactly(1), b"x", "a tunnel that is used stays")
        time.sleep(0.03)
    try:
        t.check(c.ended(), "one without a byte ends")
    except ConnectionError:
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
    t.check(code != 0 and "'x' and 'y' match the same requests" in said, f"two routes that are one: {said}")
    code, said = checked(t, one(up, routes="  - { path: /a, split: ['a 1', 'b 1'] }\n"))
    t.check(code != 0 and "there is no service 'b'" in said, f"a split to a service that is not there: {said}")
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


if __name__ == "__main__":
    with f.Test("gateway_net") as test:
        for part in (split, crowd, tunnels, idle, interim, files, blocked):
            test.section(part)
