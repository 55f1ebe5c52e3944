"""What the chaos tests share: engines by name, firnd on one of them, clients, and a count of what held."""
import importlib
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "integration", "lib")]
import check  # noqa: E402  pylint: disable=wrong-import-position
import firnd as lib  # noqa: E402  pylint: disable=wrong-import-position
import tickets  # noqa: E402  pylint: disable=wrong-import-position
import world  # noqa: E402  pylint: disable=wrong-import-position

WINDOW_S = 8.0
SLOTS = 64  # a crash takes one out of use for a while
ENGINES = {"etcd": "Etcd", "zookeeper": "ZooKeeper", "postgres": "Postgres", "redis": "Redis", "sqlite": "Sqlite",
           "quorum": "StrictRedis", "quorum-restart": "QuorumRedis", "quorum-sqlite": "QuorumSqlite", "raft": "Raft"}
TICKETS = "chaos"  # the sequence


class Count:
    """What held and what did not."""

    def __init__(self):
        self.passed = self.failed = 0
        self.lock = threading.Lock()

    def check(self, good, what):
        with self.lock:
            self.passed += bool(good)
            self.failed += not good
        if not good:
            print(f"FAILED: {what}", flush=True)
        return good


class File:
    """SQLite: one file for all; no connection to cut, no server to kill."""

    def __init__(self, folder, nodes=1):
        del nodes
        self.path, self.endpoints = os.path.join(folder, "firn.db"), []

    @staticmethod
    def missing():
        return None

    def start(self):
        pass

    def stop(self):
        pass

    def url(self, path="firn", endpoints=None):
        del path, endpoints
        return f"sqlite:{self.path}"


class Files:
    """A quorum of SQLite files: nothing to cut, but each can be locked for a while."""

    def __init__(self, folder, nodes=3):
        self.inner, self.endpoints, self.count = importlib.import_module("engines.quorum").QuorumSqlite(folder, nodes), [], nodes

    @staticmethod
    def missing():
        return None

    def __getattr__(self, name):
        return getattr(self.inner, name)


def engine(name, folder):
    """Not started yet."""
    kind = File if name == "sqlite" else Files if name == "quorum-sqlite" else getattr(
        importlib.import_module(f"engines.{name.split('-')[0]}"), ENGINES[name])
    missing = kind.missing()
    if missing:
        raise world.NotThere(missing)
    where = os.path.join(folder, "store")
    os.mkdir(where)
    os.chmod(where, 0o755)
    return kind(where, nodes=3)


def init(bin_dir, store, window_s=WINDOW_S):
    """A short window, so that a test can wait for its end."""
    slots = SLOTS if store.endpoints else 16  # all that an embedded store has
    world.run(os.path.join(bin_dir, "firn"), "admin", "init", "--store", store.url(), "--fresh", "--slots", str(slots),
              "--window", f"{window_s:.0f}s", "--max-drift", "2s", "--skew-max", "2s")


def is_ready(node):
    try:
        return lib.get(node.address(0), "/readyz")[0] == 200
    except (lib.Gone, lib.NotThere, OSError, ValueError, IndexError):
        return False


def firnd(net, i, folder, bin_dir, store, clock=True, store_ms=1000):
    """A node, not started yet."""
    url = store.url(endpoints=net.to_store(i, store.endpoints))
    state = os.path.join(folder, f"state-{i}")
    os.mkdir(state)

    def command(node):
        return [os.path.join(bin_dir, "firnd"), "--no-config", "--state-dir", state, "--store", url,
                "--store-timeout-ms", str(store_ms), "--name", f"node-{i}", "--loops", "2", "--log-level", "debug",
                "--listen-home", node.address(0), "--listen-snowflake", node.address(1),
                "--listen-ticket", node.address(2)]
    return world.Node(net, i, folder, command, is_ready, clock)


class Clients:
    """One process a node, each with a file of its own."""

    def __init__(self, folder, nodes, seed, timeout_s=3):
        self.paths = {n.i: os.path.join(folder, f"ids-{n.i}") for n in nodes}
        self.processes = [subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "client.py"), n.address(),
                                            self.paths[n.i], str(seed), str(timeout_s)], stdin=subprocess.DEVNULL)
                          for n in nodes]

    def end(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            try:
                p.wait(world.LIMIT)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.processes = []


class Tickets:
    """A process that takes gapless tickets from all nodes."""

    def __init__(self, folder, nodes, seed):
        world.wait_for("a gapless sequence", lambda: self._sequence(nodes[0]))
        self.path = os.path.join(folder, "tickets")
        self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "tickets.py"), self.path, str(seed), TICKETS,
                                         *(n.address(2) for n in nodes)], stdin=subprocess.DEVNULL)

    @staticmethod
    def _sequence(node):
        try:
            c = lib.Http(node.address(0))
            try:
                return c.post("/v1/sequences", {"name": TICKETS, "mode": "gapless", "start": "1"})[0] in (200, 201)
            finally:
                c.close()
        except (lib.Gone, lib.NotThere, OSError):
            return False

    def end(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(world.LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def judge(self, count):
        """(tickets, requests without one, holes)"""
        entries = tickets.read(self.path)
        wrong, holes = tickets.judge(entries, 1)
        for what in wrong:
            count.check(False, what)
        given = sum(e[3] is not None for e in entries)
        count.check(given > 100, f"enough tickets to tell anything: {given}")
        count.check(not wrong, "gapless tickets: none twice, and what is missing or late has its cause")
        return given, len(entries) - given, holes


def seen(*clients):
    return check.Seen({i: path for c in clients for i, path in c.paths.items()})


def table(rows):
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name:<{width}}  {value}")
    print(flush=True)


def describe(counter):
    return ", ".join(f"{n} x {what}" for what, n in sorted(counter.items())) or "none"
