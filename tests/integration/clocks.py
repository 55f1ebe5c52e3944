#!/usr/bin/env python3
"""
A clock that lies: set back an hour, forward a year, frozen, 1970, at run time and across restarts. No ID comes
twice, firnd goes on where it can, and says what it thinks of the clock in /readyz, /metrics and the log.
The wall clock is faked by libfaketime from a file that is rewritten at run time; the monotonic one is real.
"""
import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from fakeclock import DAY, HOUR, YEAR, find_library  # noqa: E402  pylint: disable=wrong-import-position
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

EPOCH_MS = 1609459200000  # of the default layout
SLOTS = 16
KILLS = 40  # more than so many slots can take while the clock stands


class Taker:
    """Takes IDs one after another from several firnds, and remembers all."""

    def __init__(self, test):
        self.test, self.ids = test, []

    def take(self, server, n=50):
        c = f.Http(server.snowflake)
        mine = []
        for _ in range(n):
            status, body = c.get("/generate?n=5")
            if status != 200:
                c.close()
                self.test.check(False, f"IDs are served: {body}")
                return mine
            mine += [int(i) for i in f.json.loads(body)["ids"]]
        c.close()
        self.test.check(all(a < b for a, b in zip(mine, mine[1:])), "IDs rise on a connection")
        self.ids += mine
        return mine

    def refused(self, server, part):
        status, said = f.get(server.snowflake, "/generate")
        self.test.check(status == 503 and part in str(said), f"an ID is refused with '{part}': {status} {said}")

    def check(self):
        self.test.equal(len(set(self.ids)), len(self.ids), "IDs are distinct; how many")


def off_by_s(number):
    """How far an ID's time is from now."""
    return ((number >> 22) + EPOCH_MS) / 1000 - time.time()


def check_state(t, server, state, part):
    """The clock's state in all three places, while IDs are served."""
    f.wait_for(f"the clock to be {state}", lambda: server.node()["clock"]["state"] == state)
    server.wait_reason(True, part)
    t.equal(server.metric(f'firn_clock_state{{state="{state}"}}'), 1.0, f"the metric of {state}")
    server.wait_log(f"clock_state state={state}")


def check_sign(t, server, sign, least_s):
    """The system clock's distance, above 0 when it is behind, the same in the metric and in /v1/node."""
    said, metric = server.node()["clock"]["behind_ms"] / 1000 * sign, server.metric("firn_clock_behind_seconds") * sign
    t.check(said >= least_s and metric >= least_s, f"behind by {sign} x {least_s} s or more: {said}, {metric}")


def steps(server):
    """(back, ahead), the same in the metric and in /v1/node."""
    clock = server.node()["clock"]
    metric = tuple(server.metric(f'firn_clock_steps_total{{direction="{d}"}}') for d in ("back", "ahead"))
    return (clock["steps_back"], clock["steps_ahead"]) if metric == (clock["steps_back"], clock["steps_ahead"]) else None


def a_small_step(t, clock):
    """Five seconds back: the clock catches up by itself, so the count and the log tell of it."""
    clock.set(0)
    server, taker = f.Firnd(t, t.state("small"), env=clock.env()).wait_ready(), Taker(t)
    taker.take(server)
    t.equal(steps(server), (0, 0), "steps before")
    clock.set(-5)
    f.wait_for("the step back to be counted", lambda: steps(server) == (1, 0))
    server.wait_log("clock_step by_ms=-")
    server.wait_log("clock_state state=held behind_ms=")
    taker.take(server)
    check_state(t, server, "ok", "ready")  # at the latest when the five seconds have passed
    clock.set(0)
    f.wait_for("the step ahead to be counted", lambda: steps(server) == (1, 1))
    server.wait_log(["clock_step by_ms=5", "clock_step by_ms=4"])
    taker.take(server)
    taker.check()
    t.equal(server.stop(), 0, "it ends cleanly")


def ticket(server):
    status, said = f.get(server.ticket, "/generate")
    return int(said["id"]) if status == 200 else said


