"""
A cluster of firnds of our own, as a store: members on free loopback ports, in one folder, ended by their ids.

    e = Raft(folder, nodes=3)
    e.start() ... e.stop()
FIRN_BIN_DIR names the folder of firnd. `options` are more flags for every member. `tls` makes members and clients
speak it: {"ca": FILE, "cert": FILE, "key": FILE}, the certificate good for 127.0.0.1. `net` (chaos/world.py) gives each
member a network of its own, which can be cut. The peer protocol is spoken here once more (see src/store/raft_frame.h),
so that tests can look behind firn's back.
"""
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time
import urllib.parse

from engines.ports import free_ports

LIMIT = 180  # seconds in which a cluster serves, or never will
HELLO, WELCOME, READ, CAS, SCAN, IDENTITY, STATUS, CHANGE, REPLY, RAFT = range(1, 11)
JOIN, ADD, REMOVE, PROMOTE, TRANSFER = range(1, 6)

# For every firnd that is a member: what ThreadSanitizer cannot see of libuv.
SANITIZED = {"TSAN_OPTIONS": f"suppressions={os.path.splitext(os.path.abspath(__file__))[0]}.tsan"}


class RaftError(Exception):
    """A member that does not start, or an answer that is not one."""


def text(value):
    return b"\xff\xff" if value is None else struct.pack(">H", len(value)) + value


def take_text(body, at):
    n = struct.unpack_from(">H", body, at)[0]
    return (None, at + 2) if n == 0xffff else (body[at + 2:at + 2 + n], at + 2 + n)


def packed(what, body=b"", budget_ms=1000, number=7):
    """A whole frame."""
    return struct.pack(">IBBHIQ", 16 + len(body), what, 0, 0, budget_ms, number) + body


class Link:
    """A client of one member."""

    def __init__(self, address, timeout=30, tls=None):
        host, port = address.rsplit(":", 1)
        self.s = socket.create_connection((host, int(port)), timeout=timeout)
        if tls:
            context = ssl.create_default_context(cafile=tls["ca"])
            context.load_cert_chain(tls["cert"], tls["key"])
            self.s = context.wrap_socket(self.s, server_hostname=host)
        self.send(HELLO, b"firn\x01\x02" + bytes(8) + text(b""))
        if self.frame()[0] != WELCOME:
            raise RaftError("no welcome")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, what, body=b"", budget_ms=1000):
        self.s.sendall(packed(what, body, budget_ms))

    def take(self, n):
        got = b""
        while len(got) < n:
            some = self.s.recv(n - len(got))
            if not some:
                raise RaftError("closed")
            got += some
        return got

    def frame(self):
        n = struct.unpack(">I", self.take(4))[0]
        rest = self.take(n)
        return rest[0], rest[16:]

    def ask(self, what, body=b"", budget_ms=1000):
        """(result, the rest of the reply)"""
        self.send(what, body, budget_ms)
        kind, said = self.frame()
        if kind != REPLY:
            raise RaftError(f"frame {kind}")
        return struct.unpack_from(">i", said)[0], said[20:]

    def status(self, budget_ms=300, own=False):
        result, said = self.ask(STATUS, b"\2" if own else b"\0", budget_ms)
        if result:
            raise RaftError(f"status: {result}")
        return json.loads(said)

    def change(self, what, member=0, address="", budget_ms=20000):
        result, said = self.ask(CHANGE, struct.pack(">BQ", what, member) + text(address.encode()), budget_ms)
        if result:
            raise RaftError(f"change {what}: {result} {take_text(said, 0)[0]}")


