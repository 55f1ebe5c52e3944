#!/usr/bin/env python3
"""
firn admin beside a running firnd: what it shows is what is there, what it repairs is whole again, and it never
takes a damaged store for an empty one.
"""
import datetime
import json
import os
import re
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position


EPOCH_MS = 1609459200000  # of the default layout


def admin(t, store, *words):
    """Status, what it printed, what it said."""
    done = subprocess.run([os.path.join(t.bin, "firn"), "admin", *words], capture_output=True, text=True,
                          env={**os.environ, "FIRN_STORE": store}, timeout=f.LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr


def slots(t, store):
    return json.loads(admin(t, store, "slots", "--all", "--json")[1])


def set_up(t):
    """From nothing to a store that a server uses, and back to rest."""
    state = os.path.join(t.dir, "set_up")
    os.mkdir(state)
    store = f"sqlite:{state}/firn.db"
    status, _, said = admin(t, store, "slots")
    t.check(status == 2 and "there is no store" in said and "firn admin init" in said, f"an empty store says what to do: {said}")
    t.equal(admin(t, store, "init", "--slots", "4", "--window", "6s", "--fresh")[0], 0, "init")
    status, _, said = admin(t, store, "init")
    t.check(status == 1 and "already" in said, f"but once: {said}")
    server = f.Firnd(t, state)
    server.wait_ready()
    held = [s for s in slots(t, store) if s["state"] == "held"]
    t.equal([s["slot"] for s in held], [server.node()["slot"]], "the slot that the server says it holds")
    t.equal(len(slots(t, store)), 4, "as many slots as were asked for")
    status, out, _ = admin(t, store, "doctor")
    t.check(status == 0 and "BAD" not in out, f"the doctor is content: {out}")
    status, _, said = admin(t, store, "retire", str(held[0]["slot"]))
    t.check(status == 1 and "held" in said, f"a held slot is not retired: {said}")
    last = int(f.minted(server.snowflake)["id"])
    t.equal(admin(t, store, "fence")[0], 0, "fence under a running server")
    f.wait_for("the server to notice", lambda: server.metric("firn_fenced_total") > 0)
    server.wait_ready()
    t.check(int(f.minted(server.snowflake)["id"]) > last, "it goes on, higher")
    server.stop()
    t.equal(admin(t, store, "retire", "0", "--force")[0], 0, "retire")
    t.equal(slots(t, store)[0]["state"], "retired", "it shows")


def restored(t):
    """Numbers that were given since a backup do not come again after skip, beside a server that runs."""
    state = t.steady("restored")
    store = f"sqlite:{state}/firn.db"
    server = f.Firnd(t, state)
    server.wait_ready()
    c = f.Http(server.home)
    for name, spec in (("dense", {"step": 10, "offset": 3}), ("blocks", {"mode": "range"}), ("short", {"max": 20}),
                       ("bill", {"dated": {"reset": "day", "digits": 6}})):
        t.equal(c.post("/v1/sequences", {"name": name, **spec})[0], 201, f"create {name}")
    c.close()

    def take(name):
        status, body = f.get(server.ticket, f"/generate?seq={name}")
        return int(body["id"].split("-")[-1]) if status == 200 else status

    before = {name: take(name) for name in ("dense", "blocks", "short", "bill")}
    status, out, said = admin(t, store, "skip", "1000")
    t.check(status == 0 and "dense: the next number is 10013" in out and "short: no numbers are left" in out,
            f"skip: {out} {said}")
    t.check(take("dense") >= before["dense"] + 10 * 1000, "dense goes on a thousand numbers on")
    t.check(take("bill") > before["bill"] + 1000, "a dated one, too")
    t.equal(take("short"), 409, "one that has fewer left ends")
    after = take("dense")
    t.equal(admin(t, store, "skip", "5", "bill")[0], 0, "skip one")
    t.equal(take("dense"), after + 10, "others stay")
    for words, cause in ((("skip", "0"), "1 or more"), (("skip", "x"), "1 or more"), (("skip", "1", "none"), "no sequence"),
                         (("skip",), "wrong subcommand")):
        status, _, said = admin(t, store, *words)
        t.check(status != 0 and cause in said, f"{words}: {said}")
    server.stop()


def damage(t):
    """Records that are gone are an error until an operator says so."""
    state = t.steady("damage")
    store = f"sqlite:{state}/firn.db"
    server = f.Firnd(t, state)
    server.wait_ready()
    last = int(f.get(server.snowflake, "/generate")[1]["id"])
    unused = 7 if server.node()["slot"] != 7 else 8  # the record of a slot that was held tells that the store was used
    server.stop()
    with sqlite3.connect(f"{state}/firn.db") as db:
        db.execute(f"DELETE FROM register WHERE key IN ('meta', 'slot/{unused:05}')")
    db.close()
    status, out, _ = admin(t, store, "doctor")
    t.check(status == 1 and "--recover" in out, f"the doctor sees it: {out}")
    status, _, said = admin(t, store, "init")
    t.check(status == 1 and "--recover" in said, f"init refuses: {said}")
    t.equal(admin(t, store, "init", "--recover")[0], 0, "recovered")
    status, out, _ = admin(t, store, "doctor")
    t.check(status == 0 and "BAD" not in out, f"the doctor is content: {out}")
    server = f.Firnd(t, state)
    server.wait_ready()
    t.check(int(f.get(server.snowflake, "/generate")[1]["id"]) > last, "IDs go on above the old ones")
    server.stop()
    with sqlite3.connect(f"{state}/firn.db") as db:
        db.execute("UPDATE register SET value = x'0123' WHERE key = 'slot/00003'")
        far = db.execute("SELECT value FROM register WHERE key = 'slot/00004'").fetchone()[0]
        lines = [b"until=4000000000000" if line.startswith(b"until=") else line for line in far.split(b"\n")]
        db.execute("UPDATE register SET value = ? WHERE key = 'slot/00004'", (b"\n".join(lines),))
    db.close()
    status, out, _ = admin(t, store, "doctor")
    t.check(status == 1 and "cannot be read" in out and "poisoned" in out, f"broken and poisoned are told: {out}")


def beginnings(t):
    """`init` says from when IDs come, and that is so; --fresh makes them come now."""
    for fresh in (False, True):
        state = os.path.join(t.dir, f"begins-{fresh}")
        os.mkdir(state)
        status, out, _ = admin(t, f"sqlite:{state}/firn.db", "init", *(["--fresh"] if fresh else []))
        t.equal(status, 0, "init")
        said = re.search(r"stamped from (\S+) on", out)
        t.check(bool(said) != fresh and ("IDs begin now" in out) == fresh and ("--fresh" in out) != fresh, f"it says when: {out}")
        server = f.Firnd(t, state).wait_ready()
        made_ms = (int(f.minted(server.snowflake)["id"]) >> 22) + EPOCH_MS
        if fresh:
            t.check(made_ms <= time.time() * 1000 + 10, "an ID of the present")
        else:
            from_ms = datetime.datetime.fromisoformat(said[1].replace("Z", "+00:00")).timestamp() * 1000
            t.check(made_ms >= from_ms - 2000, f"the first ID is above what a lost store may have granted: {made_ms} {from_ms}")
        t.equal(server.stop(), 0, "it ends cleanly")


def pinned(t):
    """A worker number of one's choice is leased: the second one waits, says why, and takes over."""
    state, slot = t.state("pinned"), os.getpid() % 1000  # slots are the machine's: two runs of this test take two
    first = f.Firnd(t, state, "--worker", str(slot), "--name", "one").wait_ready()
    t.equal(first.node()["slot"], slot, "the slot that was asked for")
    t.equal(int(f.minted(first.snowflake)["id"]) >> 12 & 1023, slot, "the worker number of its IDs")
    second = f.Firnd(t, state, "--name", "two", env={"FIRN_WORKER_ID": str(slot)})
    second.wait_reason(False, "held by 'one'")
    second.wait_log("set another worker_id")
    status, said = f.get(second.snowflake, "/generate")
    t.check(status == 503, f"no ID from the second: {status} {said}")
    third = f.Firnd(t, t.state("elsewhere"), "--worker", str(slot), "--name", "three")
    third.wait_reason(False, "with another store")  # on one machine the same number in two stores is a clash, too
    t.equal(third.stop(), 0, "it ends cleanly")
    first.kill()
    second.wait_ready()
    t.equal(second.node()["slot"], slot, "the second takes over")
    t.equal(second.stop(), 0, "it ends cleanly")


def variables(t):
    """A mistyped variable is an error; what a container sets is not."""
    def run(program, *args, **env):
        done = subprocess.run([os.path.join(t.bin, program), *args], capture_output=True, text=True, timeout=f.LIMIT,
                              env={**os.environ, **env}, check=False)
        return done.returncode, done.stderr + done.stdout
    for program, args in (("firnd", ("--check-config", "--no-config")), ("firn", ("gen", "ulid"))):
        for env, says in (({"FIRN_STROE": "x"}, "did you mean FIRN_STORE"), ({"FIRN_WHATEVER": "x"}, "FIRN_WHATEVER"),
                          ({"FIRN_PORT": "9000"}, "FIRN_PORT"), ({"FIRN_WHATEVER": ""}, None), ({"FIRN_LOG_LEVEL": "warn"}, None),
                          ({"FIRN_PORT": "tcp://10.0.0.1:9000", "FIRN_PORT_9000_TCP_PROTO": "tcp", "FIRN_SERVICE_PORT_HTTP": "1"}, None)):
            status, said = run(program, *args, **env)
            t.check(status == (2 if says else 0) and (says or "") in said, f"{program} with {env}: {status} {said}")
        t.equal(run(program, "--version", FIRN_STROE="x")[0], 0, f"{program} --version works all the same")
    server = f.Firnd(t, t.state("links"), env={"FIRN_SERVICE_HOST": "10.0.0.1", "FIRN_PORT": "tcp://10.0.0.1:9000"}).wait_ready()
    server.wait_log("service_links_ignored variables=2")
    t.equal(server.stop(), 0, "it ends cleanly")


def words(t):
    for bad in (["init"], ["slots", "--store", "mysql://x"], ["frobnicate"], ["retire"], []):
        status, _, said = admin(t, "", *bad)
        t.check(status == 2 and said.count("\n") == 1, f"{bad}: {said}")


def main():
    with f.Test("admin") as t:
        for section in (set_up, restored, damage, beginnings, pinned, variables, words):
            t.section(section)


main()
