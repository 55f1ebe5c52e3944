#!/usr/bin/env python3
"""
Pipelining to servers (`pipeline: N`) from end to end: requests of many clients share connections, each gets its own answer,
and a server that closes, breaks off or talks nonsense costs nobody an answer that was not asked there. Bytes and orders are
tests/unit/net/upstream_line.c and upstream_storm.c.
"""
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402
import gateway as g  # noqa: E402

CLIENTS, ROUNDS = 32, 40
SERVICE = ("services:\n  - {{ name: a, servers: ['{}'], pipeline: 8, retries: 0, eject_after: 0, breaker_failures: 0, "
           "breaker_percent: 0 }}\nroutes:\n  - {{ path: /, service: a }}\n")


def echo(fields_of):
    """An upstream that answers with the target; `fields_of(target)` are more fields, or None to break off."""
    def answer(up, peer, line, fields):
        target = line.split(" ")[1]
        peer.body(line, fields)
        more = fields_of(target)
        if more is None:
            peer.sock.sendall(b"HTTP/1.1 200 Text\r\nContent-Length: 100\r\n\r\n" + target.encode())
            return False
        g.reply(peer, 200, target.encode(), more)
        return "close" not in more
    return answer


def crowd(gate, target_of):
    """Everybody asks at the same time, again and again: (target, status, body) of all."""
    clients = [g.Client(gate.http) for _ in range(CLIENTS)]
    got = []
    for n in range(ROUNDS):
        for i, c in enumerate(clients):
            c.ask(f"GET {target_of(n, i)} HTTP/1.1\r\nHost: a\r\n\r\n")
        for i, c in enumerate(clients):
            status, _, body = c.answer()
            got.append((target_of(n, i), status, body.decode()))
    for c in clients:
        c.close()
    return got


def pipelined(gate):
    return int(float(re.search(r"^firn_proxy_pipelined_total (\S+)", f.get(gate.admin, "/metrics")[1], re.M).group(1)))


def answers(t):
    up = g.Upstream(echo(lambda target: ""))
    gate = g.Gateway(t, SERVICE.format(up.address), "--loops=1")
    got = crowd(gate, lambda n, i: f"/{n}/{i}")
    t.equal([x for x in got if x[1:] != (200, x[0])], [], "each its own answer")
    t.check(pipelined(gate) > 0, f"{pipelined(gate)} of {len(got)} were pipelined, {up.connections} connections")
    t.equal(len(gate.lines()) if len(gate.lines()) == len(got) else
            f.wait_for("the lines", lambda: len(gate.lines()) >= len(got) and len(gate.lines())), len(got), "one line each")
    gate.stop()


def ends(t):
    """Some answers are the last of their connection, some break off: only those have no whole answer."""
    seed = random.randrange(1 << 32)
    print(f"  seed {seed}")

    def kind(target):
        return random.Random(f"{seed}{target}").randrange(100)
    up = g.Upstream(echo(lambda target: None if kind(target) == 0 else "Connection: close\r\n" if kind(target) < 3 else ""))
    gate = g.Gateway(t, SERVICE.format(up.address), "--loops=1")
    clients = [g.Client(gate.http) for _ in range(CLIENTS)]
    wrong, broken = [], 0
    for n in range(ROUNDS):
        for i, c in enumerate(clients):
            c.ask(f"GET /{n}/{i} HTTP/1.1\r\nHost: a\r\n\r\n")
        for i, c in enumerate(clients):
            target = f"/{n}/{i}"
            try:
                status, _, body = c.answer()
                if (status, body.decode()) != (200, target) or kind(target) == 0:
                    wrong.append((target, status, body))
            except (f.Gone, OSError):
                broken += 1
                if kind(target) != 0:
                    wrong.append((target, "ended"))
                c.close()
                clients[i] = g.Client(gate.http)
    t.equal(wrong, [], "harmless requests are answered, whatever their neighbours do")
    t.check(broken > 0, f"{broken} answers broke off, and their clients noticed")
    for c in clients:
        c.close()
    gate.stop()


if __name__ == "__main__":
    with f.Test("gateway_pipeline") as test:
        for part in (answers, ends):
            test.section(part)
