#!/usr/bin/env python3
"""
The SQLite store loses its write-ahead log: removed while firnd runs, or after kill -9. firnd halts, for Snowflake IDs and
tickets alike, and says what to do; and it never does so without a cause. Backups: a copy of the running store, put in its
place, gives nothing twice. Commands that only look create no store.
"""
import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import etcd, postgres, redis, zookeeper  # noqa: E402  pylint: disable=wrong-import-position


def firn(t, *words, env=None):
    done = subprocess.run([os.path.join(t.bin, "firn"), *words], capture_output=True, timeout=f.LIMIT, check=False,
                          env={**os.environ, **(env or {})}, cwd=t.dir)
    return done.returncode, (done.stdout + done.stderr).decode()


def db(state):
    return os.path.join(state, "firn.db")


def take(server, n):
    """Gapless numbers, numbers of a range sequence, and IDs."""
    c = f.Resp(server.ticket)
    numbers = [c.do("INCR", "invoice") for _ in range(n)], [c.do("INCR", "orders") for _ in range(n)]
    c.close()
    return (*numbers, f.take_ids(server, n))


def taken_on(t, before, after, what):
    """Nothing comes twice, and numbers rise."""
    for name, a, b in zip(("invoice", "orders", "IDs"), before, after):
        t.check(not set(a) & set(b), f"{what}: no {name} twice: {sorted(set(a) & set(b))[:3]}")
        t.check(not b or max(a) < min(b), f"{what}: {name} rise: {max(a)} then {b[:1]}")


def halted(t, server, part):
    reason = server.wait_reason(False, part)
    t.check("halted" in reason, f"/readyz says that it halted: {reason}")
    server.wait_log("slot_state state=halted")
    f.wait_for("the metrics", lambda: server.metric('firn_slot_state{state="halted"}') == 1.0
               and server.metric("firn_sequences_open") == 0.0 and server.metric("firn_ready") == 0.0)
    f.wait_for("IDs to be refused", lambda: f.get(server.snowflake, "/generate")[0] == 503)
    status, said = f.get(server.ticket, "/v1/ids/ticket?seq=invoice")
    t.check(status == 503 and part in str(said), f"a ticket is refused with the cause: {status} {said}")
    c = f.Resp(server.ticket)
    for name in ("invoice", "orders"):
        try:
            said = c.do("INCR", name)
        except f.RespError as e:
            said = e
        t.check(isinstance(said, f.RespError) and part in str(said), f"INCR {name} is refused with the cause: {said}")
    c.close()


def removed_while_running(t):
    state = t.state("running")
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    before = take(server, 20)
    os.unlink(db(state) + "-wal")
    c = f.Resp(server.ticket)  # the next write is a ticket's
    try:
        said = c.do("INCR", "invoice")
    except f.RespError as e:
        said = e
    c.close()
    t.check(isinstance(said, f.RespError) and "-wal" in str(said), f"the next ticket is refused: {said}")
    server.wait_log("slot_state state=halted")
    t.check("-wal" in server.readyz()[1], f"/readyz names the file: {server.readyz()}")
    t.equal(server.metric("firn_sequences_open"), 0.0, "the metric of sequences")
    # What was committed is still in the file that is open: nothing was lost.
    t.equal(server.stop(), 0, "one that halted can be ended")
    server = f.Firnd(t, state).wait_ready()
    after = take(server, 20)
    taken_on(t, before, after, "after a removal while running")
    t.equal(after[0][0], 21, "the gapless sequence goes on without a hole")
    server.kill()


