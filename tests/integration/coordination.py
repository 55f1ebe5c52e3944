#!/usr/bin/env python3
"""
firn elect, lock, config and nodes as real processes on real stores: a file, a cluster of three etcd, an
ensemble of three ZooKeeper, PostgreSQL, Redis. Leaders are killed, stopped and cut off from the store.

The commands append their fencing token to a file, again and again. What must hold, whatever happens: in that
file no token is followed by a lower one, so no two commands ever ran at the same time.
    coordination.py FOLDER-WITH-THE-BINARIES [ENGINE...] [SECTION...]
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, os.path.dirname(HERE))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines.etcd import Etcd  # noqa: E402  pylint: disable=wrong-import-position
from engines.postgres import Postgres  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Redis  # noqa: E402  pylint: disable=wrong-import-position
from engines.sqlite import Sqlite  # noqa: E402  pylint: disable=wrong-import-position
from engines.zookeeper import ZooKeeper  # noqa: E402  pylint: disable=wrong-import-position

ENGINES = {"sqlite": Sqlite, "etcd": Etcd, "zookeeper": ZooKeeper, "postgres": Postgres, "redis": Redis}
CLUSTERS = ("etcd", "zookeeper")
TTL = "4s"
LOCKERS = 12
INCREMENTS = 4

# Appends "TOKEN PID"; the second kind does not listen to SIGTERM.
WORKER = 'while :; do echo "$FIRN_FENCING_TOKEN $$" >>"$0" || exit; sleep 0.02; done'
STUBBORN = "trap '' TERM; " + WORKER


class World:
    """One store and the processes on it."""

    def __init__(self, test, name):
        self.test = test
        self.name = name
        self.folder = test.state(name)
        os.mkdir(self.folder)
        data = os.path.join(self.folder, "data")
        os.mkdir(data)
        self.engine = ENGINES[name](data, nodes=3)
        self.running = []
        self.count = 0
        self.files = 0
        self.env = {**os.environ}

    def start(self):
        self.engine.start()
        self.env["FIRN_STORE"] = self.engine.url("coord")

    def stop(self):
        self.end_all()
        self.engine.stop()

    def end_all(self):
        for p in self.running:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.wait()
        self.running = []

    def file(self):
        self.files += 1
        return os.path.join(self.folder, f"tokens-{self.files}")

    def firn(self, *args):
        """Start firn; what it says is kept."""
        self.count += 1
        path = os.path.join(self.folder, f"firn-{self.count}.log")
        with open(path, "wb") as log:
            p = subprocess.Popen([os.path.join(self.test.bin, "firn"), *args], env=self.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=log)
        p.log_path = path
        self.running.append(p)
        return p

    def run(self, *args):
        """Run firn to its end: (status, what it printed)."""
        p = self.firn(*args)
        out, _ = p.communicate(timeout=f.LIMIT)
        self.look_at(p)
        return p.returncode, out.decode()

    def look_at(self, p):
        with open(p.log_path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        for word in f.BAD_WORDS:
            self.test.check(word not in text, f"firn's log has {word}: {text[:2000]}")

    def end(self, p, number=signal.SIGTERM):
        p.send_signal(number)
        p.wait(timeout=f.LIMIT)
        self.look_at(p)
        return p.returncode


def tokens(path):
    """[(token, pid)] in the order of the file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as lines:
        return [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]


def last(path):
    found = tokens(path)
    return found[-1] if found else (0, 0)


def in_order(t, path, what):
    seen = [token for token, _ in tokens(path)]
    back = [(a, b) for a, b in zip(seen, seen[1:]) if b < a]
    t.check(seen and not back, f"{what}: no token is followed by a lower one: {back[:3]} in {len(seen)} lines")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def wait_leader(path, above=0):
    """The (token, pid) of a command that writes with a token above `above`."""
    f.wait_for(f"a leader with a token above {above}", lambda: last(path)[0] > above)
    return last(path)


def leading(ps, path):
    """(token, pid, its firn) of the command that runs now: on a busy machine it need not be the one that was seen last."""
    def look():
        token, pid = last(path)
        try:
            return (token, pid, ps[parent(parent(pid))]) if token else None
        except (OSError, KeyError):
            return None
    return f.wait_for("a leader that runs", look)


def candidates(w, election, path, n=3, script=WORKER):
    """Processes by pid that stand for it, and the first leader's (token, pid)."""
    ps = [w.firn("elect", election, "--ttl", TTL, "--name", f"{election}-{i}", "--", "sh", "-c", script, path)
          for i in range(n)]
    first = wait_leader(path)

    def standing():
        status, out = w.run("nodes", "--json")
        return status == 0 and sum(m["name"].startswith(election + "-") for m in json.loads(out)) == n
    f.wait_for("all of them to be there", standing)  # the others may have come later
    return {p.pid: p for p in ps}, first