def at_run_time(t, clock):
    clock.set(0)
    server, taker, load = f.Firnd(t, t.state("run"), env=clock.env()).wait_ready(), Taker(t), f.Load(t)
    load.start(f.resp_ids)
    load.aim(1, server)
    tickets = [ticket(server)]
    for what, step, state, part, sign, least_s in (
            ("back an hour", lambda: clock.set(-HOUR), "held", "stepped back", 1, HOUR - 120),
            ("forward a day", lambda: clock.set(DAY), "suspect", "leapt ahead", -1, DAY - 120),
            ("forward a year", lambda: clock.set(YEAR), "suspect", "leapt ahead", -1, YEAR - 120),
            ("frozen", clock.freeze, "held", "stands still", 1, 0),
            ("1970", lambda: clock.freeze(1000), "held", "stepped back", 1, YEAR)):
        step()
        check_state(t, server, state, part)
        check_sign(t, server, sign, least_s)
        got = taker.take(server)
        t.check(got and abs(off_by_s(got[-1])) < 10 * 60, f"{what}: the IDs' time stays near: {off_by_s(got[-1])} s")
        tickets.append(ticket(server))
        t.check(server.readyz()[0], f"{what}: still ready")
        clock.set(0)
        check_state(t, server, "ok", "ready")
        taker.take(server)
    load.rest()
    load.end()
    taker.ids += load.check_ids(100)
    taker.check()
    t.equal(tickets, list(range(100001, 100007)), "tickets count on")
    t.equal(server.stop(), 0, "it ends cleanly")


def across_restarts(t, clock):
    """Ended and killed with one clock, started with another."""
    state, taker = t.state("restarts"), Taker(t)
    clock.set(0)
    server = f.Firnd(t, state, env=clock.env()).wait_ready()
    taker.take(server)
    first = ticket(server)
    for n, (what, step, part) in enumerate((
            ("back an hour", lambda: clock.set(-HOUR), "far behind"),
            ("forward a year", lambda: clock.set(YEAR), "not plausible"),
            ("1970", lambda: clock.freeze(1000), "not plausible"))):
        server.kill()
        step()
        server = f.Firnd(t, state, env=clock.env())
        server.wait_reason(False, part)
        taker.refused(server, part)
        t.equal(server.metric('firn_slot_state{state="wait_clock"}'), 1.0, f"{what}: the metric of wait_clock")
        server.wait_log("slot_state state=wait_clock")
        server.wait_log("lease_trouble error=FIRN_ECLOCK")
        t.equal(ticket(server), first + 1 + n, f"{what}: tickets need no clock")
        clock.set(0)
        server.wait_ready()
        taker.take(server)
    taker.check()
    server.kill()
    clock.set(YEAR)
    server = f.Firnd(t, state, env=clock.env())
    server.wait_reason(False, "not plausible")
    t.equal(server.stop(), 0, "one that waits for the clock can be ended")


def ahead_for_a_while(t, clock):
    """A week ahead is plausible, so it is followed; back again, another slot serves with the right time."""
    state, taker = t.state("week"), Taker(t)
    clock.set(0)
    server = f.Firnd(t, state, env=clock.env()).wait_ready()
    taker.take(server)
    t.equal(server.stop(), 0, "it ends cleanly")
    clock.set(7 * DAY)
    server = f.Firnd(t, state, env=clock.env()).wait_ready()
    got = taker.take(server)
    t.check(got and off_by_s(got[0]) > 6 * DAY, "a week ahead is taken as it is")
    server.kill()
    clock.set(0)
    server = f.Firnd(t, state, env=clock.env()).wait_ready()
    got = taker.take(server)
    t.check(got and abs(off_by_s(got[0])) < 10 * 60, "back in the present on a slot that is not poisoned")
    taker.check()
    t.equal(server.stop(), 0, "it ends cleanly")