class Raft:
    @staticmethod
    def firnd():
        return os.path.join(os.environ.get("FIRN_BIN_DIR", ""), "firnd")

    @staticmethod
    def missing():
        if not os.access(Raft.firnd(), os.X_OK):
            return "firnd is not there: build it, and name its folder in FIRN_BIN_DIR"
        p = subprocess.run([Raft.firnd(), "--no-config", "--store=raft:", "--check-config"], capture_output=True,
                           timeout=60, check=False)
        return None if p.returncode == 0 else p.stderr.decode().strip()

    def __init__(self, folder, nodes=3, options=(), tls=None, net=None):
        self.folder, self.nodes, self.options, self.tls = folder, nodes, tuple(options), tls
        self.net = net if net and net.separate else None
        if self.net:
            self.options += ("--cluster-plain",)
        if tls:
            self.options += ("--cluster-tls-ca", tls["ca"], "--cluster-tls-cert", tls["cert"], "--cluster-tls-key",
                             tls["key"])
        ports = free_ports(4 * nodes)
        hosts = [self.net.host(i) if self.net else "127.0.0.1" for i in range(nodes)]
        self.endpoints, self.home, self.snowflake, self.ticket = (
            [f"{h}:{p}" for h, p in zip(hosts, ports[k * nodes:])] for k in range(4))
        self.process = [None] * nodes
        self.env = {}  # more variables for members that are started

    # ---- the whole ----
    def start(self):
        """The first one makes the cluster, the others join it."""
        self.spawn(0, "--cluster-init", "--cluster-fresh")
        self.wait([0])
        for i in range(1, self.nodes):
            self.spawn(i, "--cluster-join", self.endpoints[0])
        self.members(self.nodes)
        self.wait(range(self.nodes))

    def stop(self):
        """Not politely: the data are thrown away or replaced."""
        self.kill()

    def url(self, path="firn", endpoints=None):
        where = f"raft://{','.join(endpoints or self.endpoints)}/{path}"
        if self.tls:
            where += "?tls=yes&" + "&".join(f"{k}={urllib.parse.quote(v)}" for k, v in self.tls.items())
        return where

    # ---- single members ----
    def pause(self, i=None):
        for n in self._which(i):
            if self.process[n]:
                self.process[n].send_signal(signal.SIGSTOP)
        end = time.monotonic() + LIMIT
        for n in self._which(i):
            while self.process[n] and not self._stands(self.process[n].pid):
                if time.monotonic() > end:
                    raise RaftError(f"member {n} does not stop")
                time.sleep(0.001)

    def resume(self, i=None):
        for n in self._which(i):
            if self.process[n]:
                self.process[n].send_signal(signal.SIGCONT)

    def kill(self, i=None):
        for n in self._which(i):
            if self.process[n]:
                self.process[n].kill()
                self.process[n].wait()
                self.process[n] = None

    def restart(self, i=None):
        for n in self._which(i):
            self.spawn(n)
        self.wait(self._which(i))

    def leader(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for i in range(self.nodes):
                said = self.glance(i) or {}
                for m in said.get("members", []):
                    if m["leader"] and said["state"] == "leader" and m["address"] in self.endpoints:
                        return self.endpoints.index(m["address"])
            time.sleep(0.02)
        raise RaftError("no member leads\n" + self.logs())

    def status(self, i):
        """The same, waited for: a busy member may take a while to answer."""
        end = time.monotonic() + LIMIT
        while not (said := self.glance(i)):
            if time.monotonic() > end:
                raise RaftError(f"member {i} does not tell its status\n{self.logs()}")
            time.sleep(0.02)
        return said

    def glance(self, i, own=False):
        """The leader's view by way of member i, or that member's own; None where it does not answer."""
        if not self.process[i] or self._state(self.process[i].pid) in "Tt":
            return None
        try:
            with Link(self.endpoints[i], tls=self.tls) as c:
                return c.status(own=own)
        except (OSError, RaftError, struct.error):
            return None

    # ---- the data ----
    def snapshot(self, to):
        """A copy of a follower's folder, taken while it does not run, as docs/cluster.md says."""
        i = (self.leader() + 1) % self.nodes
        before = self.status(i)["last_index"]
        end = time.monotonic() + LIMIT
        while not any(m["address"] == self.endpoints[i] and m.get("index", 0) >= before
                      for m in self.status(i)["members"]):
            if time.monotonic() > end:
                raise RaftError("the member does not catch up")
            time.sleep(0.02)
        self.kill(i)
        shutil.copytree(self.data(i), to)
        with open(os.path.join(to, "of"), "w", encoding="ascii") as f:
            f.write(str(i))
        self.restart(i)

    def restore(self, frm):
        """One member goes on with the copy, as another cluster; the others join it anew."""
        self.stop()
        for i in range(self.nodes):
            shutil.rmtree(self.data(i))
        with open(os.path.join(frm, "of"), encoding="ascii") as f:
            first = int(f.read())
        shutil.copytree(frm, self.data(first))
        self.spawn(first, "--cluster-restore")
        self.wait([first])
        for i in range(self.nodes):
            if i != first:
                self.spawn(i, "--cluster-join", self.endpoints[first])
        self.members(self.nodes, first)
        self.wait(range(self.nodes))

    def keys(self, path):
        prefix, behind, found = path.encode() + b"\0", None, []
        while True:
            said = self._ask(SCAN, bytes(8) + text(prefix) + text(behind))
            more, count = struct.unpack_from(">BI", said)
            at = 5
            for _ in range(count):
                behind, at = take_text(said, at)
                _, at = take_text(said, at)
                found.append(behind[len(prefix):].decode())
            if not more:
                return found

    def delete(self, path, key):
        key = path.encode() + b"\0" + (key.encode() if isinstance(key, str) else key)
        value, _ = take_text(self._ask(READ, bytes(8) + b"\1" + text(key)), 0)
        incarnation = self._ask(IDENTITY)
        said = self._ask(CAS, bytes(8) + incarnation + bytes(25) + struct.pack(">I", 1) + text(key) + text(value) + text(None))
        if said[4] and take_text(self._ask(READ, bytes(8) + b"\1" + text(key)), 0)[0] is not None:
            raise RaftError("changed meanwhile")  # and not by a first try whose answer was lost

    # ---- inside ----
    def _which(self, i):
        return range(self.nodes) if i is None else [i]

    def data(self, i):
        return os.path.join(self.folder, f"n{i}", "raft")

    @staticmethod
    def _state(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                return f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return "X"

    @staticmethod
    def _stands(pid):
        """Every thread has stopped, or is gone: the signal alone lets them finish what they are at."""
        folder = f"/proc/{pid}/task"
        for task in os.listdir(folder):
            try:
                with open(f"{folder}/{task}/stat", encoding="ascii", errors="replace") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] not in "TtZX":
                        return False
            except OSError:
                pass  # a thread that has just ended
        return True

    def spawn(self, i, *more):
        if self.process[i]:
            raise RaftError(f"member {i} runs already")
        args = [*(self.net.enter(i) if self.net else ()), self.firnd(), "--no-config", "--store=raft:", "--state-dir",
                os.path.join(self.folder, f"n{i}"),
                "--name", f"n{i}", "--cluster-listen", self.endpoints[i], "--listen-home", self.home[i],
                "--listen-snowflake", self.snowflake[i], "--listen-ticket", self.ticket[i], "--loops=1",
                *self.options, *more]
        env = {k: v for k, v in os.environ.items() if not k.startswith("FIRN_")} | self.env
        env |= SANITIZED
        with open(os.path.join(self.folder, f"n{i}.log"), "ab") as log:
            self.process[i] = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def wait(self, which):
        """Each answers a read that must be current, so there is a leader and a majority."""
        end = time.monotonic() + LIMIT
        for i in which:
            while not self._serves(i):
                if self.process[i].poll() is not None:
                    raise RaftError(f"member {i} ended with {self.process[i].returncode}\n{self.logs()}")
                if time.monotonic() > end:
                    raise RaftError(f"member {i} does not serve\n{self.logs()}")
                time.sleep(0.02)

    def _serves(self, i):
        try:
            with Link(self.endpoints[i], tls=self.tls) as c:
                return c.ask(IDENTITY)[0] == 0
        except (OSError, RaftError):
            return False

    def members(self, voters, by=0):
        """So many have a vote, and know that they have one."""
        end = time.monotonic() + LIMIT
        while not self._voting(voters, by):
            if time.monotonic() > end:
                raise RaftError(f"there are not {voters} voters\n{self.logs()}")
            for i, p in enumerate(self.process):
                if p and p.poll() is not None:
                    raise RaftError(f"member {i} ended with {p.returncode}\n{self.logs()}")
            time.sleep(0.02)

    def _voting(self, voters, by):
        seen = {m["address"] for m in (self.glance(by) or {}).get("members", []) if m["role"] == "voter"}
        return len(seen) == voters and all(
            any(m["address"] == e and m["role"] == "voter" for m in (self.glance(i, True) or {}).get("members", []))
            for i, e in enumerate(self.endpoints) if e in seen and self.process[i] and self._state(self.process[i].pid) not in "Tt")

    def _ask(self, what, body=b""):
        """Of any member that answers well; a cluster that looks for a leader is asked again."""
        end, why = time.monotonic() + LIMIT, None
        while time.monotonic() < end:
            for i in range(self.nodes):
                if not self.process[i] or self._state(self.process[i].pid) in "Tt":
                    continue
                try:
                    with Link(self.endpoints[i], tls=self.tls) as c:
                        why, said = c.ask(what, body, 5000)
                except (OSError, RaftError) as e:
                    why = e
                    continue
                if why == 0:
                    return said
            time.sleep(0.05)
        raise RaftError(f"request {what}: {why}")

    def log(self, i):
        with open(os.path.join(self.folder, f"n{i}.log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def logs(self):
        said = ""
        for i in range(self.nodes):
            try:
                with open(os.path.join(self.folder, f"n{i}.log"), encoding="utf-8", errors="replace") as f:
                    said += f"--- member {i}\n{f.read()[-1500:]}\n"
            except OSError:
                pass
        return said
