#!/usr/bin/env python3
"""
One firnd, one order: requests one after another, on connections of several loops, by HTTP and RESP, one ID or many, alone or
pipelined. Every ID is larger than all before it: in a new store, under a clock that stands still or goes back, over kill -9
and clean restarts, for each layout that is leased.
"""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import fakeclock  # noqa: E402  pylint: disable=wrong-import-position
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

CONNECTIONS = 12  # of each protocol: enough that every loop has some
LOOPS = 4


def number(kind, text):
    """The ID as a number that orders as the IDs do."""
    return text if kind == "tsid" else int(text)


class Asker:
    """Asks one request after another, each on another connection and in another way."""

    def __init__(self, test, kind="snowflake"):
        self.test, self.kind, self.last, self.asked, self.fell = test, kind, None, 0, []
        self.http, self.resp = [], []

    def rest(self):
        for c in self.http + self.resp:
            c.close()

    def aim(self, server):
        self.rest()
        self.http = [f.Http(server.snowflake) for _ in range(CONNECTIONS)]
        self.resp = [f.Resp(server.home) for _ in range(CONNECTIONS)]
        f.minted(server.snowflake, f"/v1/ids/{self.kind}")

    def note(self, texts):
        for text in texts:
            n = number(self.kind, text)
            if self.last is not None and n <= self.last:
                self.fell.append((self.last, n))
            self.last = n

    def one(self):
        way, at = self.asked % 5, self.asked // 5 % CONNECTIONS
        self.asked += 1
        path = "/generate" if self.kind == "snowflake" else f"/v1/ids/{self.kind}"
        if way == 0:
            self.note([json.loads(self.http[at].get(path)[1])["id"]])
        elif way == 1:
            self.note([self.resp[at].do("FIRN.NEXT", self.kind)])
        elif way == 2:
            self.note(json.loads(self.http[-at - 1].get(f"/v1/ids/{self.kind}?n=3")[1])["ids"])
        elif way == 3:
            for _ in range(4):
                self.http[at].ask(path)
            self.note([json.loads(self.http[at].answer()[1])["id"] for _ in range(4)])
        else:
            for _ in range(4):
                self.resp[-at - 1].ask("FIRN.NEXT", self.kind)
            self.note([self.resp[-at - 1].answer() for _ in range(4)])

    def run(self, n):
        for _ in range(n):
            self.one()

    def check(self, what):
        self.test.check(not self.fell, f"{what}: {len(self.fell)} of {self.asked} fell, at first {self.fell[:3]}")


def start(t, state, **more):
    return f.Firnd(t, state, "--loops", str(LOOPS), **more)


def fresh(t):
    for kind in ("snowflake", "sonyflake", "tsid"):
        server = start(t, t.state(f"fresh-{kind}"))
        asker = Asker(t, kind)
        asker.aim(server)
        asker.run(300)
        asker.check(f"{kind} in a new store")
        asker.rest()
        t.equal(server.stop(), 0, "it ends")


def says_so(t):
    """The first IDs of a new store are stamped ahead of the clock: /v1/node says so."""
    server = start(t, t.state("ahead"))
    number = f.minted(server.snowflake)["id"]
    clock = server.node()["clock"]
    t.check(0 < clock["ahead_ms"] <= 8000 and "new or fenced store" in clock["ahead_reason"], f"/v1/node says it: {clock}")
    said = subprocess.run([os.path.join(t.bin, "firn"), "inspect", number], capture_output=True, text=True,
                          timeout=f.LIMIT, check=False).stdout
    t.check("ahead of this clock" in said, f"firn inspect says it: {said}")
    server.stop()
    server = start(t, t.steady("fresh-now"))
    f.minted(server.snowflake)
    f.wait_for("the clock to be there", lambda: server.node()["clock"]["ahead_ms"] == 0)
    t.equal(server.node()["clock"]["ahead_reason"], None, "nothing to say")
    server.stop()


def at_once(t, server, what):
    """A process that finds a note of what was stamped before waits for no slot."""
    notes = f"/dev/shm/firn-{os.geteuid()}"
    if not os.path.isdir(notes) or not os.listdir(notes):
        print(f"*** NO NOTES in {notes}: a start without a wait was NOT TESTED")
        return
    t.check("state=no_slot" not in server.log(), f"{what}: it takes a slot at once: {server.log()}")


def restarts(t):
    """A new store, then kill -9 and clean ends, while stamps are still ahead of the clock and later."""
    state = t.state("restarts")
    asker = Asker(t)
    for i in range(4):
        server = start(t, state)
        asker.aim(server)
        asker.run(60)
        asker.rest()
        at_once(t, server, f"start {i}")
        if i == 2:
            t.equal(server.stop(), 0, "it ends")
        else:
            server.kill()
    asker.check("over restarts")


def borrowed(t):
    """A burst that stamps seconds ahead of the clock, then kill -9: the next process goes on above it."""
    state = t.state("borrowed")
    asker = Asker(t)
    server = start(t, state)
    asker.aim(server)
    for i in range(40):
        c = asker.http[i % CONNECTIONS]
        c.ask("/generate?n=100000", fields="Accept: application/octet-stream\r\n")
        status, body = c.answer()
        t.equal(status, 200, "a large request")
        asker.note([int.from_bytes(body[:8], "big"), int.from_bytes(body[-8:], "big")])
    server.signal(signal.SIGKILL)
    server.wait()
    server = start(t, state)
    asker.aim(server)
    asker.run(60)
    asker.check("after a burst and kill -9")
    at_once(t, server, "after a burst and kill -9")
    server.kill()


def held_clock(t):
    clock, why = fakeclock.find_library(t)
    if not clock:
        print(f"*** NO FAKE CLOCK with {t.bin}: {why}. The order under a held clock was NOT TESTED")
        return
    state = t.state("held")
    asker = Asker(t)
    server = start(t, state, env=clock.env())
    asker.aim(server)
    for step in (lambda: clock.freeze(), lambda: clock.set(-fakeclock.HOUR), lambda: clock.set(0), lambda: clock.set(-4)):
        step()
        asker.run(150)
    server.kill()
    server = start(t, state, env=clock.env())
    asker.aim(server)
    asker.run(150)
    clock.freeze()
    asker.run(150)
    asker.check("under a clock that stands still or goes back")
    server.kill()


with f.Test("order") as test:
    test.section(fresh)
    test.section(says_so)
    test.section(restarts)
    test.section(borrowed)
    test.section(held_clock)