def removed_after_a_crash(t):
    state = t.state("crashed")
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    before = take(server, 10)
    t.equal(server.stop(), 0, "it ends cleanly")
    server = f.Firnd(t, state).wait_ready()
    before = tuple(a + b for a, b in zip(before, take(server, 50)))
    server.kill()
    os.unlink(db(state) + "-wal")
    server = f.Firnd(t, state)
    halted(t, server, "firn admin fence --skip")
    url = "sqlite:" + db(state)
    code, said = firn(t, "admin", "fence", "--store", url)
    t.check(code != 0 and "--skip N" in said, f"a fence without a count is refused: {code} {said}")
    code, said = firn(t, "admin", "doctor", "--store", url)
    t.check(code == 1 and "lost commits" in said, f"the doctor says it: {code} {said}")
    code, said = firn(t, "admin", "backup", t.state("no.db"), "--store", url)
    t.check(code != 0 and "lost commits" in said, f"it cannot be backed up: {code} {said}")
    server.kill()
    server = f.Firnd(t, state)
    halted(t, server, "firn admin fence --skip")  # neither a restart nor looking at it has cured it
    t.equal(server.stop(), 0, "one that halted can be ended")
    code, said = firn(t, "admin", "fence", "--skip", "1000", "--store", url)
    t.equal(code, 0, f"fenced with a count: {said}")
    server = f.Firnd(t, state).wait_ready()
    after = take(server, 20)
    taken_on(t, before, after, "after the cure")
    server.kill()
    server = f.Firnd(t, state).wait_ready()
    taken_on(t, after, take(server, 5), "after the cure and a crash")
    server.kill()

    # All that there was, was in the log.
    state = t.state("all-lost")
    f.Firnd(t, state).wait_ready().kill()
    os.unlink(db(state) + "-wal")
    server = f.Firnd(t, state)
    halted_store = server.wait_reason(False, "lost commits")
    t.check("halted" in halted_store, f"/readyz says that it halted: {halted_store}")
    code, said = firn(t, "admin", "fence", "--skip", "1", "--store", "sqlite:" + db(state))
    cure = "remove all its files, then `firn admin init`"
    t.check(code != 0 and cure in said, f"the cure of a store that lost everything: {code} {said}")
    t.check(cure in halted_store, f"/readyz names the same one: {halted_store}")
    code, said = firn(t, "admin", "doctor", "--store", "sqlite:" + db(state))
    t.check(code == 1 and cure in said and "there are none" not in said, f"and so does the doctor: {code} {said}")
    server.kill()
    for name in os.listdir(state):
        if name.startswith("firn.db"):
            os.unlink(os.path.join(state, name))
    t.equal(firn(t, "admin", "init", "--store", "sqlite:" + db(state))[0], 0, "it works: init")
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    take(server, 5)
    server.kill()


def noted(t, state):
    """Whether this machine can tell what only a note (src/store/note.h) tells."""
    notes = f"/dev/shm/firn-{os.geteuid()}"
    if os.path.isdir(notes) and any(db(state).encode() in open(os.path.join(notes, n), "rb").read() for n in os.listdir(notes)):
        return True
    print(f"*** NO NOTE of {db(state)}: its losses were NOT TESTED")
    return False


def older_than_noted(t):
    """The end of the log is missing after kill -9; and the whole folder is put back to an earlier state, mark and all."""
    for how in ("cut", "rolled-back"):
        state, saved = t.state(how), t.state(how + "-saved")
        server = f.Firnd(t, state).wait_ready()
        f.make_gapless(server.home, "invoice")
        first = take(server, 10)
        server.kill()
        shutil.copytree(state, saved)
        server = f.Firnd(t, state).wait_ready()
        before = take(server, 30)
        taken_on(t, first, before, "it goes on")
        server.kill()
        if not noted(t, state):
            return
        if how == "cut":
            os.truncate(db(state) + "-wal", os.stat(db(state) + "-wal").st_size - 20000)
        else:  # into the same files, as the rollback of a volume does
            for name in os.listdir(state):
                if name.startswith("firn.db"):
                    old = os.path.join(saved, name)
                    with open(os.path.join(state, name), "wb") as to:
                        to.write(open(old, "rb").read() if os.path.exists(old) else b"")
        server = f.Firnd(t, state)
        halted(t, server, "firn admin fence --skip")
        server.kill()
        code, said = firn(t, "admin", "fence", "--skip", "1000", "--store", "sqlite:" + db(state))
        t.equal(code, 0, f"{how}: fenced with a count: {said}")
        server = f.Firnd(t, state).wait_ready()
        taken_on(t, before, take(server, 20), f"{how}: after the cure")
        server.kill()
        server = f.Firnd(t, state).wait_ready()
        t.equal(server.stop(), 0, f"{how}: and nothing is said any more")


