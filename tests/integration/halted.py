#!/usr/bin/env python3
"""
A store that gives no Snowflake IDs gives no tickets either: one that was never initialised, one that was wiped while
firnd ran. Over HTTP and over the Redis protocol, from the store and from numbers in hand; /readyz says so, too.
On etcd and Redis where they are installed; a file that was deleted or replaced is in disk.py.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import etcd, redis  # noqa: E402  pylint: disable=wrong-import-position

ENGINES = {"etcd": lambda folder: etcd.Etcd(folder, nodes=1), "redis": redis.Redis}


def admin(t, *words):
    return subprocess.run([os.path.join(t.bin, "firn"), "admin", *words], check=True, capture_output=True, timeout=f.LIMIT)


def refused(t, server, part, name="orders"):
    """Every way to a number is closed, and says why."""
    for path in ("/generate", "/v1/ids/ticket", "/v1/ids/ticket?seq=" + name):
        status, said = f.get(server.ticket, path)
        t.check(status == 503 and part in str(said), f"{path} is refused with the cause: {status} {said}")
    http = f.Http(server.home)
    status, said = http.post("/v1/sequences", {"name": "made-while-halted", "mode": "gapless", "start": "1"})
    t.check(status == 503 and part in str(said), f"no sequence is created: {status} {said}")
    http.close()
    resp = f.Resp(server.ticket)
    for words in (("INCR", name), ("INCRBY", name, 3), ("FIRN.NEXT", "ticket"), ("FIRN.NEXT", "ticket", "SEQ", name, "KEY", "k1"),
                  ("GET", name)):
        try:
            said = resp.do(*words)
        except f.RespError as e:
            said = e
        t.check(isinstance(said, f.RespError) and part in str(said), f"{words} is refused with the cause: {said}")
    resp.close()


def never_initialised(t, name, engine):
    url = engine.url("typo")
    server = f.Firnd(t, t.state(f"{name}-typo"), "--store", url)
    server.wait_reason(False, "firn admin init")
    status, said = f.get(server.snowflake, "/generate")
    t.check(status == 503, f"Snowflake IDs are refused: {status} {said}")
    refused(t, server, "firn admin init")
    http = f.Http(server.home)
    status, said = http.post("/v1/leases", {})
    t.check(status >= 400, f"no slot is lent: {status} {said}")
    http.close()
    t.equal(list(engine.keys("typo")), [], "nothing was written into the store; keys")
    admin(t, "init", "--store", url, "--fresh")
    server.wait_ready()
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "initialised, the first ticket")
    t.equal(server.stop(), 0, "it ends cleanly")


def wiped(t, name, engine):
    """All keys deleted under a running firnd: no sequence begins again."""
    url = engine.url("wiped")
    admin(t, "init", "--store", url, "--fresh", "--window", "9s")
    server = f.Firnd(t, t.state(f"{name}-wiped"), "--store", url).wait_ready()
    resp = f.Resp(server.ticket)
    first = [resp.do("INCR", "orders") for _ in range(3)]
    t.equal(first, [1, 2, 3], "numbers of a range sequence")
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "the first ticket")
    for key in list(engine.keys("wiped")):
        engine.delete("wiped", key)
    given = []
    c = f.Http(server.home)
    for ask in (lambda: f.get(server.ticket, "/generate"),
                lambda: c.post("/v1/sequences", {"name": "again", "mode": "gapless", "start": "1"})):
        status, said = ask()
        t.check(status in (404, 503), f"a sequence does not begin again in a wiped store: {status} {said}")
    c.close()

    def shut():
        try:
            given.append(resp.do("INCR", "orders"))
        except f.RespError as e:
            return "halted" in str(e)
        return False
    f.wait_for("numbers in hand to be refused", shut)
    t.equal(given, list(range(4, 4 + len(given))), "until then only numbers that were in hand")
    server.wait_reason(False, "halted")
    refused(t, server, "halted")
    resp.close()
    t.equal(server.stop(), 0, "it ends cleanly")


with f.Test("halted") as test:
    for which, make in ENGINES.items():
        folder = test.state(which)
        os.mkdir(folder)
        store = make(folder)
        missing = store.missing()
        if missing:
            print(f"*** {which} NOT TESTED: {missing}")
            continue
        try:
            store.start()
            for part in (never_initialised, wiped)[:2 if which == "redis" else 1]:
                test.section(part, which, store)
        finally:
            store.stop()
