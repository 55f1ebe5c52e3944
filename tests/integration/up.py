#!/usr/bin/env python3
"""
firn up: three servers, a balancer and a client on one machine. It must come up, say what runs where, go on when one
of them dies, and leave nothing behind, however it ends.
"""
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "deploy"))
from firnd import LIMIT, Gone, NotThere, Resp, Test, get, wait_for  # noqa: E402
from world import free_base  # noqa: E402


class Up:
    """One firn up. Output goes to files, or `terminal`: standard output is one."""

    def __init__(self, t, *args, base=None, terminal=False):
        self.t = t
        self.base = base or free_base()
        self.out_path, self.err_path = (os.path.join(t.dir, f"up-{self.base}.{k}") for k in ("out", "err"))
        self.said = b""
        self.master = None
        env = {**os.environ, "TMPDIR": t.dir, "FIRN_STORE": "memory:", "FIRN_LIMITS_CONNECTIONS": "1"}  # not for these
        command = [os.path.join(t.bin, "firn"), "up", "--port", str(self.base), *args]
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            slave = None
            if terminal:
                self.master, slave = pty.openpty()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave or out, stderr=err, env=env)
            if slave:
                os.close(slave)
        t.running.append(self)
        self.pid = self.process.pid
        self.seen = set()

    def out(self):
        if self.master is not None:
            while select.select([self.master], [], [], 0)[0]:
                try:
                    more = os.read(self.master, 65536)
                except OSError:  # the other side is closed
                    break
                if not more:
                    break
                self.said += more
            return self.said.decode(errors="replace").replace("\r\n", "\n")
        with open(self.out_path, encoding="utf-8") as f:
            return f.read()

    def err(self):
        with open(self.err_path, encoding="utf-8") as f:
            return f.read()

    def log(self):
        return self.out() + self.err()

    def wait_said(self, what, of=None):
        def look():
            found = re.search(what, (of or self.out)())
            if not found and self.process.poll() is not None:
                raise NotThere(f"firn up ended with {self.process.returncode}: {self.log()}")
            return found
        return wait_for(f"firn up to say {what}", look)

    def pids(self):
        """Of everything that the table names, and their children."""
        pids = {int(p) for p in re.findall(r"127\.0\.0\.1:\d+ +(\d+)", self.out())}
        for p in list(pids):
            try:
                with open(f"/proc/{p}/task/{p}/children", encoding="ascii") as f:
                    pids |= {int(c) for c in f.read().split()}
            except OSError:
                pass
        self.seen |= pids
        return pids

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as f:
            return {int(c) for c in f.read().split()}

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self, number=None):
        if number:
            self.signal(number)
        code = self.process.wait(LIMIT)
        self.t.running.remove(self)
        self.out()
        if self.master is not None:
            os.close(self.master)
            self.master = None
        return code

    def kill(self):  # when a test broke down: those that it started end with it
        self.signal(signal.SIGTERM)
        try:
            self.end()
        except subprocess.TimeoutExpired:
            self.end(signal.SIGKILL)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def nothing_left(t, up, what):
    t.check(len(up.seen) >= 3, f"{what}: the table names processes: {up.seen}")
    try:
        wait_for("all of them to end", lambda: not any(alive(p) for p in up.seen))
        t.check(True, what)
    except NotThere:
        t.check(False, f"{what}: left behind: {[p for p in up.seen if alive(p)]}")


def folders(t):
    return [n for n in os.listdir(t.dir) if n.startswith("firn-up-")]


def once(t):
    for balancer in ("haproxy", "nginx", "none"):
        up = Up(t, "--once", "--rounds", "5", "--balancer", balancer)
        up.wait_said("Starting ID generation client")
        up.pids()
        t.equal(up.end(), 0, f"{balancer}: exit status: {up.log()}")
        lines = up.out().splitlines()
        first = lines.index("Starting ID generation client...")
        t.equal(lines[first + 1], "Generating IDs from Snowflake and Ticket Server:", "the second line")
        rounds = [re.fullmatch(r"Snowflake ID: (\d+), Ticket ID: (\d+)", x) for x in lines[first + 2:first + 7]]
        if t.check(all(rounds), f"five rounds: {lines[first:]}"):
            t.equal(len({r[1] for r in rounds}), 5, "distinct Snowflake IDs")
            t.equal([r[2] for r in rounds], [str(100001 + i) for i in range(5)], "tickets")
        t.equal(lines[first + 7:], ["ID generation completed.", "All stopped."], "the end")
        for n in (1, 2, 3):
            for port in (1, 2):
                t.check(f"http://127.0.0.1:{up.base + 10 * n + port} " in up.out(), f"member {n}'s port {port} is shown")
        t.check(up.out().count("\n    curl ") == 1 and "redis-cli -p " in up.out() and "kill -9 " in up.out(),
                "three commands to try")
        t.equal(balancer in up.out(), balancer != "none", f"the table has {balancer}")
        t.equal(up.err(), "", "standard error")
        nothing_left(t, up, f"{balancer}: nothing is left")
        t.equal(folders(t), [], "the temporary folder is gone")