def one_of_a_quorum(t):
    """A store of a quorum that lost its log does not vote until it is admitted."""
    files = [t.state(f"q{i}.db") for i in range(3)]
    url = "quorum:" + "|".join("sqlite:" + p for p in files)
    t.equal(firn(t, "admin", "init", "--fresh", "--store", url)[0], 0, "init")
    server = f.Firnd(t, t.state("quorum"), "--store", url)
    f.make_gapless(server.home, "invoice")
    before = take(server, 10)
    server.kill()
    os.unlink(files[1] + "-wal")
    server = f.Firnd(t, t.state("quorum"), "--store", url)
    f.wait_for("tickets of the other two", lambda: f.get(server.ticket, "/v1/ids/ticket?seq=invoice")[0] == 200)
    code, said = firn(t, "admin", "doctor", "--store", url)
    t.check(code == 1 and "admit" in said, f"the doctor names the store that lost its log: {code} {said}")
    code, said = firn(t, "admin", "admit", "sqlite:" + files[1], "--store", url)
    t.equal(code, 0, f"it is admitted: {said}")
    code, said = firn(t, "admin", "doctor", "--store", url)
    t.check("admit" not in said, f"and votes again: {code} {said}")
    c = f.Resp(server.ticket)
    t.check(c.do("INCR", "invoice") > max(before[0]), "no number comes twice")
    c.close()
    server.kill()


def never_without_a_cause(t):
    """kill -9 in the middle of writes, two servers, commands on the file while they run and while they are dead. Tickets
    need no slot, so no server waits for the window of one that was killed."""
    state = t.steady("whole")
    url = "sqlite:" + db(state)
    got = []
    for n in range(12):
        servers = [f.Firnd(t, state) for _ in range(1 + n % 2)]
        f.make_gapless(servers[0].home, "invoice", there=True)
        c = f.Resp(servers[0].ticket)
        got += [c.do("INCR", "invoice") for _ in range(30)]
        for _ in range(64):
            c.ask("INCR", "invoice")  # in flight when it ends
        if n % 3 == 0:
            t.equal(firn(t, "admin", "slots", "--store", url)[0], 0, "slots, while it runs")
        if n % 4 == 1:
            t.equal(firn(t, "admin", "skip", "1", "invoice", "--store", url)[0], 0, "skip, while it runs")
        for s in servers:
            t.check("halted" not in s.log(), f"round {n}: nothing halts: {s.log()}")
            s.kill()
        try:
            while True:
                got.append(c.answer())
        except (f.Gone, f.RespError):
            c.close()
        if n % 3 == 1:
            t.equal(firn(t, "admin", "doctor", "--store", url)[0] in (0, 1), True, "doctor, while it is dead")
        if n % 4 == 3:
            t.equal(firn(t, "admin", "skip", "1", "invoice", "--store", url)[0], 0, "skip, while it is dead")
    t.equal(len(set(got)), len(got), "no number comes twice; how many")
    server = f.Firnd(t, state)
    t.equal(server.stop(), 0, "it ends cleanly")
    t.check(not os.path.exists(db(state) + "-wal"), "the last user removed the log")
    server = f.Firnd(t, state)
    c = f.Resp(server.ticket)
    t.check(c.do("INCR", "invoice") > max(got), "and tickets go on")
    c.close()
    server.kill()


def backup_and_restore(t):
    state, copy = t.state("origin"), t.state("backup.db")
    url = "sqlite:" + db(state)
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    before = take(server, 30)
    code, said = firn(t, "admin", "backup", copy, "--store", url)
    t.equal(code, 0, f"a backup of a running store: {said}")
    t.equal(stat.S_IMODE(os.stat(copy).st_mode), 0o600, "its mode")
    t.equal(sorted(os.path.basename(p) for p in os.listdir(t.dir) if p.startswith("backup")), ["backup.db"], "it is one file")
    code, said = firn(t, "admin", "backup", copy, "--store", url)
    t.check(code != 0 and "exists" in said, f"it is not written over: {code} {said}")
    since = take(server, 40)
    taken_on(t, before, since, "the original goes on")
    t.equal(server.stop(), 0, "it ends cleanly")

    def restore():
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(db(state) + suffix):
                os.unlink(db(state) + suffix)
        shutil.copy(copy, db(state))
    for in_place in (False, True):
        if in_place:  # over the same file: the same inode
            with open(copy, "rb") as src, open(db(state), "wb") as to:
                to.write(src.read())
            for suffix in ("-wal", "-shm"):
                if os.path.exists(db(state) + suffix):
                    os.unlink(db(state) + suffix)
        else:
            restore()
        server = f.Firnd(t, state)
        server.wait_reason(False, "firn admin fence --skip")
        c = f.Resp(server.ticket)
        for name in ("invoice", "orders"):
            try:
                said = c.do("INCR", name)
            except f.RespError as e:
                said = e
            t.check(isinstance(said, f.RespError) and "--skip" in str(said), f"{name} is held, with the cure: {said}")
        c.close()
        if not in_place:
            server.wait_log("store_fenced")
            server.wait_log("sequences_held")
            said = f.minted(server.snowflake)
            t.check(int(said["id"]) > max(since[2]), f"Snowflake IDs go on above: {said}")
            code, said = firn(t, "admin", "doctor", "--store", url)
            t.check(code == 1 and "restored backup" in said, f"the doctor says it: {code} {said}")
            t.equal(server.stop(), 0, "it ends cleanly")
            server = f.Firnd(t, state)  # fenced, but still held
            server.wait_reason(False, "firn admin fence --skip")
        code, said = firn(t, "admin", "fence", "--store", url)
        t.check(code != 0 and "--skip N" in said, f"a fence without a count is refused: {code} {said}")
        code, said = firn(t, "admin", "fence", "--skip", "2000" if in_place else "500", "--store", url)
        t.equal(code, 0, f"fenced with a count: {said}")
        server.wait_ready()  # the one that halted, without a restart
        after = take(server, 20)
        taken_on(t, since, after, "after the restore")
        since = tuple(a + b for a, b in zip(since, after))
        t.equal(server.stop(), 0, "it ends cleanly")


