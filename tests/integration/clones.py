#!/usr/bin/env python3
"""
Two stores that know nothing of each other: new ones, copies side by side, a clone of a whole disk. They take different slots, and
what one gave out the other does not.
"""
import os
import shutil
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

OTHER_BOOT = "00000000-0000-4000-8000-000000000000"


def slot(server):
    return server.wait_ready().node()["slot"]


def none_twice(t, servers, rounds=200):
    """Asked in turn, so that they stamp the same milliseconds."""
    clients, ids = [f.Http(s.snowflake) for s in servers], []
    for _ in range(rounds):
        for c in clients:
            c.ask("/generate?n=50")
        for c in clients:
            status, body = c.answer()
            if t.check(status == 200, f"IDs are served: {body}"):
                ids += f.json.loads(body)["ids"]
    for c in clients:
        c.close()
    t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")


def fresh_stores(t):
    """Four new stores, as behind one balancer."""
    servers = [f.Firnd(t, t.state(f"fresh-{i}")) for i in range(4)]
    slots = [slot(s) for s in servers]
    t.equal(len(set(slots)), 4, f"slots of four new stores on one machine differ {slots}; how many")
    none_twice(t, servers)


def copy_of(state, to):
    """A consistent copy, as a snapshot of the file system makes one, of a store in use."""
    os.mkdir(to)
    with sqlite3.connect(f"{state}/firn.db") as a, sqlite3.connect(f"{to}/firn.db") as b:
        a.backup(b)
    for side in ("firn.db.slots",):
        shutil.copy(f"{state}/{side}", f"{to}/{side}")


def copied_side_by_side(t):
    """cp -r of a state directory: the copy fences itself, and takes another slot; so does a copy of the copy."""
    a = f.Firnd(t, t.state("one"), "--name", "same")
    slot(a)
    copy_of(t.state("one"), t.state("two"))
    b = f.Firnd(t, t.state("two"), "--name", "same")
    slot(b)
    copy_of(t.state("two"), t.state("three"))
    c = f.Firnd(t, t.state("three"), "--name", "same")
    slots = [slot(s) for s in (a, b, c)]
    t.equal(len(set(slots)), 3, f"slots of a store and its copies differ {slots}; how many")
    t.check("store_fenced" in b.log() and "store_fenced" in c.log(), "the copies say that they fenced themselves")
    none_twice(t, (a, b, c))
    before = slots[1]
    t.equal(b.stop(), 0, "it ends")
    t.equal(slot(f.Firnd(t, t.state("two"), "--name", "same")), before, "once fenced, a restart keeps the slot")


def another_boot(t):
    """A clone of the whole disk has the inode and the time of birth of the original. What tells is the boot: at another one
    the node takes another slot, as the original may go on with its own; after a plain restart it keeps it."""
    state = t.state("boot")
    a = f.Firnd(t, state, "--name", "same")
    first = slot(a)
    t.equal(a.stop(), 0, "it ends")
    a = f.Firnd(t, state, "--name", "same")
    t.equal(slot(a), first, "the slot after a restart")
    a.kill()
    with open(f"{state}/firn.db.slots", "r+", encoding="ascii") as side:
        side.write(OTHER_BOOT)
    a = f.Firnd(t, state, "--name", "same")
    second = slot(a)
    t.check(second != first, f"another slot than {first} at another boot: {second}")
    t.check("store_fenced" not in a.log(), "a reboot is no reason for a fence")
    t.equal(a.stop(), 0, "it ends")
    t.equal(slot(f.Firnd(t, state, "--name", "same")), second, "the slot after a restart at the same boot")


TWO_SLOTS = "unused:1,time:41@1ms,node:1,seq:12;epoch=2021-01-01T00:00:00Z"  # strangers do not keep clear of each other


def firn(t, want, *args):
    done = subprocess.run([os.path.join(t.bin, "firn"), *args], capture_output=True, text=True, timeout=f.LIMIT, check=False)
    t.equal(done.returncode, want, f"firn {' '.join(args)}: {done.stdout} {done.stderr}; status")
    return done.stdout