# --- the parts ---


def lock_is_exclusive(t, w):
    path = w.file()
    inside = path + ".inside"
    script = f'mkdir {inside} || exit 9; echo "$FIRN_FENCING_TOKEN $$" >>{path}; sleep 0.02; rmdir {inside}'
    # A store that has just begun is slow on a busy machine.
    f.wait_for("the store to serve", lambda: w.run("lock", "exclusive", "--ttl", "20s", "--", "true")[0] == 0)
    ps = [w.firn("lock", "exclusive", "--ttl", "20s", "--", "sh", "-c", script) for _ in range(LOCKERS)]
    for p in ps:
        t.equal(p.wait(timeout=f.LIMIT * 2), 0, "status of firn lock")
        w.look_at(p)
    seen = [token for token, _ in tokens(path)]
    t.equal(len(seen), LOCKERS, "times that the lock was held")
    t.check(all(a < b for a, b in zip(seen, seen[1:])), f"tokens rise: {seen}")
    status, out = w.run("nodes", "--json")
    t.equal((status, json.loads(out)), (0, []), "all have left")


def statuses(t, w):
    path = w.file()
    t.equal(w.run("lock", "st", "--", "sh", "-c", "exit 7")[0], 7, "the command's status")
    t.equal(w.run("lock", "st", "--", "sh", "-c", "kill -9 $$")[0], 137, "a command that was killed")
    t.equal(w.run("lock", "st", "--", "/nowhere/at/all")[0], 127, "a command that is not there")
    holder = w.firn("lock", "st", "--name", "holder", "--", "sh", "-c", WORKER, path)
    token, pid = wait_leader(path)
    t.equal(w.run("lock", "st", "--wait", "0", "--", "true")[0], 75, "a lock that is held, tried once")
    t.equal(w.run("lock", "st", "--wait", "300ms", "--", "true")[0], 75, "a lock that is held, for a while")
    status, out = w.run("nodes", "--json")
    found = [n for n in json.loads(out) if n["name"] == "holder"]
    t.check(status == 0 and len(found) == 1 and found[0]["kind"] == "lock" and found[0]["state"] == "up",
            f"firn nodes shows the holder: {out}")
    t.equal(w.end(holder), 143, "SIGTERM goes to the command, and its status comes back")
    f.wait_for("the end of the command", lambda: not alive(pid))
    t.equal(w.run("lock", "st", "--wait", "20s", "--", "sh", "-c", f"test $FIRN_FENCING_TOKEN -gt {token}")[0], 0,
            "free again, with a higher token")
    t.equal(w.run("lock", "bad name", "--", "true")[0], 2, "a name that is none")
    in_order(t, path, "lock")


def leader_ends_politely(t, w):
    path = w.file()
    ps, _ = candidates(w, "polite", path)
    token, pid, leader = leading(ps, path)
    w.end(leader)
    t.check(not alive(pid), "the command ended before firn did")
    wait_leader(path, token)
    in_order(t, path, "polite end")


def leader_is_killed(t, w):
    path = w.file()
    ps, _ = candidates(w, "killed", path, script=STUBBORN)
    for _ in range(2):
        token, pid, leader = leading(ps, path)
        leader.kill()
        leader.wait()
        wait_leader(path, token)
        t.check(not alive(pid), "the command of the killed one ended, though it does not listen to SIGTERM")
    in_order(t, path, "kill -9")


def runner_is_killed(t, w):
    """Not firn but the process between it and the command: the kernel ends the command, and firn gives up."""
    path = w.file()
    ps, _ = candidates(w, "runner", path, n=2, script=STUBBORN)
    token, pid, leader = leading(ps, path)
    os.kill(parent(pid), signal.SIGKILL)
    t.equal(leader.wait(timeout=f.LIMIT), 76, "status without a runner")
    wait_leader(path, token)
    t.check(not alive(pid), "the command ended")
    in_order(t, path, "the runner killed")


def leader_is_stopped(t, w):
    """SIGSTOP past the ttl: of firn alone, then of everything that it started."""
    path = w.file()
    ps, _ = candidates(w, "stopped", path, script=STUBBORN)
    for everything in (False, True):
        token, pid, leader = leading(ps, path)
        runner = parent(pid)
        stop = [leader.pid] + ([runner, pid] if everything else [])
        for one in stop:
            os.kill(one, signal.SIGSTOP)
        higher, _ = wait_leader(path, token)
        if not everything:
            t.check(not alive(pid), "firn stands still, its command ended all the same")
        t.check(alive(leader.pid), "the old leader is there, and does not know")
        for one in stop[:2]:  # the command itself is not continued: it must be ended, not asked
            os.kill(one, signal.SIGCONT)
        f.wait_for("the end of the old command", lambda p=pid: not alive(p))
        t.check(higher > token, "the new leader's token is higher")
    # The candidate that was stopped stands in line again.
    for _ in range(3):
        token, _, leader = leading(ps, path)
        del ps[leader.pid]
        w.end(leader, signal.SIGKILL)
        if ps:
            wait_leader(path, token)
    t.equal(len(ps), 0, "candidates that never led again")
    in_order(t, path, "SIGSTOP")


