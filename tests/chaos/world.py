"""
Where the chaos happens: servers, each in a network namespace of its own, which a bridge joins to the test's; the store's
servers stay on the loopback of the test's namespace, and a relay on the bridge's address leads to them. A node is cut off
from its store, and only from that, by nftables in its own namespace.

Without the right to make namespaces everything is on plain loopback, and the relays, one a node, do the cutting.
"""
import asyncio
import glob
import os
import re
import signal
import subprocess
import sys
import threading
import time

from engines.ports import free_port

HUB = "10.77.0.1"
LIMIT = 180.0


class NotThere(Exception):
    """What was waited for did not come."""


def wait_for(what, check, limit=LIMIT):
    end = time.monotonic() + limit
    while True:
        said = check()
        if said:
            return said
        if time.monotonic() > end:
            raise NotThere(f"waited {limit:.0f} s for: {what}")
        time.sleep(0.02)


def run(*words):
    r = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    if r.returncode != 0:
        raise OSError(f"{' '.join(words)}: {r.stderr.strip()}")
    return r.stdout


# Network and processes of the test's own: no other process sees what it makes, and the kernel ends all of it with the test.
UNSHARE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def can_unshare():
    """None, or why there are no namespaces here."""
    script = ("ip link set lo up && ip link add name probe type veth peer name probe1 && ip link add probe2 type bridge "
              "&& nft add table inet probe")
    try:
        r = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=LIMIT,
                           check=False)
    except (OSError, subprocess.SubprocessError) as e:
        return str(e)
    return None if r.returncode == 0 else r.stderr.strip() or "unshare --net failed"


def again_inside(program, words):
    """This program once more, in namespaces; its exit status. With `unshare` the kernel ends all that it started."""
    again = subprocess.Popen([*UNSHARE, sys.executable, "-B", program, *words, "--inside"])
    try:
        return again.wait()
    finally:
        again.kill()
        again.wait()


class Relays:
    """Streams passed on to other addresses, on a thread of their own. A cut one holds everything back."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.open = {}  # whose: asyncio.Event

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LIMIT)

    def add(self, whose, host, port, target):
        self._do(self._add(whose, host, port, target))

    async def _add(self, whose, host, port, target):
        if whose not in self.open:
            self.open[whose] = asyncio.Event()
            self.open[whose].set()

        async def pump(reader, writer):
            try:
                while data := await reader.read(65536):
                    await self.open[whose].wait()
                    writer.write(data)
                    await writer.drain()
            except OSError:
                pass
            writer.close()

        async def accept(reader, writer):
            await self.open[whose].wait()
            try:
                r, w = await asyncio.open_connection(*target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(pump(reader, w), pump(r, writer), return_exceptions=True)
        await asyncio.start_server(accept, host, port)

    def cut(self, whose, is_cut):
        event = self.open.get(whose)
        if event:
            self.loop.call_soon_threadsafe(event.clear if is_cut else event.set)


class Net:
    """Places for `count` nodes, and the way from each to the store's endpoints."""

    def __init__(self, count, separate):
        self.separate, self.holders, self.relays = separate, [], Relays()
        self.ports = []  # of the store, as a node sees it
        if not separate:
            return
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "hub", "type", "bridge")
        run("ip", "addr", "add", f"{HUB}/16", "dev", "hub")
        run("ip", "link", "set", "hub", "up")
        for i in range(count):
            # The kernel ends the holder, and with it the namespace, when this test ends in whatever way.
            p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
            self.holders.append(p)
            mine = os.readlink("/proc/self/ns/net")

            def moved(pid=p.pid, before=mine):
                try:
                    return os.readlink(f"/proc/{pid}/ns/net") != before
                except OSError:
                    return False
            wait_for("a namespace", moved)
            run("ip", "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", str(p.pid))
            run("ip", "link", "set", f"v{i}", "master", "hub", "up")
            for words in (("ip", "link", "set", "lo", "up"), ("ip", "addr", "add", f"{self.host(i)}/16", "dev", "eth0"),
                          ("ip", "link", "set", "eth0", "up"), ("nft", "add", "table", "inet", "chaos"),
                          ("nft", "add chain inet chaos in { type filter hook input priority 0 ; }"),
                          ("nft", "add chain inet chaos out { type filter hook output priority 0 ; }")):
                run(*self.enter(i), *words)

    def host(self, i):
        return f"10.77.1.{i + 1}" if self.separate else "127.0.0.1"

    def enter(self, i):
        return ["nsenter", f"--net=/proc/{self.holders[i].pid}/ns/net", "--"] if self.separate else []

    def to_store(self, i, endpoints):
        """The store's endpoints for node i."""
        out = []
        for e in endpoints:
            host, port = e.rsplit(":", 1)
            if self.separate:
                if int(port) not in self.ports:
                    self.relays.add("store", HUB, int(port), (host, int(port)))
                    self.ports.append(int(port))
                out.append(f"{HUB}:{port}")
            else:
                mine = free_port()
                self.relays.add(i, "127.0.0.1", mine, (host, int(port)))
                out.append(f"127.0.0.1:{mine}")
        return out

    def cut(self, i, which=None):
        """Node i from the store, or from those of its endpoints whose numbers are in `which`."""
        if not self.separate:
            self.relays.cut(i, True)
            return
        ports = ",".join(str(p) for k, p in enumerate(self.ports) if which is None or k in which)
        run(*self.enter(i), "nft", f"add rule inet chaos out tcp dport {{ {ports} }} drop")
        run(*self.enter(i), "nft", f"add rule inet chaos in tcp sport {{ {ports} }} drop")

    def heal(self, i):
        if not self.separate:
            self.relays.cut(i, False)
            return
        for chain in ("in", "out"):
            run(*self.enter(i), "nft", "flush", "chain", "inet", "chaos", chain)

    def part(self, i, others, way="both"):
        """Nodes i and those others do not reach each other, until heal(i). One way: i does not hear ("in"), or is not
        heard ("out"). In namespaces alone."""
        hosts = ",".join(self.host(o) for o in others if o != i)
        for chain, field in (("in", "saddr"), ("out", "daddr")):
            if way in ("both", chain):
                run(*self.enter(i), "nft", f"add rule inet chaos {chain} ip {field} {{ {hosts} }} drop")

    def end(self):
        for p in self.holders:
            p.kill()
            p.wait()
        self.holders = []


