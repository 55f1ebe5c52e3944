#!/usr/bin/env python3
"""
What is particular to PostgreSQL: a COMMIT that warns or does not end, promotion of a standby, a data directory put
back, settings that lose commits, locks of others, rights, TLS.
"""
import os
import signal
import subprocess
import sys
import threading
from concurrent import futures

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import store_cases as t  # noqa: E402  pylint: disable=wrong-import-position
from engines.postgres import Postgres, Server, give, tool, USER  # noqa: E402  pylint: disable=wrong-import-position


def set_to(server, name, value):
    server.sql(f"ALTER SYSTEM SET {name} = '{value}'")
    server.sql("SELECT pg_reload_conf()")
    t.wait_for(f"{name} = {value}", lambda: server.sql(f"SHOW {name}") == value)


def committing(server):
    """The backend that waits for a synchronous standby, once there is one."""
    return server.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'firn'")


def change(p, key, old):
    """Writes of numbers, one after the other, until one is not simply done: the server's processes learn of a setting one by one."""
    while True:
        answer = p.cas(key, str(old), str(old + 1))
        if not answer.ok:
            return answer, old
        old += 1


def session(server):
    return subprocess.Popen([tool("psql"), "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(server.port), "-U",
                             USER, "-d", "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def end(psql):
    psql.stdin.close()
    psql.wait()
    psql.stdout.close()


def case_commit_that_warns_is_unknown(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url(), 60000) as p:
        t.expect(p.cas("k", None, "1"), "0")
        set_to(e.server, "synchronous_standby_names", "nobody")
        cancel = threading.Thread(target=lambda: e.server.sql(
            f"SELECT pg_cancel_backend({t.wait_for('a COMMIT that waits', lambda: committing(e.server))})"))
        cancel.start()
        answer, old = change(p, "k", 1)
        cancel.join()
        t.expect(answer, "FIRN_EUNKNOWN", "COMMIT", "synchronous replication")
        assert p.read("k").value == b"%d" % (old + 1)  # here it did happen


def case_commit_without_end_is_unknown_and_lands_late(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url(), 1000) as p:
        t.expect(p.cas("k", None, "1"), "0")
        e.server.sql(f"ALTER ROLE {USER} SET statement_timeout = '200ms'")  # must not cut a COMMIT short
        t.expect(p.reopen(), "0")
        e.server.sql(f"ALTER ROLE {USER} RESET statement_timeout")
        set_to(e.server, "synchronous_standby_names", "nobody")
        a, old = change(p, "k", 1)
        t.expect(a, "FIRN_EUNKNOWN", "in time")
        assert 900 <= a.ms, a
        assert p.read("k").value == b"%d" % old
        set_to(e.server, "synchronous_standby_names", "")
        t.wait_for("the write to land", lambda: p.read("k").value == b"%d" % (old + 1))
        t.expect(p.cas("k", str(old), "x"), "FIRN_ECONFLICT")


def case_promoted_standby_is_another_store(folder):
    primary, standby = Server(folder + "/a"), Server(folder + "/b")
    primary.create()
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    try:
        primary.start()
        standby.clone(primary, "b")
        standby.start()
        t.open_fails(f"postgres://{USER}@127.0.0.1:{standby.port}/postgres", "FIRN_EIO", "read-only")
        with t.opened(f"postgres://{USER}@{hosts}/postgres", 10000) as p:
            before = p.identity().value
            t.expect(p.cas("k", None, "1"), "0")
            t.wait_for("the standby to have it",
                       lambda: standby.sql("SELECT to_regclass('firn')") and standby.sql("SELECT count(*) FROM firn") == "1")
            primary.end(9)
            t.expect(p.cas("k", "1", "2"), "FIRN_EIO")
            standby.sql("SELECT pg_promote()")
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE", ":00000002:")
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
            assert p.read("k").value == b"1"
            after = p.identity().value
            assert after != before and b":00000002:" in after, after
            t.expect(p.cas("k", "1", "2"), "0")
    finally:
        standby.stop()
        primary.stop()


def case_restart_is_the_same_store(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url()) as p:
        before = p.identity().value
        t.expect(p.cas("k", None, "1"), "0")
        e.restart()
        t.expect(p.cas("k", "1", "2"), "0")
        e.kill()
        t.expect(p.cas("k", "2", "3"), "FIRN_EIO")
        e.restart()
        t.expect(p.cas("k", "2", "3"), "0")
        assert p.identity().value == before


def case_data_put_back_is_noticed(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        os.mkdir(folder + "/copy")
        e.snapshot(folder + "/copy")
        for i in range(1, 4):
            t.expect(p.cas("k", str(i), str(i + 1)), "0")
        e.restore(folder + "/copy")
        assert p.read("k").value == b"1"
        t.expect(p.cas("k", "1", "x"), "FIRN_ESTORE", "older")
        t.expect(p.cas("k", "1", "x"), "FIRN_ESTORE")
        t.expect(p.identity(), "0")
        t.expect(p.cas("k", "1", "x"), "0")


def case_table_of_another_life_is_noticed(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        e.server.sql("CREATE TABLE spare (LIKE firn INCLUDING ALL); INSERT INTO spare SELECT * FROM firn; DROP TABLE firn")
        t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
        t.expect(p.identity(), "FIRN_ESTORE", "gone")
        e.server.sql("ALTER TABLE spare RENAME TO firn")
        t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
        t.expect(p.identity(), "0")
        t.expect(p.cas("k", "1", "2"), "0")
        e.server.sql("ALTER TABLE firn RENAME TO spare; CREATE TABLE firn (LIKE spare INCLUDING ALL)")
        t.expect(p.cas("k", "2", "3"), "FIRN_ESTORE")
        e.server.sql("DROP TABLE firn; ALTER TABLE spare RENAME TO firn")
        t.expect(p.cas("k", "2", "3"), "FIRN_ESTORE")  # the right one again, but that is for others to judge
        t.expect(p.identity(), "0")
        t.expect(p.cas("k", "2", "3"), "0")
        e.server.sql("DROP TABLE firn; CREATE UNLOGGED TABLE firn (key text COLLATE \"C\" PRIMARY KEY, value bytea)")
        t.open_fails(e.url(), "FIRN_ENOTSUP", "SET LOGGED")


def case_fsync_off_is_refused(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        set_to(e.server, "fsync", "off")
        t.open_fails(e.url(), "FIRN_ENOTSUP", "fsync = on")
        t.expect(p.cas("k", "1", "2"), "FIRN_EIO", "fsync = on")
        set_to(e.server, "fsync", "on")
        t.expect(p.cas("k", "1", "2"), "0")


def case_commits_are_synchronous_whatever_the_default(folder):
    """synchronous_commit=off would answer before the flush; here the wait for a standby shows that it is on."""
    with t.running(Postgres(folder, synchronous_commit="off")) as e, t.opened(e.url(), 1000) as p:
        t.expect(p.cas("k", None, "1"), "0")
        set_to(e.server, "synchronous_standby_names", "nobody")
        t.expect(p.cas("k", "1", "2"), "FIRN_EUNKNOWN")


def case_lock_of_another_ends_in_time(folder):
    with t.running(Postgres(folder)) as e, t.opened(e.url(), 700) as p:
        t.expect(p.cas("k", None, "1"), "0")
        t.expect(p.cas("l", None, "1"), "0")
        other = session(e.server)
        try:
            other.stdin.write(b"BEGIN; SELECT 'locked' FROM firn WHERE key = 'k' FOR UPDATE;\n")
            assert other.stdout.readline() == b"locked\n"
            t.expect(p.cas("k", "1", "2"), "FIRN_EIO")
            t.expect(p.many(("l", "1", "2"), ("k", "1", "2")), "FIRN_EIO")
            t.expect(p.cas("l", "1", "3"), "0")
        finally:
            end(other)
        assert p.read("k").value == b"1"
        t.expect(p.cas("k", "1", "2"), "0")


def case_a_paused_client_does_not_keep_its_locks(folder):
    """It is stopped between its write and its COMMIT; PostgreSQL ends its transaction, and it finds that out."""
    with t.running(Postgres(folder)) as e, t.opened(e.url(), 30000) as p, t.opened(e.url(), 30000) as q:
        t.expect(p.cas("k", None, "1"), "0")
        other = session(e.server)
        try:
            other.stdin.write(b"BEGIN; SELECT 'locked' FROM firn WHERE key = 'k' FOR UPDATE;\n")
            assert other.stdout.readline() == b"locked\n"
            p.send("cas", "k", "1", "2")
            t.wait_for("the write to wait", lambda: e.server.sql(
                "SELECT 1 FROM pg_stat_activity WHERE application_name = 'firn' AND wait_event_type = 'Lock'"))
            p.process.send_signal(signal.SIGSTOP)
        finally:
            end(other)
        t.wait_for("the write to wait for its COMMIT", lambda: e.server.sql(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'firn' AND state = 'idle in transaction'"))
        t.expect(q.cas("k", "1", "3"), "0")
        p.process.send_signal(signal.SIGCONT)
        a = p.answer()
        assert a.result in ("FIRN_EUNKNOWN", "FIRN_EIO"), a
        assert p.read("k").value == b"3"


def case_groups_do_not_lock_each_other_out(folder):
    """Two that write the same registers in opposite order, again and again; every second time they also make some."""
    with t.running(Postgres(folder)) as e, t.opened(e.url(), 20000) as a, t.opened(e.url(), 20000) as b:
        # Rows enough that each key is looked up by itself, in the order in which it was named.
        e.server.sql("INSERT INTO firn SELECT 'x' || n, 'x' FROM generate_series(1, 20000) n")
        e.server.sql("ANALYZE firn")
        keys = [f"k{i:03}" for i in range(240)]
        t.expect(a.many(*[(k, None, "0") for k in keys]), "0")
        for i in range(60):
            want = [(k, str(i), str(i + 1)) for k in keys]
            want += [(f"new{i}.{n}", None, "x") for n in range(i % 2 * 10)]
            for p, order in ((a, want), (b, want[::-1])):
                p.send("many", *[word for triple in order for word in triple])
            won = []
            for p in (a, b):
                answer = p.answer()
                t.expect(answer, "0")
                won.append(answer.results.count("0"))
            assert sorted(won) == [0, len(want)], won  # the first lock decides all


def case_only_the_rights_it_needs(folder):
    with t.running(Postgres(folder)) as e:
        url = e.url().replace(USER + "@", "plain:secret%40@")
        e.server.sql("CREATE ROLE plain LOGIN PASSWORD 'secret@'")
        t.open_fails(url, "FIRN_EIO", "permission denied")
        with t.opened(e.url()):
            e.server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON firn TO plain")
        with t.opened(url) as p:
            t.expect(p.cas("k", None, "1"), "0")
            t.expect(p.cas("k", "1", None), "0")


def case_many_open_a_new_store_at_once(folder):
    with t.running(Postgres(folder)) as e:
        for i in range(4):
            with futures.ThreadPoolExecutor(6) as pool:
                probes = list(pool.map(lambda _, table=f"t{i}": t.probe(e.url(table), 20000), range(6)))
            try:
                for p in probes:
                    t.expect(p.opened, "0")
                assert sorted(p.cas("k", None, "1").result for p in probes) == ["0"] + ["FIRN_ECONFLICT"] * 5
            finally:
                for p in probes:
                    p.close()


def case_hosts_that_are_away_or_silent(folder):
    with t.running(Postgres(folder)) as e:
        stopped = Postgres(folder + "/other")
        with t.running(stopped):
            stopped.pause()
            hosts = ["127.0.0.1:1", *stopped.endpoints, *e.endpoints]
            with t.opened(e.url(endpoints=hosts), 3000) as p:
                t.expect(p.cas("k", None, "1"), "0")
            t.open_fails(e.url(endpoints=hosts[:1]), "FIRN_EIO", "refused")
            t.open_fails(e.url(endpoints=hosts[1:2]), "FIRN_EIO", "in time")
            stopped.resume()


def case_urls_that_are_wrong(folder):
    with t.running(Postgres(folder)) as e:
        host = e.endpoints[0]
        t.open_fails(f"postgres://{USER}@{host}/", "FIRN_EFORMAT", "database")
        t.open_fails(f"postgres://{USER}@{host}/postgres?table=a%22;b", "FIRN_EFORMAT", "table=")
        t.open_fails(f"postgres://{USER}@{host}/none", "FIRN_EIO", "does not exist")
        e.server.sql("CREATE SCHEMA s")
        with t.opened(f"postgres://{USER}@{host}/postgres?table=s.T1") as p:
            t.expect(p.cas("k", None, "1"), "0")
        assert e.server.sql('SELECT count(*) FROM s."T1"') == "1"


def case_tls(folder):
    os.mkdir(folder + "/tls")
    cert, key = t.certificate(folder + "/tls")
    give(folder + "/tls")
    os.chmod(folder + "/tls", 0o755)
    other, _ = t.certificate(folder, "other")
    with t.running(Postgres(folder, ssl="on", ssl_cert_file=cert, ssl_key_file=key)) as e:
        with t.opened(e.url() + f"&sslmode=verify-full&sslrootcert={cert}") as p:
            t.expect(p.cas("k", None, "1"), "0")
            said = e.server.sql("SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'firn'")
            assert said == "t", said
        t.open_fails(e.url() + f"&sslmode=verify-full&sslrootcert={other}", "FIRN_EIO", "certificate verify failed")


t.main([f for n, f in list(globals().items()) if n.startswith("case_")], Postgres.missing())