def store_is_away(t, w):
    path = w.file()
    ps, _ = candidates(w, "away", path, script=STUBBORN)
    # It must know that it has the lock, not only stand in the store: until then it waits, as long as it takes.
    held = w.file()
    holder = w.firn("lock", "away-lock", "--ttl", TTL, "--", "sh", "-c", WORKER, held)
    wait_leader(held)
    token, pid, _ = leading(ps, path)
    w.engine.pause()
    try:
        f.wait_for("the end of the command while the store is away", lambda: not alive(pid))
        t.equal(holder.wait(timeout=f.LIMIT), 76, "a lock that was lost")
        t.equal(last(path)[0], token, "no candidate leads without the store")
    finally:
        w.engine.resume()
    wait_leader(path, token)
    t.check(all(p.poll() is None for p in ps.values()), "all candidates are still there")
    in_order(t, path, "store away")


def node_dies(t, w):
    """One of three servers, the leading one."""
    if w.name not in CLUSTERS:
        return
    path = w.file()
    _, (token, pid) = candidates(w, "nodedies", path)
    i = w.engine.leader()
    w.engine.kill(i)
    before = len(tokens(path))
    f.wait_for("work after the loss of a server", lambda: len(tokens(path)) > before + 50)
    w.engine.restart(i)
    p = w.firn("lock", "nodedies-lock", "--", "true")
    t.equal(p.wait(timeout=f.LIMIT), 0, "a lock after the restart")
    t.check(token > 0 and pid > 0, "there was a leader")
    in_order(t, path, "a server lost")


def store_is_restored(t, w):
    """An old copy is restored while all run: the candidates go on, with higher tokens."""
    if w.name == "redis":
        return  # a restored Redis is another server: tests/store has what its store says then
    path = w.file()
    copy = path + ".copy"
    ps, _ = candidates(w, "restored", path)
    w.engine.snapshot(copy)
    for i in range(2):  # tokens that the copy does not know
        token, _, leader = leading(ps, path)
        leader.kill()
        p = w.firn("elect", "restored", "--ttl", TTL, "--name", f"later-{i}", "--", "sh", "-c", WORKER, path)
        ps[p.pid] = p
        token, _ = wait_leader(path, token)
        f.wait_for("it to be there", lambda i=i: f"later-{i}" in w.run("nodes", "--json")[1])
    w.engine.restore(copy)
    wait_leader(path, token)
    in_order(t, path, "a restored store")