class Clock:
    """The wall clock of one node, faked by libfaketime from a file; the monotonic one is real."""

    def __init__(self, path):
        found = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
        if not found:
            raise NotThere("libfaketime: install it")
        self.path, self.library = path, found[0]
        self.set(0)

    def preload(self, program):
        """A sanitizer's run time has to come first."""
        libs = [line.split()[2] for line in run("ldd", program).splitlines()
                if line.strip().startswith(("libasan", "libtsan", "libubsan")) and len(line.split()) > 2]
        return " ".join([*libs, self.library])

    def set(self, offset_s):
        with open(self.path + ".new", "w", encoding="ascii") as out:
            out.write(f"{offset_s:+.3f}\n")
        os.replace(self.path + ".new", self.path)

    def freeze(self):
        with open(self.path + ".new", "w", encoding="ascii") as out:
            out.write(time.strftime("%Y-%m-%d %H:%M:%S\n", time.localtime()))
        os.replace(self.path + ".new", self.path)

    def env(self, program):
        return {"LD_PRELOAD": self.preload(program), "FAKETIME_TIMESTAMP_FILE": self.path, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_NO_CACHE": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}


class Node:
    """One place, and the process that runs there now. `command(node)` is what to start."""

    def __init__(self, net, i, folder, command, ready, clock=True):
        self.net, self.i, self.folder, self.command, self.is_ready = net, i, folder, command, ready
        self.clock = Clock(os.path.join(folder, f"clock-{i}")) if clock else None
        self.process, self.logs, self.stopped = None, [], False
        self.lock = threading.RLock()  # one fault at a time
        self.ports = [9000, 9001, 9002] if net.separate else [free_port() for _ in range(3)]

    def address(self, which=1):
        return f"{self.net.host(self.i)}:{self.ports[which]}"

    def start(self):
        path = os.path.join(self.folder, f"node-{self.i}-{len(self.logs)}.log")
        self.logs.append(path)
        command = self.command(self)
        words = ["env", *(f"{k}={v}" for k, v in self.clock.env(command[0]).items())] if self.clock else []
        with open(path, "wb") as log:
            self.process = subprocess.Popen([*self.net.enter(self.i), *words, *command], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd=self.folder)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def ready(self):
        return self.alive() and self.is_ready(self)

    def signal(self, number):
        if self.alive():
            self.stopped = number == signal.SIGSTOP or (self.stopped and number != signal.SIGCONT)
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(LIMIT)
        self.stopped = False

    def stop(self):
        """SIGTERM; the exit status."""
        if self.process is None:
            return None
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def log(self):
        out = ""
        for path in self.logs:
            with open(path, encoding="utf-8", errors="replace") as f:
                out += f.read()
        return out

    def grants(self):
        """For each process that ran here: [(slot, from, until)] as its log tells them."""
        out = []
        for path in self.logs:
            with open(path, encoding="utf-8", errors="replace") as f:
                out.append([tuple(map(int, m)) for m in
                            re.findall(r"slot_granted slot=(\d+) from=(\d+) until=(\d+)", f.read())])
        return out
