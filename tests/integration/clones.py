#!/usr/bin/env python3
"""
Two stores that know nothing of each other: new ones, copies side by side, a clone of a whole disk. They take different slots, and
what one gave out the other does not.
"""
import os
import shutil
import sqlite3
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


with f.Test("clones") as test:
    for part in (fresh_stores, copied_side_by_side, another_boot):
        test.section(part)
