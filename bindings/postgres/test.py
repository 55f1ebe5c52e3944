#!/usr/bin/env python3
"""
Test of the PostgreSQL extension on temporary servers: pg_regress, the shared vectors, two servers on one store, a backend that
is killed. Usage: bindings/postgres/test.py BUILD/bin
The servers run from a copy of the installation with the extension in it: nothing is written to the system's folders.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration", "lib"), os.path.join(ROOT, "tests")]
import firnd as servers  # noqa: E402  pylint: disable=wrong-import-position
from engines import postgres as pg  # noqa: E402  pylint: disable=wrong-import-position

LIMIT = 180
MANY = "SELECT firn_id() FROM generate_series(1, 3000)"
with open(os.path.join(ROOT, "bindings", "vectors", "ids.json"), encoding="ascii") as f:
    VECTORS = json.load(f)
SYSTEM_TOOL = pg.tool


def tool(name):
    return os.path.join(TREE, "bin", name) if name == "postgres" else SYSTEM_TOOL(name)


def build():
    """The extension, and a PostgreSQL that has it: its folders are found from where the program is."""
    version = SYSTEM_TOOL("postgres").split("/")[4]
    made = os.path.join(TEST.dir, "made")
    shutil.copytree(HERE, made)
    os.environ["PATH"] = f"/usr/lib/postgresql/{version}/bin:{os.environ['PATH']}"
    done = subprocess.run(["make", "-s", "-C", made, f"FIRN_BUILD={os.path.dirname(TEST.bin)}", f"FIRN_TREE={ROOT}", "COPT=-Werror"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout
    tree, share = f"{TEST.dir}/usr/lib/postgresql/{version}", f"{TEST.dir}/usr/share/postgresql/{version}"
    for folder in (f"{tree}/bin", f"{tree}/lib", f"{share}/extension"):
        os.makedirs(folder)
    shutil.copy(SYSTEM_TOOL("postgres"), f"{tree}/bin/postgres")
    for frm, to in ((f"/usr/lib/postgresql/{version}/lib", f"{tree}/lib"), (f"/usr/share/postgresql/{version}", share),
                    (f"/usr/share/postgresql/{version}/extension", f"{share}/extension")):
        for name in os.listdir(frm):
            if name != "extension" and not name.startswith("firn"):
                os.symlink(os.path.join(frm, name), os.path.join(to, name))
    for name in glob.glob(f"{made}/firn*.so"):
        shutil.copy(name, f"{tree}/lib")
    for name in (f"{made}/firn.control", *glob.glob(f"{made}/firn--*.sql")):
        shutil.copy(name, f"{share}/extension")
    os.chmod(TEST.dir, 0o755)
    return tree


def server(name, store=None):
    s = pg.Server(os.path.join(TEST.dir, name), shared_preload_libraries="firn")
    s.settings["firn.store"] = store or f"postgres://{pg.USER}@127.0.0.1:{s.port}/postgres"
    s.create()
    s.start()
    return s


def init(s):
    subprocess.run([os.path.join(TEST.bin, "firn"), "admin", "init", "--fresh", "--store", s.settings["firn.store"]], check=True,
                   timeout=LIMIT, capture_output=True)


def ids(s):
    """IDs, once the server has a slot: it may have been started a moment ago."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return [int(i) for i in s.sql(MANY).split()]
        except RuntimeError as e:
            if time.monotonic() > end:
                raise AssertionError(f"{e}\n{s.log_end()}") from e
            time.sleep(0.5)


def case_without_store(s):
    s.sql("CREATE EXTENSION firn")
    try:
        raise AssertionError(s.sql("SELECT firn_id()"))
    except RuntimeError as e:
        assert "firn_id() has no ID" in str(e) and "firn admin init" in str(e), e
    s.sql("DROP EXTENSION firn")
    init(s)


