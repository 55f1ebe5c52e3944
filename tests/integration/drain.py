#!/usr/bin/env python3
"""
SIGTERM in the middle of everything: every request that had arrived is answered, pipelined ones too, and only the last answer of a
connection ends it; no number is taken that no client gets; clients that ask one request after another lose none.
"""
import contextlib
import json
import os
import sqlite3
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

DEPTH, CONNECTIONS = 60, 6


def answers(c):
    """All answers until the connection ends: [(number, whether it says that it is the last)]."""
    got = []
    while True:
        try:
            line = c.line()
        except f.Gone:
            return got
        length, last = 0, False
        if int(line.split()[1]) != 200:
            raise f.NotThere(f"an answer: {line}")
        while line:
            line = c.line()
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            last |= line.lower() == b"connection: close"
        got.append((int(json.loads(c.exactly(length))["id"]), last))


def pipelined(t):
    state = t.steady("pipelined")
    server = f.Firnd(t, state, "--loops", "2").wait_ready()
    first, numbers = int(f.get(server.ticket, "/generate")[1]["id"]), []
    conns = [f.Http(server.ticket) for _ in range(CONNECTIONS)]
    # Each another text: a run of equal requests would be one job.
    each = b"".join(b"GET /generate HTTP/1.1\r\nHost: firn\r\nX-N: %d\r\n\r\n" % i for i in range(DEPTH))
    with contextlib.closing(sqlite3.connect(os.path.join(state, "firn.db"), timeout=f.LIMIT)) as db:
        db.isolation_level = None
        db.execute("BEGIN IMMEDIATE")  # now no number can be committed
        for c in conns:
            c.send(each)
        f.wait_for("all of them to wait", lambda: server.metric("firn_requests_waiting") == DEPTH * CONNECTIONS)
        server.signal(f.signal.SIGTERM)
        server.wait_log("draining")
        db.execute("ROLLBACK")
    for c in conns:
        got = answers(c)
        t.equal(len(got), DEPTH, "pipelined requests that are answered")
        t.equal([i for i, (_, last) in enumerate(got) if last], [DEPTH - 1], "answers that say that they are the last")
        numbers += [n for n, _ in got]
    t.equal(server.wait(), 0, "it ends")
    t.equal(sorted(numbers), list(range(first + 1, first + 1 + DEPTH * CONNECTIONS)), "the numbers")
    server = f.Firnd(t, state).wait_ready()
    t.equal(int(f.get(server.ticket, "/generate")[1]["id"]), first + 1 + DEPTH * CONNECTIONS, "the next number")
    server.stop()


class Closed:
    """A client that asks one request after another, reconnects when it is told to, and ends when it is refused."""

    def __init__(self, address):
        self.address, self.answered, self.lost = address, 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                c = f.Http(self.address)
            except (f.Gone, OSError):
                return  # refused: nothing was sent
            try:
                while True:
                    keep = self.one(c)
                    self.answered += 1
                    if not keep:
                        break
            except f.Gone as e:
                self.lost.append(str(e))
            c.close()

    @staticmethod
    def one(c):
        c.ask("/generate")
        return Closed.read(c)

    @staticmethod
    def read(c):
        keep = True
        line = c.line()
        length = 0
        while line:
            line = c.line()
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            keep &= line.lower() != b"connection: close"
        c.exactly(length)
        return keep


class Once(Closed):
    """The same with a connection for each request: some are in the port's backlog when it closes."""

    @staticmethod
    def one(c):
        c.ask("/generate", fields="Connection: close\r\n")
        return Closed.read(c)


def closed_loop(t):
    for i in range(3):
        server = f.Firnd(t, t.steady("closed"), "--loops", "2").wait_ready()
        clients = [Closed(server.snowflake if k % 2 else server.ticket) for k in range(8)]
        f.wait_for("answers", lambda c=clients: all(x.answered > 20 for x in c))
        t.equal(server.stop(), 0, "it ends")
        for c in clients:
            c.thread.join()
        lost = [x for c in clients for x in c.lost]
        t.check(not lost, f"requests without an answer in run {i}: {lost}")


def backlog(t):
    """Connections that the kernel has made and firnd has not accepted when it closes its ports are answered all the same."""
    for i in range(10):
        server = f.Firnd(t, t.steady("backlog"), "--loops", "2").wait_ready()
        clients = [Once(server.snowflake) for _ in range(24)]
        f.wait_for("answers", lambda c=clients: all(x.answered > 5 for x in c))
        t.equal(server.stop(), 0, "it ends")
        for c in clients:
            c.thread.join()
        lost = [x for c in clients for x in c.lost]
        t.check(not lost, f"connections without an answer in run {i}: {lost}")


def first_request(t):
    """A connection that was made before the end and has sent nothing yet is answered after idle ones are closed."""
    server = f.Firnd(t, t.steady("first")).wait_ready()
    asked, new = f.Http(server.snowflake), f.Http(server.snowflake)
    asked.ask("/generate")
    Closed.read(asked)
    server.signal(f.signal.SIGTERM)
    try:
        asked.line()
        t.check(False, "an idle connection is closed")
    except f.Gone:
        pass
    t.check(not Once.one(new), "the first request of a connection is answered, and ends it")
    t.equal(server.wait(), 0, "it ends")


with f.Test("drain") as test:
    test.section(pipelined)
    test.section(closed_loop)
    test.section(backlog)
    test.section(first_request)
