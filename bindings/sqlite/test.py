#!/usr/bin/python3
"""
Test of the SQLite extension in sqlite3(1) and in Python's sqlite3, on the shared vectors. Usage: bindings/sqlite/test.py BUILD/bin
Debian's Python runs it: others are often built without loading of extensions.
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration", "lib"))
import firnd as servers  # noqa: E402  pylint: disable=wrong-import-position

LIMIT = 180
with open(os.path.join(ROOT, "bindings", "vectors", "ids.json"), encoding="ascii") as f:
    VECTORS = json.load(f)


def connect(file=":memory:"):
    db = sqlite3.connect(file, isolation_level=None, timeout=LIMIT)
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    db.enable_load_extension(False)
    return db


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


def refused(db, sql, *args):
    try:
        got = db.execute(sql, args).fetchall()
    except sqlite3.DatabaseError as e:
        return str(e)
    raise AssertionError(f"{sql} {args} gave {got}")


def cli(file, *sql):
    return subprocess.Popen(["sqlite3", "-batch", "-cmd", f".load {EXTENSION}", "-cmd", f".timeout {LIMIT * 1000}", file, *sql],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said(process):
    out = process.communicate(timeout=LIMIT)[0]
    assert process.returncode == 0, out
    return out.split()


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def utc(unix_ms):
    """SQLite's own writing of a time; it knows none after the year 9999."""
    if unix_ms == (1 << 48) - 1:
        return "10889-08-02 05:31:50.655"
    return one(connect(), "SELECT strftime('%Y-%m-%d %H:%M:%S', ?, 'unixepoch')", unix_ms // 1000) + f".{unix_ms % 1000:03}"


def case_vectors():
    db = connect()
    for row in VECTORS["codec64"]:
        for codec, text in row["texts"].items():
            value = signed(int(row["value"]))
            assert one(db, "SELECT firn_text(?, ?)", value, codec) == text, (row, codec)
            assert one(db, "SELECT firn_parse(?, ?)", text, codec) == value, (row, codec)
    for row in VECTORS["codec128"]:
        for codec, text in row["texts"].items():
            value = int(row["value"]).to_bytes(16, "big")
            assert one(db, "SELECT firn_text(?, ?)", value, codec) == text, (row, codec)
            assert one(db, "SELECT firn_parse(?, ?, 128)", text, codec) == value, (row, codec)
    for row in VECTORS["snowflake"]:
        assert one(db, "SELECT firn_time(?, ?)", int(row["id"]), row["layout"]) == utc(row["unix_ms"]), row
    for row in VECTORS["kinds"]:
        want = None if row["unix_ms"] is None else utc(row["unix_ms"])
        assert one(db, "SELECT firn_time(?, ?)", row["text"], row["kind"]) == want, row
        if row["kind"] == "ulid" or row["kind"].startswith("uuid"):
            assert one(db, "SELECT firn_time(?)", row["text"]) == want, row
    for row in VECTORS["refused"]:
        refused(db, "SELECT firn_time(?, ?)", row["text"], row["kind"])
    assert one(db, "SELECT firn_shard(11637205501278089, 'instagram')") == 11637205501278089 >> 10 & 8191
    assert one(db, "SELECT firn_shard(1541815603606036480, 'twitter')") == 1541815603606036480 >> 12 & 1023


def case_arguments():
    db = connect()
    for sql in ("firn_text(NULL, 'hex')", "firn_parse(NULL, 'hex')", "firn_time(NULL)", "firn_shard(NULL)"):
        assert one(db, f"SELECT {sql}") is None, sql
    for sql, part in (("firn_text(1, 'base63')", "there are decimal, hex"), ("firn_parse('?', 'hex')", "FIRN_EFORMAT"),
                      ("firn_text('1', 'hex')", "integer"), ("firn_parse('1', 'hex', 7)", "64 or 128"),
                      ("firn_time('1')", "kind"), ("firn_time(1.5)", "CAST"), ("firn_time(1, 'nowhere')", "FIRN_E"),
                      ("firn_shard(-1)", "no field"), ("firn_ticket('')", "name"), ("firn_open(NULL)", "URL"),
                      ("firn_open('memory:')", "one process"), ("firn_open('nowhere://x')", "FIRN_EFORMAT")):
        assert part in refused(db, f"SELECT {sql}"), (sql, refused(db, f"SELECT {sql}"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", one(db, "SELECT firn_version()"))
    made = [u for u, in db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) "
                                   "SELECT firn_uuid7() FROM n UNION ALL SELECT firn_ulid() FROM n")]
    assert len(set(made)) == 2000 and made[:1000] == sorted(made[:1000]) and made[1000:] == sorted(made[1000:])


def case_flags():
    """What a schema may call: pure functions always and in an index, firn_id() while it is trusted, firn_open() never."""
    db = connect()
    db.execute("CREATE TABLE t(id BIGINT PRIMARY KEY DEFAULT (firn_id()), u TEXT DEFAULT (firn_uuid7()), x)")
    db.execute("CREATE INDEX by_time ON t(firn_time(id))")
    db.execute("INSERT INTO t(x) VALUES (1), (2)")
    assert "by_time" in str(db.execute("EXPLAIN QUERY PLAN SELECT * FROM t WHERE firn_time(id) > '2026'").fetchall())
    assert "non-deterministic" in refused(db, "CREATE INDEX wrong ON t(firn_id())")
    assert "non-deterministic" in refused(db, "CREATE INDEX wrong ON t(firn_uuid7())")
    db.execute("CREATE VIEW v AS SELECT firn_open('sqlite:never') FROM t")
    assert "unsafe use" in refused(db, "SELECT * FROM v")
    db.execute("CREATE TABLE t2(u TEXT DEFAULT (firn_uuid7()), x)")
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("INSERT INTO t2(x) VALUES (1)")
    assert "unsafe use" in refused(db, "INSERT INTO t(x) VALUES (3)")


def case_ids():
    """Threads, processes and one that is killed, on the default store of this user."""
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT firn_id() FROM n"
    got, wrong = [], []

    def thread():
        try:
            db = connect()
            ids = [i for i, in db.execute(many)]
            db.close()
            assert ids == sorted(ids)
            got.extend(ids)
        except (AssertionError, sqlite3.Error) as e:
            wrong.append(e)
    threads = [threading.Thread(target=thread) for _ in range(3)]
    victim = subprocess.Popen(["sqlite3", "-batch", "-cmd", f".load {EXTENSION}"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    victim.stdin.write("SELECT firn_id();\n")
    victim.stdin.flush()
    got.append(int(victim.stdout.readline()))
    others = [cli(":memory:", many) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for p in others:
        got += map(int, said(p))
    slots = {one(connect(), "SELECT firn_shard(?)", i) for i in got}
    assert not wrong, wrong
    assert len(slots) >= 3, f"processes that run at the same time have slots of their own, not {slots}"
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    got += map(int, said(cli(":memory:", many)))
    assert len(set(got)) == len(got) == 1 + 6 * 5000
    assert os.path.exists(os.path.join(STATE, "firn", "slots"))


def case_a_store_of_ones_own():
    url = f"sqlite:{TEST.dir}/other"
    slot, again, of_id = said(cli(":memory:", f"SELECT firn_open('{url}'); SELECT firn_open('{url}'); SELECT firn_shard(firn_id())"))
    assert slot == again == of_id and os.path.exists(f"{TEST.dir}/other")
    os.environ["FIRN_STORE"] = f"sqlite:{TEST.dir}/by-environment"
    said(cli(":memory:", "SELECT firn_id()"))
    os.environ["FIRN_STORE"] = "sqlite:/nowhere/at/all"
    p = cli(":memory:", "SELECT firn_id()")
    out = p.communicate(timeout=LIMIT)[0]
    assert p.returncode != 0 and "firn_id: " in out and "/nowhere/at/all" in out, out
    del os.environ["FIRN_STORE"]
    assert os.path.exists(f"{TEST.dir}/by-environment")


def case_fork():
    db = connect()
    one(db, "SELECT firn_id()")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, refused(connect(), "SELECT firn_id()").encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert "FIRN_EFORKED" in text and "first one in the child" in text, text
    one(db, "SELECT firn_id()")


def case_tickets():
    file = os.path.join(TEST.dir, "tickets.db")
    db = connect(file)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE invoice(no INT UNIQUE DEFAULT (firn_ticket('invoice')), x INT NOT NULL)")
    db.execute("INSERT INTO invoice(x) VALUES (1), (2)")
    db.execute("BEGIN")
    assert one(db, "INSERT INTO invoice(x) VALUES (3) RETURNING no") == 3
    db.execute("ROLLBACK")
    assert "NOT NULL" in refused(db, "INSERT INTO invoice(x) VALUES (NULL)")
    assert one(db, "INSERT INTO invoice(x) VALUES (4) RETURNING no") == 3, "a number that was rolled back comes again"
    writers = [cli(file, "; ".join(["INSERT INTO invoice(x) VALUES (5)"] * 100)) for _ in range(3)]
    for w in writers:
        said(w)
    assert [n for n, in db.execute("SELECT no FROM invoice ORDER BY no")] == list(range(1, 304))
    assert one(db, "SELECT firn_ticket('other')") == 1
    db.execute("UPDATE firn_tickets SET last = 9223372036854775807 WHERE name = 'other'")
    assert "CHECK" in refused(db, "SELECT firn_ticket('other')"), "it ends, and does not become a float"
    db.close()
    locker, late = connect(file), sqlite3.connect(file, isolation_level=None, timeout=0)
    late.enable_load_extension(True)
    late.load_extension(EXTENSION)
    locker.execute("BEGIN IMMEDIATE")
    assert "locked" in refused(late, "SELECT firn_ticket('invoice')")


def case_install():
    subprocess.run(["make", "-s", "-C", HERE, f"FIRN_BUILD={BUILD}", f"OUT={TEST.dir}", "install", f"DESTDIR={TEST.dir}/root",
                    "PREFIX=/usr"], check=True, timeout=LIMIT)
    assert os.path.exists(f"{TEST.dir}/root/usr/lib/sqlite3/firn.so")


with servers.Test("sqlite") as TEST:
    BUILD, STATE, EXTENSION = os.path.dirname(TEST.bin), os.path.join(TEST.dir, "state"), os.path.join(TEST.dir, "firn.so")
    os.environ.pop("FIRN_STORE", None)
    os.environ["XDG_STATE_HOME"] = STATE
    subprocess.run(["make", "-s", "-C", HERE, f"FIRN_BUILD={BUILD}", f"OUT={TEST.dir}", "CFLAGS=-O2 -g -Werror"], check=True,
                   timeout=LIMIT)
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            try:
                case()
                TEST.check(True, name)
            except (AssertionError, OSError, ValueError, sqlite3.Error, subprocess.SubprocessError) as e:
                TEST.check(False, f"{name}: {type(e).__name__} {e}")