def case_regress(s):
    s.sql("CREATE EXTENSION firn")
    ids(s)  # the slot is there
    s.sql("DROP EXTENSION firn")
    out = os.path.join(TEST.dir, "regress")
    os.mkdir(out)
    pg.give(out)
    run = glob.glob("/usr/lib/postgresql/*/lib/pgxs/src/test/regress/pg_regress")[-1]
    done = subprocess.run([*pg.as_postgres(), run, "--use-existing", f"--inputdir={TEST.dir}/made", f"--outputdir={out}",
                           f"--bindir={os.path.dirname(SYSTEM_TOOL('psql'))}", "--host=127.0.0.1", f"--port={s.port}",
                           f"--user={pg.USER}", "--dbname=postgres", "firn"], cwd=out, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    diffs = os.path.join(out, "regression.diffs")
    assert done.returncode == 0, done.stdout + (open(diffs, encoding="utf-8").read() if os.path.exists(diffs) else "")


def case_vectors(s):
    s.sql("CREATE EXTENSION IF NOT EXISTS firn")
    rows = []
    for row in VECTORS["codec64"]:
        value = int(row["value"])
        value -= (value >> 63) << 64
        rows += [f"firn_text({value}::bigint, '{c}') = '{t}' AND firn_parse('{t}', '{c}') = {value}::bigint" for c, t in row["texts"].items()]
    rows += [f"firn_time({r['id']}::bigint, '{r['layout']}') = to_timestamp({r['unix_ms']} / 1000.0)" for r in VECTORS["snowflake"]]
    for r in VECTORS["kinds"]:
        made = f"firn_time('{r['text']}'::text, '{r['kind']}')"
        rows.append(f"{made} IS NULL" if r["unix_ms"] is None else
                    f"round(extract(epoch FROM {made}) * 1000) = {r['unix_ms']}")
    got = s.sql("SELECT " + ", ".join(f"({r})::int" for r in rows)).split("|")
    assert set(got) == {"1"}, [r for r, g in zip(rows, got) if g != "1"]


def case_recipes(s):
    """The commands of docs/recipes.md: COPY with IDs of a firnd, a default, COPY with the default."""
    with open(os.path.join(ROOT, "docs", "recipes.md"), encoding="utf-8") as page:
        section = page.read().split("## PostgreSQL\n")[1].split("\n## ")[0]
    ids(s)  # the slot is there
    folder = os.path.join(TEST.dir, "recipes")
    os.mkdir(folder)
    with open(os.path.join(folder, "orders.csv"), "w", encoding="ascii") as rows:
        rows.writelines(f"2026-01-{day:02}\n" for day in range(1, 32))
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(s.port), "PGUSER": pg.USER, "PGDATABASE": "postgres",
           "PATH": f"{os.path.dirname(SYSTEM_TOOL('psql'))}:{os.environ['PATH']}"}
    said = ""
    with_ids = servers.Firnd(TEST, os.path.join(TEST.dir, "recipes-firnd")).wait_ready()
    try:
        for kind, text in re.findall(r"^```(sql|sh)[^\n]*\n(.*?)^```", section, re.S | re.M):
            command = ["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1"] if kind == "sql" else ["bash", "-euo", "pipefail"]
            done = subprocess.run(command, input=text.replace("127.0.0.1:9001", with_ids.snowflake), cwd=folder, env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
            assert done.returncode == 0, f"{text}{done.stdout}"
            said += done.stdout
    finally:
        with_ids.stop()
    assert "COPY 31" in said and "COPY 2" in said, said
    assert s.sql("SELECT count(*), count(DISTINCT id) FROM orders") == "31|31"
    assert s.sql("SELECT count(*), count(DISTINCT id), min(id) > 0 FROM events") == "3|3|t"


def case_standby(s):
    """It has no slot, and says so at once."""
    s.sql("CREATE EXTENSION IF NOT EXISTS firn")
    standby = pg.Server(os.path.join(TEST.dir, "standby"), shared_preload_libraries="firn")
    standby.clone(s, "standby")
    standby.start()
    try:
        raise AssertionError(standby.sql("SELECT firn_id()"))
    except RuntimeError as e:
        assert "a standby leases no slot" in str(e), e
    finally:
        standby.stop()


def case_servers_and_crashes(s):
    """Two servers lease from one database; backends at the same time; one is killed, so the server starts anew."""
    other = server("other", s.settings["firn.store"])
    try:
        for one in (s, other):
            one.sql("CREATE EXTENSION IF NOT EXISTS firn")
        got = ids(s) + ids(other)
        command = [SYSTEM_TOOL("psql"), "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", pg.USER, "-d", "postgres", "-c", MANY, "-p"]
        running = [subprocess.Popen([*command, str(one.port)], stdout=subprocess.PIPE, text=True) for one in (s, other) * 3]
        for p in running:
            got += map(int, p.communicate(timeout=LIMIT)[0].split())
        assert len(set(got)) == len(got) == 8 * 3000, (len(got), len(set(got)))
        slots = s.sql(f"SELECT count(DISTINCT firn_shard(i)) FROM unnest('{{{got[0]},{got[3000]}}}'::bigint[]) i")
        assert slots == "2", slots
        lease = [pid for pid in other.all_pids() if "firn lease" in open(f"/proc/{pid}/cmdline", encoding="utf-8").read()]
        assert len(lease) == 1, lease
        os.kill(lease[0], signal.SIGTERM)
        got += ids(other)  # of another worker
        victim = subprocess.Popen([*command[:-2], "SELECT firn_id(), pg_sleep(600)", "-p", str(other.port)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + LIMIT
        while not (pid := other.sql("SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND state = 'active'")):
            assert time.monotonic() < end and victim.poll() is None
            time.sleep(0.05)
        os.kill(int(pid), signal.SIGKILL)
        victim.wait(LIMIT)
        got += ids(other) + ids(s)
        other.end(signal.SIGKILL)  # the whole server
        other.start()
        got += ids(other)
        assert len(set(got)) == len(got) == 12 * 3000, (len(got), len(set(got)))
    finally:
        other.stop()


with servers.Test("postgres-extension") as TEST:
    TREE = build()
    pg.tool = tool
    SERVER = server("first")
    try:
        for name, case in list(globals().items()):
            if name.startswith("case_"):
                try:
                    case(SERVER)
                    TEST.check(True, name)
                except (AssertionError, OSError, ValueError, RuntimeError, subprocess.SubprocessError) as e:
                    TEST.check(False, f"{name}: {type(e).__name__} {e}")
    finally:
        SERVER.stop()