def new_store_in_1970(t, clock):
    """A machine without a clock battery: nothing until the time is set."""
    state, taker = t.state("1970"), Taker(t)
    clock.freeze(1000)
    server = f.Firnd(t, state, env=clock.env())
    server.wait_reason(False, "not plausible")
    server.wait_log("before the layout's epoch")
    t.equal(server.metric('firn_clock_state{state="wait"}'), 1.0, "the metric of wait")
    taker.refused(server, "not plausible")
    t.equal(ticket(server), 100001, "tickets need no clock")
    clock.set(0)
    server.wait_ready()
    got = taker.take(server)
    t.check(abs(off_by_s(got[0])) < 10 * 60, "IDs of the present, once the clock is set")
    t.equal(server.stop(), 0, "it ends cleanly")


def crash_loop_while_frozen(t, clock):
    """With a clock that stands each crash uses up ticks that time does not give back, until no slot is left."""
    state, taker, kills = t.state("frozen"), Taker(t), 0
    os.mkdir(state)
    clock.freeze()
    subprocess.run([os.path.join(t.bin, "firn"), "admin", "init", "--store", f"sqlite:{state}/firn.db", "--slots", str(SLOTS)],
                   env={**os.environ, **clock.env()}, check=True, capture_output=True, timeout=f.LIMIT)
    while True:
        server = f.Firnd(t, state, env=clock.env())
        if "state=no_slot" in server.wait_log(["state=active", "state=no_slot"]) or kills == KILLS:
            break
        server.wait_ready()
        taker.take(server, 3)
        server.kill()
        kills += 1
    t.check(kills < KILLS, f"after {kills} crashes every slot lies ahead of the clock")
    t.say(f"no slot after {kills} crashes")
    server.wait_reason(False, "every slot is held or ahead of the clock")
    taker.refused(server, "every slot")
    t.equal(server.metric('firn_slot_state{state="no_slot"}'), 1.0, "the metric of no_slot")
    t.equal(server.stop(), 0, "SIGTERM ends one that waits")
    server = f.Firnd(t, state, env=clock.env())
    server.wait_reason(False, "every slot is held or ahead of the clock")
    clock.set(60)  # as if a minute had passed
    server.wait_ready()
    taker.take(server)
    taker.check()
    t.equal(server.stop(), 0, "it ends cleanly")


def move_store(state, by_s):
    """Seen from a store that moved the other way, the clock has leapt."""
    def move(m):
        return b"%s=%d" % (m[1], int(m[2]) + by_s * 1000)
    with contextlib.closing(sqlite3.connect(os.path.join(state, "firn.db"), timeout=f.LIMIT)) as db, db:
        db.execute("BEGIN IMMEDIATE")
        for key, value in db.execute("SELECT key, value FROM register WHERE key GLOB 'slot/*'").fetchall():
            value = re.sub(rb"(?m)^(from|until|at)=([0-9]+)$", move, bytes(value))
            db.execute("UPDATE register SET value = ? WHERE key = ?", (value, key))


def seen_from_the_store(t):
    """The same across a restart without a fake clock, so that it runs with every build."""
    state, taker = t.state("moved"), Taker(t)
    server = f.Firnd(t, state).wait_ready()
    taker.take(server)
    for n, (by_s, part) in enumerate(((HOUR, "far behind"), (-YEAR, "not plausible"))):
        t.equal(server.stop(), 0, "it ends cleanly")
        move_store(state, by_s)
        server = f.Firnd(t, state)
        server.wait_reason(False, part)
        taker.refused(server, part)
        server.wait_log("slot_state state=wait_clock")
        server.wait_log("lease_trouble error=FIRN_ECLOCK")
        t.equal(server.metric('firn_slot_state{state="wait_clock"}'), 1.0, "the metric of wait_clock")
        t.equal(ticket(server), 100001 + n, "tickets need no clock")
        move_store(state, -by_s)
        taker.take(server.wait_ready())
    taker.check()
    t.equal(server.stop(), 0, "it ends cleanly")


with f.Test("clocks") as test:
    test.section(seen_from_the_store)
    fake, why = find_library(test)
    if fake:
        for part in (at_run_time, a_small_step, across_restarts, ahead_for_a_while, new_store_in_1970, crash_loop_while_frozen):
            test.section(part, fake)
    else:
        print(f"*** NO FAKE CLOCK with {test.bin}: {why}. What happens at run time was NOT TESTED")