LOOKING = (("admin", "slots"), ("admin", "doctor"), ("admin", "fence"), ("admin", "fence", "--skip", "1"), ("admin", "skip", "1"),
           ("admin", "retire", "0"), ("admin", "backup", "b.db"), ("nodes",), ("nodes", "--all"), ("config", "list"),
           ("config", "get", "x"))


def looking_creates_nothing(t):
    folder = t.state("empty")
    os.mkdir(folder)
    typo = os.path.join(folder, "TYPO.db")
    three = "quorum:" + "|".join(f"sqlite:{typo}{i}" for i in range(3))
    for words in LOOKING:
        code, said = firn(t, *words, "--store", f"sqlite:{typo}")
        t.check(code != 0 and "there is no store at" in said and "firn admin init" in said, f"{words}: {code} {said}")
        code, said = firn(t, *words, env={"FIRN_STORE": f"sqlite:{typo}"})
        t.check(code != 0 and "there is no store at" in said, f"{words} by FIRN_STORE: {code} {said}")
        t.equal(os.listdir(folder), [], f"{words} creates nothing; files")
    some = LOOKING[:2] + LOOKING[7:8]
    with ThreadPoolExecutor() as pool:  # each waits for the quorum until its deadline
        for words, (code, said) in zip(some, pool.map(lambda words: firn(t, *words, "--store", three), some)):
            t.check(code != 0, f"{words} on a quorum of none: {code} {said}")
    t.equal(os.listdir(folder), [], "looking at a quorum creates nothing; files")
    made = os.path.join(folder, "made.db")
    old = os.umask(0)
    code, said = firn(t, "admin", "init", "--fresh", "--store", f"sqlite:{made}")
    os.umask(old)
    t.equal(code, 0, f"init makes it: {said}")
    t.equal({n: oct(stat.S_IMODE(os.stat(os.path.join(folder, n)).st_mode)) for n in os.listdir(folder)},
            {n: "0o600" for n in os.listdir(folder)}, "modes of files")


def looking_at_services(t):
    for which, make_one in (("etcd", lambda p: etcd.Etcd(p, nodes=1)), ("redis", redis.Redis), ("postgres", postgres.Postgres),
                            ("zookeeper", lambda p: zookeeper.ZooKeeper(p, nodes=1))):
        folder = t.state(which)
        os.mkdir(folder)
        engine = make_one(folder)
        missing = engine.missing()
        if missing:
            print(f"*** {which} NOT TESTED: {missing}")
            continue
        try:
            engine.start()
            url = engine.url("typo")
            for words in LOOKING:
                code, said = firn(t, *words, "--store", url)
                quiet = words[0] in ("nodes", "config") or words[:2] == ("admin", "skip")
                t.check(code != 0 or quiet, f"{which} {words}: {code} {said}")
            if which == "postgres":
                t.equal(engine.server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE '%typo%'").strip(), "0", "tables")
            elif which == "zookeeper":
                with engine.client() as c:
                    t.check("typo" not in c.children("/"), f"no znode is created: {c.children('/')}")
            else:
                t.equal(list(engine.keys("typo")), [], f"{which}: keys")
        finally:
            engine.stop()


with f.Test("wal") as test:
    for part in (removed_while_running, removed_after_a_crash, older_than_noted, one_of_a_quorum, never_without_a_cause, backup_and_restore,
                 looking_creates_nothing, looking_at_services):
        test.section(part)
