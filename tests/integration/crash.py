#!/usr/bin/env python3
"""
Nothing is handed out twice, however firnd ends: killed under load, killed as soon as it starts, stopped and
continued, ended politely, two at a time on one store.
"""
import fcntl
import os
import random
import shutil
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

KILLS = 50
LOOP_KILLS = 32
WINDOW_S = 3  # of the embedded store
SLOTS = 1024


def start_clients(load):
    load.start(f.http_ids, 1)
    load.start(f.http_ids, 50)
    load.start(f.resp_ids)
    load.start(f.http_tickets, "invoice")
    load.start(f.http_tickets, "invoice", 3)
    load.start(f.resp_tickets, "invoice", 8)
    load.start(f.resp_tickets, "orders", 4)


def check_all(t, load, last, ids):
    load.check_ids(ids)
    holes, lost = load.check_gapless("invoice", 1, f.next_number(last, "invoice"))
    orders = [n for _, n in load.tickets.get("orders", [])]
    t.equal(len(set(orders)), len(orders), "range tickets are distinct; how many")
    t.say(f"{sum(map(len, load.ids))} IDs on {len(load.ids)} connections, {len(load.tickets['invoice'])} gapless "
          f"tickets ({lost} in flight at an end, {holes} of them were numbered), {len(orders)} range tickets, "
          f"{len(load.refused)} refusals")


def killed_under_load(t):
    state, load, dice = t.state("killed"), f.Load(t), random.Random(20)
    server = f.Firnd(t, state)
    f.make_gapless(server.home, "invoice")
    start_clients(load)
    for generation in range(1, KILLS + 1):
        load.aim(generation, server)
        load.wait_answers(dice.choice((1, 20, 100, 300)))
        server.kill()
        server = f.Firnd(t, state)
    load.rest()
    load.end()
    t.check(load.tickets.get("orders"), "range tickets were received")
    check_all(t, load, server.wait_ready(), 10 * KILLS)
    t.equal(server.stop(), 0, "the last one ends cleanly")


def killed_at_once(t):
    """A crash loop on a new store moves every slot ahead of the clock. It must wait, not give up."""
    state, ids, waited = t.state("at-once"), [], 0
    for _ in range(LOOP_KILLS):
        server = f.Firnd(t, state)
        said = server.wait_log(["state=active", "state=no_slot"])
        waited += "state=no_slot" in said
        if "state=active" in said:
            c = f.Resp(server.home)
            ids.append(int(c.do("FIRN.NEXT", "snowflake")))
            c.close()
        server.kill()
    server = f.Firnd(t, state).wait_ready()
    waited += "state=no_slot" in server.log()
    c = f.Resp(server.home)
    ids.append(int(c.do("FIRN.NEXT", "snowflake")))
    c.close()
    t.equal(len(set(ids)), len(ids), "IDs between the kills are distinct; how many")
    t.equal(server.stop(), 0, "it ends cleanly")
    t.say(f"{waited} of {LOOP_KILLS + 1} starts found every slot ahead of the clock")


def lock_slots(path):
    """Hold every slot's lock byte, as so many other processes would."""
    lock = open(path, "r+b")  # pylint: disable=consider-using-with
    F_OFD_SETLK = 37
    fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, SLOTS, 0))
    return lock


def no_slot_left(t):
    """Every slot is held: firnd waits, says so, serves tickets, can be ended, and goes on when one is free."""
    state = t.state("no-slot")
    t.equal(f.Firnd(t, state).wait_ready().stop(), 0, "a first run makes the store")
    lock = lock_slots(os.path.join(state, "firn.db.slots"))
    server = f.Firnd(t, state)
    server.wait_reason(False, "every slot is held or ahead of the clock")
    server.wait_log("slot_state state=no_slot")
    t.check(server.metric('firn_slot_state{state="no_slot"}') == 1, "metrics say no_slot")
    status, said = f.get(server.snowflake, "/generate")
    t.check(status == 503 and "every slot is held" in str(said), f"a Snowflake ID is refused with the cause: {said}")
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "a ticket needs no slot")
    t.equal(server.stop(), 0, "SIGTERM ends one that waits")
    server = f.Firnd(t, state)
    server.wait_log("slot_state state=no_slot")
    lock.close()
    server.wait_ready()
    t.equal(f.get(server.snowflake, "/generate")[0], 200, "IDs, once a slot is free; status")
    t.equal(server.stop(), 0, "it ends cleanly")