def dies(t):
    """One is killed: the others serve, it comes back; then Ctrl-C."""
    up = Up(t, "--rounds", "1", "--balancer", "haproxy")
    up.wait_said("ID generation completed")
    pids = up.pids()
    victim = int(re.search(r"generator 2 .*?127\.0\.0\.1:\d+ +(\d+)", up.out())[1])
    t.check(victim in pids, "the generator's process")
    os.kill(victim, signal.SIGKILL)
    got = {get(f"127.0.0.1:{up.base + 1}", "/generate")[1]["id"] for _ in range(20)}
    t.equal(len(got), 20, "IDs by way of the balancer while one is dead")
    c = Resp(f"127.0.0.1:{up.base + 3}")
    t.equal([c.do("INCR", "orders") for _ in range(3)], [1, 2, 3], "tickets by the Redis protocol")
    c.close()
    t.check(up.wait_said(r"node2 ended by signal 9", up.err), "it says that one died")
    again = int(up.wait_said(r"node2 runs again, pid (\d+)", up.err)[1])
    up.seen.add(again)

    def ready():
        try:
            return get(f"127.0.0.1:{up.base + 20}", "/readyz")[0] == 200
        except (Gone, OSError):
            return False
    t.check(wait_for("it to be ready again", ready), "it is ready again")
    up.seen |= up.children()
    t.equal(up.end(signal.SIGINT), 0, f"exit status: {up.log()}")
    nothing_left(t, up, "nothing is left after Ctrl-C")
    t.equal(folders(t), [], "the temporary folder is gone")


def ends_badly(t):
    """Killed itself; or told to end while it starts, or in the moment in which one of its own died."""
    for balancer in ("haproxy", "nginx"):
        up = Up(t, "--rounds", "1", "--balancer", balancer)
        up.wait_said("ID generation completed")
        up.pids()
        up.seen |= up.children()
        up.end(signal.SIGKILL)
        nothing_left(t, up, f"{balancer}: nothing is left after kill -9")

    up = Up(t, "--rounds", "1")
    up.wait_said("ID generation completed")
    for p in up.pids():
        if alive(p):
            os.kill(p, signal.SIGKILL)
    up.signal(signal.SIGTERM)
    t.equal(up.end(), 0, f"exit status when all died: {up.log()}")
    nothing_left(t, up, "nothing is left when all died")

    up = Up(t)
    wait_for("the first to be started", up.children)
    up.seen |= up.children()
    t.equal(up.end(signal.SIGINT), 0, f"exit status when interrupted early: {up.log()}")
    t.check(not any(alive(p) for p in up.seen), "nothing is left when interrupted early")


def refuses(t):
    base = free_base()
    for offset in (1, 12, 33):
        with socket.create_server(("127.0.0.1", base + offset)):
            up = Up(t, "--once", base=base)
            t.equal(up.end(), 2, f"exit status with a port taken: {up.log()}")
            t.check(f"port {base + offset}: " in up.err() and "--port" in up.err(), f"cause and cure: {up.err()}")
            t.equal(up.out(), "", "nothing on standard output")
    for args, what in ((["--balancer", "traefik"], "haproxy, nginx or none"), (["now"], "unexpected operand"),
                       (["--port", "80"], "--port"), (["--state", "/proc/firn"], "--state")):
        up = Up(t, "--once", *args)
        t.equal(up.end(), 2, f"exit status of {args}")
        t.check(what in up.err(), f"{args}: {up.err()}")
    # A server that cannot start: its own words, and where its log is.
    up = Up(t, "--once", "--store", "nonsense://x/y")
    t.equal(up.end(), 2, "exit status with a store that is none")
    t.check("node1 ended with status" in up.err() and "nonsense" in up.err() and "1.log" in up.err(), up.err())


def state(t):
    folder = t.state("up-state/deep")
    last, base = None, free_base()
    for i in range(2):
        up = Up(t, "--once", "--rounds", "2", "--state", folder, base=base)
        up.wait_said("Starting ID generation client")
        up.pids()
        if i == 0:
            other = Up(t, "--once", "--state", folder)
            t.equal(other.end(), 2, "exit status of a second one in the same folder")
            t.check("another firn up runs in" in other.err(), other.err())
        t.equal(up.end(), 0, f"exit status: {up.log()}")
        ids = [tuple(map(int, x)) for x in re.findall(r"Snowflake ID: (\d+), Ticket ID: (\d+)", up.out())]
        t.check(last is None or ids[0][1] == last[1] + 1, f"tickets go on: {last} {ids}")
        last = ids[-1]
        t.check(f"the state stays in {folder}" in up.out(), "where the state is")
    up = Up(t, "--once", "--rounds", "2", "--store", f"sqlite:{t.state('shared.db')}", "--balancer", "none")
    up.wait_said("Starting ID generation client")
    up.pids()
    t.equal(up.end(), 0, f"exit status on one SQLite file: {up.log()}")


