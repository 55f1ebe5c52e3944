#!/usr/bin/env python3
"""
What is particular to a quorum: a minority that is dead, slow, wiped or restored; who may vote, and how a store is let
in again; URLs; one round trip after the first.
"""
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import store_cases as t  # noqa: E402  pylint: disable=wrong-import-position
from engines.quorum import (  # noqa: E402  pylint: disable=wrong-import-position
    QuorumEtcd, QuorumMixed, QuorumPostgres, QuorumRaft, QuorumRedis, QuorumSqlite, StrictRedis)
from engines.postgres import Postgres  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Client, Redis  # noqa: E402  pylint: disable=wrong-import-position

FIRN = os.path.join(os.path.abspath(sys.argv[1]), "firn") if len(sys.argv) > 1 else None


def admin(*words):
    done = subprocess.run([FIRN, "admin", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=t.LIMIT,
                          check=False)
    return done.returncode, done.stdout.decode()


def starting(url, folder):
    """firnd on this store: its exit status and what it said, or None while it runs on."""
    with open(os.path.join(folder, "firnd.log"), "w+b") as log:
        p = subprocess.Popen([FIRN + "d", "--no-config", "--state-dir", os.path.join(folder, "state"), "--store", url,
                              "--listen-home", "127.0.0.1:0", "--listen-snowflake", "127.0.0.1:0",
                              "--listen-ticket", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = p.wait(t.LIMIT)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            p.kill()
            p.wait()
        log.seek(0)
        return status, log.read().decode()


def write(p, key, old, new):
    """A change that is retried until it is done; no other client writes."""
    def one():
        a = p.cas(key, old, new)
        if a.result == "FIRN_ECONFLICT":
            assert p.read(key).value == new.encode(), f"somebody else wrote {key}"
            return True
        assert a.result in ("0", "FIRN_EUNKNOWN", "FIRN_EIO"), a
        return a.ok
    t.wait_for(f"{key} is written", one)


def wipe(e, i, path="firn"):
    name = e.node[i].file(path)
    for tail in ("", "-wal", "-shm"):
        if os.path.exists(name + tail):
            os.unlink(name + tail)


def case_urls(folder):
    one = f"sqlite:{folder}/1.db"
    t.open_fails(f"quorum:{one}", "FIRN_EFORMAT", "3, 5 or 7")
    t.open_fails(f"quorum:{one}|{one}2", "FIRN_EFORMAT", "3, 5 or 7")
    t.open_fails(f"quorum:{one}|{one}|{one}2", "FIRN_EFORMAT", "twice")
    t.open_fails("quorum:", "FIRN_EFORMAT")
    t.open_fails(f"quorum:{one}|nonsense|{one}2", "FIRN_EFORMAT", "nonsense")
    t.open_fails(f"quorum:{one}|quorum:{one}|{one}2", "FIRN_EFORMAT", "cannot be")
    t.open_fails("quorum:" + "|".join(f"{one}{i}" for i in range(9)), "FIRN_EFORMAT", "at most 7")
    assert not os.listdir(folder), "a wrong URL makes no files"
    with t.opened("quorum:" + "|".join(f"{one}{i}" for i in range(5))) as p:
        t.expect(p.cas("k", None, "v"), "0")
    with t.opened("quorum:" + "|".join(f"{one}{i}" for i in (3, 1, 4, 0, 2))) as p:  # in any order
        assert p.read("k").value == b"v"
    t.open_fails("quorum:" + "|".join(f"{one}{i}" for i in range(3)), "FIRN_ESTORE", "number of stores")


def case_one_store_by_two_names(folder):
    """Two votes for one store would make it a majority by itself. Found when the quorum is formed."""
    one, two = f"sqlite:{folder}/1.db", f"sqlite:{folder}/2.db"
    same = f"sqlite:{folder}/./1.db"
    t.open_fails(f"quorum:{one}|{same}|{two}", "FIRN_EFORMAT", "the same store", f"{folder}/./1.db")
    with t.opened(f"quorum:{one}|{two}|sqlite:{folder}/3.db") as p:
        t.expect(p.cas("k", None, "v"), "0")


def case_one_server_in_several_places(folder):
    """It is used, as on a laptop, but doctor says that nothing is won by it."""
    os.chmod(folder, 0o755)
    redis, postgres = Redis(folder), Postgres(folder)
    with t.running(redis, postgres):
        for e, shared in ((redis, 2), (postgres, 2)):
            url = "quorum:" + "|".join(e.url(f"place{i}") for i in range(3))
            status, said = admin("init", "--fresh", "--slots", "16", "--store", url)
            assert status == 0, said
            status, said = admin("doctor", "--store", url)
            assert status == 0 and said.count("is in the same server as") == shared, said
        status, said = admin("doctor", "--store", f"quorum:sqlite:{folder}/1|{redis.url('own')}|{postgres.url('own')}")
        assert "the same server" not in said, said


def case_a_majority_is_badly_set_up(folder):
    """Only an operator can repair that: refused at once, with the cure, as the one store would be."""
    with t.running(QuorumRedis(folder)) as e:
        for n in e.node[:2]:
            n.server.do("CONFIG", "SET", "appendfsync", "everysec")
        cure = "stores 1, 2: Redis has appendfsync everysec", "set appendfsync always; or unsafe_ok=dev"
        t.open_fails(e.url(), "FIRN_ENOTSUP", "0 of 3 stores take part", *cure)
        e.node[2].server.do("CONFIG", "SET", "appendfsync", "everysec")
        t.open_fails(e.url(), "FIRN_ENOTSUP", "all 3: Redis has appendfsync everysec", cure[1])
        status, said = admin("init", "--fresh", "--store", e.url())
        assert status == 2 and cure[1] in said, said
        status, said = starting(e.url(), folder)
        assert status == 1 and cure[1] in said and "store_unreachable" not in said, f"{status}: {said}"
        without = e.url().replace("unsafe_ok=yes&", "")
        t.open_fails(without, "FIRN_ENOTSUP", "all 3: Redis may forget", "say unsafe_ok=yes to use it")
        status, said = starting(without, folder)
        assert status == 1 and "say unsafe_ok=yes to use it" in said, f"{status}: {said}"


def case_a_minority_is_badly_set_up(folder):
    """The others go on, and it takes part again when it is repaired."""
    with t.running(QuorumRedis(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.node[1].server.do("CONFIG", "SET", "appendfsync", "everysec")
        with t.opened(e.url()) as q:
            write(q, "k", "0", "1")
            status, said = admin("doctor", "--store", e.url())
            assert status == 1 and "unfit" in said and "set appendfsync always" in said, said
            e.kill(0)  # what is left is away, badly set up, and well: a server that is away may come back
            with t.probe(e.url(), 1000) as r:
                t.expect(r.opened, "FIRN_EIO", "store 2: Redis has appendfsync", "set appendfsync always")
            e.node[1].server.do("CONFIG", "SET", "appendfsync", "always")
            t.wait_for("it takes part again", lambda: q.read("k").value == b"1")
            e.restart(0)


def case_a_minority_is_dead(folder):
    """f of 2f+1: reads and writes go on, and it comes back by itself."""
    with t.running(QuorumRedis(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        for i in range(3):
            e.kill(i)
            for n in range(5):
                write(p, "k", str(i * 5 + n), str(i * 5 + n + 1))
            with t.opened(e.url()) as q:  # also for one that comes now
                assert q.read("k").value == b"%d" % (i * 5 + 5)
            e.restart(i)
            write(p, f"after {i}", None, "v")
        t.wait_for("all have the last value", lambda: _all_have(e, b"after 2"))


def _all_have(e, key):
    return all(b"px/" + key in n.keys("firn") for n in e.node)


def case_a_majority_is_dead(folder):
    with t.running(QuorumRedis(folder)) as e, t.opened(e.url(), 700) as p:
        write(p, "k", None, "0")
        e.kill(0)
        e.kill(1)
        a = p.cas("k", "0", "1")
        assert a.result in ("FIRN_EIO", "FIRN_EUNKNOWN") and a.ms < 5000, a
        assert "2 are needed" in a.text, a
        b = p.read("k")
        assert b.result == "FIRN_EIO" and b.ms < 5000, b
        t.open_fails(e.url(), "FIRN_EIO", "2 are needed")
        e.restart(0)
        t.wait_for("reads work again", lambda: p.read("k").ok)
        e.restart(1)


def case_a_slow_one_delays_nobody(folder):
    with t.running(QuorumRedis(folder)) as e, t.opened(e.url(), 4000) as p:
        write(p, "k", None, "0")
        e.pause(1)
        for n in range(50):
            t.expect(p.cas("k", str(n), str(n + 1)), "0")  # one that waited for it would be unknown
        assert p.read("k").value == b"50"
        with t.opened(e.url(), 4000) as q:
            assert q.read("k").value == b"50"
        e.resume(1)


def case_a_wiped_store_does_not_vote(folder):
    """With it and one that missed the last write it would be a majority that has forgotten it."""
    with t.running(QuorumSqlite(folder)) as e:
        with t.opened(e.url()) as p:
            write(p, "k", None, "0")
            e.pause(2)
            write(p, "k", "0", "1")  # stores 0 and 1 have it
            e.resume(2)
        wipe(e, 0)
        e.pause(1)
        with t.opened(e.url(), 1000) as p:  # a file that is locked can still be read
            a = p.cas("k", "0", "lost")
            assert a.result in ("FIRN_EIO", "FIRN_ECONFLICT"), f"one store is no majority: {a}"
            assert p.read("k").value != b"0", "an acknowledged write is forgotten"
        e.resume(1)
        with t.opened(e.url()) as p:
            assert p.read("k").value == b"1", "the two others know"
            status, said = admin("doctor", "--store", e.url())
            assert status == 1 and "refused" in said and "firn admin admit" in said, said
            status, said = admin("admit", e.node[0].url(), "--store", e.url())
            assert status == 0, said
            status, said = admin("admit", e.node[0].url(), "--store", e.url())
            assert status == 1 and "already" in said, said
            write(p, "k", "1", "2")
        e.pause(1)  # now it is one of the two that are needed
        with t.opened(e.url()) as p:
            t.wait_for("it reads with the admitted one", lambda: p.read("k").value == b"2")
            write(p, "k", "2", "3")
        e.resume(1)


def _forgets_under_an_open_handle(folder, kind, forget):
    """Store 2 missed a register, store 0 forgets it, store 1 is down: no answer may say that it never was."""
    with t.running(kind(folder)) as e, t.opened(e.url(), 1000) as p:
        write(p, "k", None, "0")
        e.kill(2)
        write(p, "n", None, "1")
        e.restart(2)
        if not e.options:
            status, said = admin("admit", "--as-is", e.node[2].url(), "--store", e.url())
            assert status == 0, said
        e.kill(1)
        t.wait_for("stores 0 and 2 are a majority", lambda: p.read("k").value == b"0")
        forget(e.node[0])
        for _ in range(5):  # from the first answer on
            a = p.read("n")
            assert a.result == "FIRN_EIO", f"an acknowledged write is forgotten: {a}"
            a = p.scan("n")
            assert a.result == "FIRN_EIO", f"an acknowledged write is forgotten by a scan: {a}"
        e.restart(1)
        if e.options:
            t.wait_for("the two others know", lambda: p.read("n").value == b"1")


def case_a_store_that_is_emptied_while_it_serves(folder):
    _forgets_under_an_open_handle(folder, QuorumRedis, lambda node: node.server.do("FLUSHALL"))


def case_a_store_that_comes_back_empty(folder):
    _forgets_under_an_open_handle(folder, QuorumRedis, lambda node: node.wipe())


def case_a_store_that_comes_back_older(folder):
    """It has its record of membership, but of another life."""
    def forget(node):
        c = Client(node.server.port)
        for name in (b"firn:px/n", b"firn:px/k"):  # as in a copy that was taken before
            c.do("DEL", name)
        c.do("ZREM", "firn", "px/n", "px/k")
        c.close()
        node.restart()
    _forgets_under_an_open_handle(folder, StrictRedis, forget)


def case_a_restored_store_does_not_vote(folder):
    with t.running(QuorumSqlite(folder)) as e, t.opened(e.url()) as p:
        for i in range(40):
            write(p, f"r{i}", None, "0")
        e.node[1].snapshot(os.path.join(folder, "copy"))
        for i in range(40):
            write(p, f"r{i}", "0", "1")
        e.node[1].restore(os.path.join(folder, "copy"))
        for i in range(40):  # goes on with the other two, on the handle that was open
            write(p, f"r{i}", "1", "2")
        status, said = admin("doctor", "--store", e.url())
        assert status == 1 and "refused" in said, said
        with t.opened(e.url()) as busy:  # somebody goes on writing
            status, said = admin("admit", e.node[1].url(), "--store", e.url())
            assert status == 0, said
            write(busy, "r0", "2", "3")
        e.pause(0)
        with t.opened(e.url()) as q:
            for i in range(40):
                want = b"3" if i == 0 else b"2"
                t.wait_for(f"r{i}", lambda i=i, want=want: q.read(f"r{i}").value == want)
            assert len(q.scan("r").found) == 40
        e.resume(0)


def case_a_restored_etcd_does_not_vote(folder):
    """It has the identity that it had. A store that saw more than it knows tells all, by its record px-member."""
    with t.running(QuorumEtcd(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.node[0].snapshot(os.path.join(folder, "copy"))
        e.pause(2)  # so that no write is done without the one that will forget it
        for n in range(5):
            write(p, "k", str(n), str(n + 1))
        write(p, "n", None, "1")
        e.resume(2)
        e.node[0].restore(os.path.join(folder, "copy"))

        def refused():
            assert p.read("n").value in (None, b"1")  # None: it is not there, or not known
            status, said = admin("doctor", "--store", e.url())
            return status == 1 and "refused" in said
        t.wait_for("it is refused, also by those who come later", refused)
        with t.opened(e.url()) as q:
            assert q.read("n").value == b"1" and q.read("k").value == b"5"
        status, said = admin("admit", e.node[0].url(), "--store", e.url())
        assert status == 0, said
        e.kill(1)
        t.wait_for("it reads with the admitted one", lambda: p.read("k").value == b"5" and p.read("n").value == b"1")


def case_one_of_each_kind(folder):
    """Each is lost in turn; the stores that come then, and those that were there, have the register."""
    os.chmod(folder, 0o755)
    with t.running(QuorumMixed(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        for i in range(3):
            e.kill(i)
            for n in range(5):
                write(p, "k", str(i * 5 + n), str(i * 5 + n + 1))
            with t.opened(e.url(), 3000) as q:  # it ends when the locked file gave up
                assert q.read("k").value == b"%d" % (i * 5 + 5)
            e.restart(i)
            t.wait_for("doctor finds all three again",
                       lambda: admin("doctor", "--store", e.url())[1].count(": member") == 3)
        assert p.read("k").value == b"15"


def case_a_restored_postgres_does_not_vote(folder):
    """A data directory that was put back has the identity that it had; a store that saw more of it tells all."""
    os.chmod(folder, 0o755)
    with t.running(QuorumPostgres(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.node[0].snapshot(os.path.join(folder, "copy"))
        e.pause(2)  # so that no write is done without the one that will forget it
        for n in range(5):
            write(p, "k", str(n), str(n + 1))
        e.resume(2)
        e.node[0].restore(os.path.join(folder, "copy"))

        def refused():
            assert p.read("k").value in (None, b"5")  # None: not known
            return ": refused: " in admin("doctor", "--store", e.url())[1]
        t.wait_for("it is refused, also by those who come later", refused)
        status, said = admin("admit", e.node[0].url(), "--store", e.url())
        assert status == 0, said
        e.kill(1)
        t.wait_for("it reads with the admitted one", lambda: p.read("k").value == b"5")
        write(p, "k", "5", "6")


def case_all_are_restored(folder):
    """No store is left that could know: refused, loudly."""
    with t.running(QuorumSqlite(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.snapshot(os.path.join(folder, "copy"))
        write(p, "k", "0", "1")
        e.restore(os.path.join(folder, "copy"))
        a = t.wait_for("it notices", lambda: (lambda a: a if a.result == "FIRN_ESTORE" else None)(p.cas("k", "1", "2")))
        assert "take part" in a.text and "firn admin doctor" in a.text, a
        t.open_fails(e.url(), "FIRN_ESTORE")
        for n in e.node:  # the operator says that this is what there is; then a fence is needed (docs/cluster.md)
            status, said = admin("admit", "--as-is", n.url(), "--store", e.url())
            assert status == 0, said
        with t.opened(e.url()) as q:
            assert q.read("k").value == b"0"


def case_a_majority_is_wiped(folder):
    """No store can give them what they had: each is named with what can be done, and that works."""
    with t.running(QuorumSqlite(folder)) as e:
        status, said = admin("init", "--fresh", "--slots", "16", "--store", e.url())
        assert status == 0, said
        with t.opened(e.url()) as p:
            write(p, "k", None, "0")
        wipe(e, 1)  # of three stores one may lack what the others confirmed; one that is admitted gets all of it
        status, said = admin("admit", e.node[1].url(), "--store", e.url())
        assert status == 0, said
        wipe(e, 0)
        wipe(e, 2)
        t.open_fails(e.url(), "FIRN_ESTORE", "1 of 3 stores take part", "stores 1, 3: ", "wiped", "`firn admin doctor`")
        status, said = starting(e.url(), folder)
        assert status == 1 and "`firn admin doctor`" in said, f"{status}: {said}"
        status, said = admin("admit", e.node[0].url(), "--store", e.url())
        assert status == 2 and "needs a majority of the other stores" in said and "`firn admin doctor`" in said, said
        status, said = admin("admit", "--as-is", e.node[0].url(), "--store", e.url())
        assert status == 1 and "is empty" in said and "without a majority, first put its backup there" in said, said
        status, said = admin("doctor", "--store", e.url())
        table = [line for line in said.splitlines() if line.split()[1:2] == ["quorum"]]
        lines = {n.url(): next(line for line in table if f"{n.url()}: " in line) for n in e.node}
        assert status == 1 and "`firn admin fence`" in said and "`firn admin init`" in said, said
        assert ": member" in lines[e.node[1].url()], said
        for n in (e.node[0], e.node[2]):
            assert "wiped: put its backup there, or a copy of a store that is left" in lines[n.url()], said
            assert "`firn admin admit --as-is`" in lines[n.url()], said
        e.node[1].snapshot(os.path.join(folder, "copy"))  # the newest there is
        for i in (0, 2):
            wipe(e, i)  # looking at it made it again
            shutil.copy(os.path.join(folder, "copy", "firn.db"), e.node[i].file("firn"))
            status, said = admin("admit", "--as-is", e.node[i].url(), "--store", e.url())
            assert status == 0, said
        status, said = admin("fence", "--store", e.url())
        assert status == 0, said
        with t.opened(e.url()) as p:
            assert p.read("k").value == b"0"
            e.pause(1)
            write(p, "k", "0", "1")  # by the two copies
            e.resume(1)
        for i in range(3):
            wipe(e, i)
        status, said = admin("init", "--slots", "16", "--store", e.url())  # anew
        assert status == 0, said
        status, said = admin("doctor", "--store", e.url())
        assert status == 0, said


def case_not_formed_yet(folder):
    """All stores must be there for that; doctor names the one that is not."""
    with t.running(QuorumRedis(folder)) as e:
        e.kill(1)
        with t.probe(e.url(), 1000) as p:
            t.expect(p.opened, "FIRN_EIO", "store 2: ", "stores 1, 3: it is empty: a quorum is formed when all")
        status, said = admin("doctor", "--store", e.url())
        assert status == 1 and said.count(": blank: it is empty") == 2 and said.count(": away: ") == 1, said
        e.restart(1)
        with t.opened(e.url()) as p:
            write(p, "k", None, "0")


def case_a_restarted_redis(folder):
    """Its identity changes with each start: a stranger, unless restart_ok says that it has what it had."""
    with t.running(StrictRedis(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.kill(2)
        e.restart(2)
        for n in range(5):
            write(p, "k", str(n), str(n + 1))
        status, said = admin("doctor", "--store", e.url())
        assert status == 1 and "restarted" in said, said
        status, said = admin("admit", "--as-is", e.node[2].url(), "--store", e.url())
        assert status == 0, said
        e.kill(1)
        t.wait_for("it takes part again", lambda: p.read("k").value == b"5")
        write(p, "k", "5", "6")
        e.restart(1)
        with t.opened(e.url().replace("quorum:", "quorum:restart_ok|")) as q:
            assert q.read("k").value == b"6"
            e.kill(0)
            write(q, "k", "6", "7")
            e.restart(0)


def case_another_quorum(folder):
    with t.running(QuorumSqlite(folder)) as e:
        with t.opened(e.url("a")) as p, t.opened(e.url("b")) as q:
            write(p, "k", None, "of a")
            write(q, "k", None, "of b")
        one, two = e.node[0].file("a"), e.node[0].file("b")
        mixed = e.url("b").replace(two, one)
        with t.opened(mixed) as p:  # two of b, one of a: that one does not vote
            assert p.read("k").value == b"of b"
            status, said = admin("doctor", "--store", mixed)
            assert status == 1 and "another quorum" in said, said


def case_firnds_as_peers(folder):
    """Each is a cluster of one. One dies and comes back by itself; one that lost its disk is refused until admitted."""
    os.environ["FIRN_BIN_DIR"] = os.path.abspath(sys.argv[1])
    with t.running(QuorumRaft(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        e.kill(0)
        write(p, "n", None, "1")
        for n in range(5):
            write(p, "k", str(n), str(n + 1))
        e.restart(0)
        e.kill(1)
        t.wait_for("0 and 2 are a majority", lambda: p.read("k").value == b"5")
        e.restart(1)
        e.kill(2)
        shutil.rmtree(e.node[2].data(0))
        os.remove(e.node[2].data(0) + ".begun")  # no member is left: what its refusal to start would advise
        e.node[2].start()  # empty, and another incarnation
        status, said = admin("doctor", "--store", e.url())
        assert status == 1 and "refused" in said, said
        e.kill(1)
        a = p.read("n")
        assert a.result == "FIRN_EIO", f"one that missed it and one that forgot it are no majority: {a}"
        e.restart(1)
        t.wait_for("0 and 1 are a majority", lambda: p.read("n").value == b"1")
        status, said = admin("admit", e.node[2].url(), "--store", e.url())
        assert status == 0, said
        e.kill(0)
        t.wait_for("1 and the admitted one", lambda: p.read("k").value == b"5" and p.read("n").value == b"1")
        write(p, "k", "5", "6")
        e.restart(0)
    shutil.rmtree(folder, ignore_errors=True)


def case_one_round_trip(folder):
    """After the first change of a register each needs one script at each Redis."""
    with t.running(QuorumRedis(folder)) as e, t.opened(e.url()) as p:
        write(p, "k", None, "0")
        write(p, "k", "0", "1")

        def calls():
            info = [n.server.info("commandstats") for n in e.node]
            return [sum(int(v.split("calls=")[1].split(",")[0]) for k, v in i.items() if "eval" in k) for i in info]
        t.wait_for("all are quiet", lambda: (lambda a: (time.sleep(0.2), a == calls())[1])(calls()))
        before = calls()
        for n in range(1, 21):
            t.expect(p.cas("k", str(n), str(n + 1)), "0")
        t.wait_for("each did them all", lambda: [b - a for a, b in zip(before, calls())] == [20] * 3)


def case_a_full_init(folder):
    """1,024 slots by firn admin, in a sensible time: they go side by side."""
    with t.running(QuorumRedis(folder)) as e:
        start = time.monotonic()
        status, said = admin("init", "--fresh", "--store", e.url())
        assert status == 0, said
        print(f"    init of 1024 slots took {time.monotonic() - start:.1f} s")
        status, said = admin("doctor", "--store", e.url())
        assert status == 0, said
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    t.main([f for n, f in sorted(globals().items()) if n.startswith("case_")], Redis.missing())