def stopped_and_continued(t):
    """
    SIGSTOP for longer than the window, under load, while another process starts on the same store. If the
    stopped one holds the store's write lock the other has to wait for it; both serve afterwards.
    """
    state, load, other = t.state("stopped"), f.Load(t), f.Load(t)
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    start_clients(load)
    load.aim(1, server)
    load.wait_answers(200)
    server.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    second = f.Firnd(t, state)
    other.start(f.http_ids, 1)
    other.aim(1, second)
    # This long is what the case is about; nothing is concluded from what happens meanwhile.
    f.wait_for("the pause", lambda: time.monotonic() > stopped + WINDOW_S + 1)
    meanwhile = other.answers
    server.signal(signal.SIGCONT)
    load.wait_answers(500)
    before = sum(map(len, load.ids))
    f.wait_for("Snowflake IDs after the pause", lambda: sum(map(len, load.ids)) > before + 200)
    t.check(second.wait_ready().node()["slot"] != server_slot(load), "the second process has a slot of its own")
    other.wait_answers(50)
    for l in (load, other):
        l.rest()
        l.end()
    load.ids += other.ids
    check_all(t, load, server, 400)
    t.say(f"the second process gave {meanwhile} answers during the pause")
    t.equal((server.stop(), second.stop()), (0, 0), "both end cleanly")


def server_slot(load):
    """The slot in the IDs of the default layout."""
    return next(c[0] >> 12 & 1023 for c in load.ids if c)


def two_on_one_store(t):
    state, loads = t.state("two"), [f.Load(t), f.Load(t)]
    servers = [f.Firnd(t, state), f.Firnd(t, state)]
    slots = [s.wait_ready().node()["slot"] for s in servers]
    t.check(slots[0] != slots[1], f"two processes show two slots: {slots}")
    f.make_gapless(servers[0].home, "invoice")
    for load, server in zip(loads, servers):
        start_clients(load)
        load.aim(1, server)
    for load in loads:
        load.wait_answers(300)
    servers[0].kill()  # the other goes on, and the next takes the dead one's place
    loads[1].wait_answers(200)
    servers[0] = f.Firnd(t, state).wait_ready()
    loads[0].aim(2, servers[0])
    for load in loads:
        load.wait_answers(200)
    for load in loads:
        load.rest()
        load.end()
    one = loads[0]
    one.ids += loads[1].ids
    for seq, got in loads[1].tickets.items():
        one.tickets[seq] += got
    for seq, lost in loads[1].lost.items():
        for g, n in lost.items():
            one.note_lost(seq, g, n)
    # Both processes' numbers are one generation: they run at once.
    one.tickets = {s: [(1, n) for _, n in got] for s, got in one.tickets.items()}
    one.lost = {s: {1: sum(lost.values())} for s, lost in one.lost.items()}
    check_all(t, one, servers[1], 400)
    t.equal([s.stop() for s in servers], [0, 0], "both end cleanly")


def ended_politely(t):
    """SIGTERM under load: answers or closed connections, status 0, and on at once where it ended."""
    state, load = t.state("politely"), f.Load(t)
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    start_clients(load)
    highest = 0
    for generation in range(1, 6):
        load.aim(generation, server)
        load.wait_answers(300)
        t.equal(server.stop(), 0, "exit status after SIGTERM under load")
        t.check("ended clean=yes" in server.log(), "the log says that it ended cleanly")
        load.rest()
        server = f.Firnd(t, state).wait_ready()
        first = int(f.get(server.snowflake, "/generate")[1]["id"])
        with load.lock:
            seen = max((i for c in load.ids for i in c), default=0)
            load.ids.append([first])
        t.check(first > max(seen, highest), f"IDs go on above those of the last run: {first} after {seen}")
        highest = first
    load.end()
    check_all(t, load, server, 500)
    t.equal(server.stop(), 0, "the last one ends cleanly")


def store_lost(t):
    """A container without a volume: killed in a burst, its store gone, started again at once."""
    state, seen = t.state("lost"), []
    for _ in range(3):
        server = f.Firnd(t, state).wait_ready()
        for _ in range(4):  # both loops, so that both lanes are in use
            http = f.Http(server.snowflake)
            for _ in range(5):
                http.ask("/generate?n=100000", fields="Accept: text/plain\r\n")
                status, body = http.answer()
                if status == 200:
                    seen += body.split()
        server.kill()
        shutil.rmtree(state)
    t.check(len(seen) >= 1000000, f"{len(seen)} IDs of three lives")
    t.equal(len(seen) - len(set(seen)), 0, "IDs that came twice although the store was lost")


with f.Test("crash") as test:
    for part in (killed_under_load, killed_at_once, no_slot_left, stopped_and_continued, two_on_one_store,
                 ended_politely, store_lost):
        test.section(part)