def lost(t):
    """A member's folder is gone while the others have theirs: it joins them, and no second cluster begins."""
    folder, base, tickets, ids = t.state("up-lost"), free_base(), [], []
    for gone in (None, "1", "1", "3"):
        if gone:
            shutil.rmtree(os.path.join(folder, gone))
            os.remove(os.path.join(folder, f"{gone}.log"))
        up = Up(t, "--once", "--rounds", "3", "--balancer", "none", "--state", folder, base=base)
        up.wait_said("Starting ID generation client")
        up.pids()
        t.equal(up.end(), 0, f"exit status after {gone} was lost: {up.log()}")
        for snowflake, ticket in re.findall(r"Snowflake ID: (\d+), Ticket ID: (\d+)", up.out()):
            ids.append(int(snowflake))
            tickets.append(int(ticket))
    t.equal(tickets, list(range(tickets[0], tickets[0] + 12)), "tickets go on, none twice and none left out")
    t.equal(len(set(ids)), 12, "distinct Snowflake IDs")
    for n in (1, 2, 3):
        with open(os.path.join(folder, f"{n}.log"), encoding="utf-8") as f:
            t.check("init_still_set" not in f.read(), f"no cluster.init is left with member {n}")

    for n in ("1", "2"):  # a majority: the rest cannot know what it had agreed on
        shutil.rmtree(os.path.join(folder, n))
    up = Up(t, "--once", "--rounds", "3", "--balancer", "none", "--state", folder, base=base)
    t.equal(up.end(), 2, f"exit status when a majority is gone: {up.log()}")
    t.check("node1 has no data" in up.err() and "docs/cluster.md" in up.err(), f"cause and cure: {up.err()}")
    t.check("Ticket ID" not in up.out(), f"no ticket: {up.out()}")


def watched(t):
    """On a terminal there is a line that lives."""
    up = Up(t, "--rounds", "0", terminal=True)
    up.wait_said(r"\r\x1b\[K4 of 4 ready  round [1-9]\d*  Snowflake \d+  ticket \d+")
    up.pids()
    os.kill(int(re.search(r"generator 3 .*?127\.0\.0\.1:\d+ +(\d+)", up.out())[1]), signal.SIGKILL)
    t.check(up.wait_said(r"node3 DOWN  3 of 4 ready  round [1-9]\d*  Snowflake \d+"), "one is down")
    up.seen |= up.children()
    t.equal(up.end(signal.SIGINT), 0, "exit status")
    nothing_left(t, up, "nothing is left")


def stranger(t):
    """Another firnd, on a store of its own, answers on a member's port and uses the slot of another member."""
    up = Up(t, "--rounds", "1", "--balancer", "none")
    up.wait_said("ID generation completed")
    up.pids()
    slot = get(f"127.0.0.1:{up.base + 10}", "/v1/node")[1]["slot"]
    command = [os.path.join(t.bin, "firnd"), "--no-config", "--state-dir", os.path.join(t.dir, "stranger"), "--worker-id", str(slot),
               "--listen-home", f"127.0.0.1:{up.base + 30}", "--listen-snowflake", "127.0.0.1:0", "--listen-ticket", "127.0.0.1:0"]
    env = {**os.environ, "FIRN_TEST_MACHINE": "stranger"}

    def takes_the_port():
        """Between the end of the member and its next start, five seconds later; a busy machine may miss them."""
        for pid in up.children():
            with open(f"/proc/{pid}/cmdline", encoding="ascii") as f:
                if f"127.0.0.1:{up.base + 30}" in f.read():
                    os.kill(pid, signal.SIGKILL)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            return process
        return None
    process = wait_for("the stranger to run", takes_the_port)
    try:
        said = up.wait_said(rf"node1 and what answers on port {up.base + 30} both use slot {slot}: IDs come twice", up.err)
        t.check(said, "it is told")
    finally:
        process.kill()
        process.wait()
    up.seen |= up.children()
    t.equal(up.end(signal.SIGINT), 0, f"exit status: {up.log()}")
    nothing_left(t, up, "nothing is left")


def main():
    with Test("up") as t:
        began = time.monotonic()
        for section in (once, dies, ends_badly, refuses, state, lost, watched, stranger):
            t.section(section)
        t.say(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