def config_values(t, w):
    t.equal(w.run("config", "get", "limit")[0], 1, "never set")
    watcher = w.firn("config", "watch", "limit", "--json")
    t.equal(w.run("config", "set", "limit", "0", "--if-revision", "0")[0], 0, "set")
    t.equal(w.run("config", "set", "limit", "0", "--if-revision", "0")[0], 1, "it is set already")
    done = [0, 0, 0]

    def increment(i):
        while done[i] < INCREMENTS:
            status, out = w.run("config", "get", "limit", "--json")
            if status != 0:
                continue  # the store did not answer in time
            now = json.loads(out)
            status, out = w.run("config", "set", "limit", str(int(now["value"]) + 1), "--if-revision",
                                str(now["revision"]))
            done[i] += status == 0

    threads = [threading.Thread(target=increment, args=(i,)) for i in range(len(done))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = str(INCREMENTS * len(done))
    t.equal(w.run("config", "get", "limit"), (0, want + "\n"), "no increment was lost")
    seen, end = [], time.monotonic() + f.LIMIT
    while (not seen or seen[-1]["value"] != want) and time.monotonic() < end:
        seen.append(json.loads(watcher.stdout.readline()))
    t.check(all(a["revision"] < b["revision"] for a, b in zip(seen, seen[1:])), f"the watcher saw it rise: {seen}")
    t.equal(seen[-1]["value"], want, "what the watcher saw last")
    value = "a line\nand \"another\": ü\n"
    t.equal(w.run("config", "set", "text", "--", value)[0], 0, "lines and quotes")
    t.equal(w.run("config", "get", "text"), (0, value), "come back as they were")
    t.equal(w.run("config", "watch", "text", "--once", "--", "sh", "-c", 'printf %s "$FIRN_CONFIG_VALUE"'), (0, value),
            "and into a command's environment")
    t.equal(w.run("config", "set", "text", "x" * 769)[0], 2, "too long")
    watcher.kill()


def servers_are_members(t, w):
    """firnd on the same file as the commands; what it shows is what firn shows."""
    if w.name != "sqlite":
        return
    servers = [f.Firnd(t, w.folder + "/firnd").wait_ready() for _ in range(2)]
    store = f"sqlite:{w.folder}/firnd/firn.db"

    def shown():
        nodes = f.get(servers[0].home, "/v1/nodes")[1]["nodes"]
        return nodes if len(nodes) == 2 else None

    nodes = f.wait_for("both servers in the list", shown)
    t.equal([n["kind"] for n in nodes], ["firnd"] * 2, "kinds")
    t.equal(sorted(n["address"].split(",")[0] for n in nodes), sorted(s.home for s in servers), "addresses")
    t.equal([n["address"].split(",")[0] for n in nodes if n["self"]], [servers[0].home], "the one that was asked")
    t.equal(sorted(int(n["slots"]) for n in nodes), sorted(s.node()["slot"] for s in servers), "slots")
    status, out = w.run("nodes", "--store", store, "--json")
    t.equal((status, sorted(n["address"] for n in json.loads(out))), (0, sorted(n["address"] for n in nodes)),
            "firn nodes")
    status, out = w.run("nodes", "--url", f"http://{servers[0].home}/")
    t.equal((status, len(out.splitlines())), (0, 3), "firn nodes --url")
    status, out = w.run("nodes", "--url", f"http://{servers[0].home}", "--json")
    t.equal((status, len(json.loads(out)["nodes"])), (0, 2), "firn nodes --url --json")
    status, out = w.run("lock", "beside", "--store", store, "--", "true")
    t.equal(status, 0, "a lock in a server's own file")
    t.equal(servers[1].stop(), 0, "a polite end")
    status, out = w.run("nodes", "--store", store, "--json")
    t.equal(len(json.loads(out)), 1, "members after one has left")
    listen = {"home": servers[0].home, "snowflake": servers[0].snowflake, "ticket": servers[0].ticket}
    servers[0].kill()
    again = f.Firnd(t, w.folder + "/firnd", listen=listen).wait_ready()
    again.wait_log("member_up")
    for what, said in (("firn nodes", json.loads(w.run("nodes", "--store", store, "--json")[1])),
                       ("/v1/nodes", f.get(again.home, "/v1/nodes")[1]["nodes"])):
        t.equal([n["address"].split(",")[0] for n in said], [again.home], f"{what} lists a server that was started again once")
    t.equal(len(json.loads(w.run("nodes", "--all", "--store", store, "--json")[1])) >= 2, True, "--all lists both runs")
    t.equal(again.stop(), 0, "a polite end of the other")


def node_forks(t, w):
    """A program with libfirn-node on a store that machines share: its child leases a slot of its own."""
    store = w.engine.url("forks")
    if "://" not in store:
        return
    t.equal(w.run("admin", "init", "--fresh", "--slots", "8", "--store", store)[0], 0, "firn admin init")
    example = os.path.join(os.path.dirname(t.bin), "examples", "example_node")
    done = subprocess.run([example, store], capture_output=True, text=True, timeout=f.LIMIT, check=False)
    slots = re.findall(r"(parent|child): [0-9]+ on slot ([0-9]+), active", done.stdout)
    t.check(done.returncode == 0 and len(slots) == 2 and slots[0][1] != slots[1][1],
            f"parent and child on slots of their own: {done.stdout} {done.stderr}")


def outside(t, only):
    for name in ENGINES:
        if only and name not in only:
            continue
        missing = ENGINES[name].missing()
        if missing:
            t.check(False, f"{name}: {missing}")
            continue
        w = World(t, name)
        try:
            w.start()
            print(f"--- {name}", flush=True)
            for part in (lock_is_exclusive, statuses, leader_ends_politely, leader_is_killed, runner_is_killed,
                         leader_is_stopped, store_is_away, node_dies, config_values, servers_are_members, node_forks,
                         store_is_restored):
                failed = t.failed
                t.section(part, w)
                if t.failed > failed:
                    for p in w.running:
                        with open(p.log_path, encoding="utf-8", errors="replace") as log:
                            print(f"--- {p.args[1:4]} status {p.poll()}: {log.read()[-500:]}")
                w.end_all()
        finally:
            w.stop()


with f.Test("coordination") as test:
    engines = [word for word in test.only if word in ENGINES]
    test.only = [word for word in test.only if word not in ENGINES]
    outside(test, engines)