def small(t, name, slots, *args, **opts):
    """A firnd with a store of its own that has so few slots."""
    state = t.state(name)
    if not os.path.exists(state):
        os.mkdir(state)
        firn(t, 0, "admin", "init", "--store", f"sqlite:{state}/firn.db", "--layout", TWO_SLOTS, "--slots", str(slots), "--fresh")
    return f.Firnd(t, state, "--layout", TWO_SLOTS, "--name", name, *args, **opts).wait_ready()


def two_with_one_slot(t):
    """Nothing kept them apart: a client that asks both finds it."""
    a, b = small(t, "a", 1), small(t, "b", 1)
    urls = [f"http://{s.home}" for s in (a, b)]
    said = firn(t, 1, "doctor", *urls)
    t.check("uses slot 0 as" in said and "another store" in said and "1 wrong" in said, f"firn doctor finds it: {said}")
    found = f.json.loads(firn(t, 1, "doctor", "--json", *urls))
    t.equal(([n["slot"] for n in found["nodes"]], found["ok"]), ([0, 0], False), "the same for programs")
    t.check(found["nodes"][0]["store"] != found["nodes"][1]["store"] and found["nodes"][0]["start"] != found["nodes"][1]["start"],
            f"each names its store and its start: {found}")
    t.check(firn(t, 1, "top", "--once", *urls).count("CLASH") == 2, "firn top shows it")
    t.equal([n["slot_clash"] for n in f.json.loads(firn(t, 1, "top", "--once", "--json", *urls))["nodes"]], [True, True], "for programs, too")
    said = firn(t, 0, "doctor", urls[0])
    t.check("1 server, 0 wrong" in said, f"alone each is fine: {said}")
    said = firn(t, 0, "doctor", urls[0], f"http://{a.snowflake}")
    t.check("the same process" in said, f"one process under two addresses is no clash: {said}")
    for path in ("/v1/node", "/healthz", "/readyz"):
        c = f.Http(a.home)
        c.ask(path)
        head = b"\n".join(iter(c.line, b"")).decode()
        c.close()
        t.check(f"Firn-Node: start={a.node()['start']}; slot=0; store={a.node()['store']['id']}" in head, f"{path} says who answers: {head}")
    b.stop()
    said = firn(t, 1, "doctor", *urls)
    t.check("does not answer" in said and "down" in said, f"one that is down: {said}")


def peers_at_the_start(t):
    """A slot that a peer uses is not taken."""
    a = small(t, "first", 1)
    for i in range(4):
        b = small(t, f"second-{i}", 2, "--peers", a.home)
        t.equal(b.node()["slot"], 1, "the slot that the peer does not use")
        f.wait_for("the peer to count", lambda s=b: s.metric("firn_peers_up") == 1.0)
        t.equal(b.metric("firn_slot_clashes_total"), 0.0, "clashes")
        b.stop()


def peers_later(t):
    """A peer that comes later, and does not look: the one that looks notices, says so and takes another slot."""
    spare = f.Firnd(t, t.state("spare")).wait_ready()  # an address that no other process gets meanwhile
    home = spare.home
    for i in range(40):
        b = small(t, f"looks-{i}", 2, "--peers", home)
        if b.node()["slot"] == 0:
            break
        b.stop()
    t.equal(b.node()["slot"], 0, "the slot of the one that looks")
    spare.stop()
    b.wait_log("peer_down")
    a = small(t, "later", 1, listen={"home": home})
    b.wait_log("slot_clash")
    f.wait_for("it to take the other slot", lambda: b.node()["ready"] and b.node()["slot"] == 1)
    t.check(b.metric("firn_slot_clashes_total") >= 1, "the metric counts it")
    t.equal(firn(t, 0, "doctor", f"http://{a.home}", f"http://{b.home}").count("wrong  "), 0, "then firn doctor finds nothing wrong")
    none_twice(t, (a, b))


with f.Test("clones") as test:
    for part in (fresh_stores, copied_side_by_side, another_boot, two_with_one_slot, peers_at_the_start, peers_later):
        test.section(part)
