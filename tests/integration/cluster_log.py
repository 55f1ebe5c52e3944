#!/usr/bin/env python3
"""
A cluster's log and snapshots: who was away catches up, a disk is full, another one lies, and nobody counts what a leader
never showed to be common.
"""
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from cluster_world import Cluster, Load, SEQ  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position

INSTALLS = 2


def catches_up(t):
    """Members that were away for longer than the log reaches back get a snapshot each time, while others write on."""
    with Cluster(t, "catches_up", 3, "--cluster-snapshot-every=60", "--cluster-snapshot-keep=8") as c:
        c.start()
        c.sequence()
        load = Load(c)
        for away in (0, 1, 2, 0):
            c.kill(away)
            load.wait(100)
            c.restart(away)

            def near(other=(away + 1) % 3):
                said = c.glance(other) or {}
                seen = [m.get("index", 0) for m in said.get("members", [])]
                return len(seen) == 3 and min(seen) + 60 > said["last_index"]
            f.wait_for(f"member {away} to have what the others have", near)
        load.end()
        load.check(t)


def alone_with_a_snapshot(t):
    """The others end while a member stores the snapshot that it was sent: it waits until it has it, and goes on."""
    with Cluster(t, "install", 3, "--cluster-election-ms=150", "--cluster-snapshot-every=50", "--cluster-snapshot-keep=10") as c:
        c.start()
        c.sequence()
        c.fill(400)
        for _ in range(INSTALLS):
            late = (c.leader() + 1) % 3
            c.kill(late)
            load = Load(c)
            load.wait(120)
            load.end()
            log = os.path.join(c.data(late), "log")
            before = set(os.listdir(log))
            c.spawn(late)
            end = time.monotonic() + f.LIMIT
            while not any("snapshot" in n or n.startswith("tmp") for n in set(os.listdir(log)) - before):
                if time.monotonic() > end or c.process[late].poll() is not None:
                    raise f.NotThere("a snapshot of the leader's")
            c.process[late].send_signal(signal.SIGSTOP)
            for i in range(3):
                if i != late:
                    c.kill(i)
            time.sleep(0.7)  # more than any election's time
            c.resume(late)
            f.wait_for("it to look for a leader, or to end", lambda m=late: c.process[m].poll() is not None or
                       (c.glance(m) or {}).get("state") == "candidate")
            if not t.check(c.process[late].poll() is None, f"it lives on: {c.process[late].returncode}"):
                return
            for i in range(3):
                if i != late:
                    c.spawn(i)
            c.wait(range(3))


class Pretender:
    """Speaks as another member: frames of type RAFT, each a message as src/raft/core/message.c writes it."""

    VOTE, VOTED, APPEND, APPENDED = range(1, 5)
    PRE, OK = 1, 4
    HEAD = ">BBBB9Q3I"  # version, type, flags, 0; from, to, term, index, index_term, commit, round, ...; entries, ...

    def __init__(self, c, who):
        self.c, self.address = c, c.endpoints[who]
        self.ids = [int(c.id_of(i), 16) for i in range(c.nodes)]
        self.member = self.ids[who]
        self.links, self.ended = [], threading.Event()
        self.has = self.sent = 0

    def __enter__(self):
        host, port = self.address.rsplit(":", 1)
        self.listener = socket.create_server((host, int(port)))
        self.listener.settimeout(f.LIMIT)
        return self

    def __exit__(self, *_):
        self.ended.set()
        for s in [self.listener, *self.links]:
            s.close()

    def dial(self, to):
        s = socket.create_connection(self.c.endpoints[to].rsplit(":", 1), timeout=f.LIMIT)
        self.links.append(s)
        s.sendall(raft.packed(raft.HELLO, b"firn\x02\x01" + struct.pack(">Q", self.member) + raft.text(self.address.encode())))
        self.take(s, 20)
        return s

    @staticmethod
    def take(s, n):
        got = b""
        while len(got) < n:
            some = s.recv(n - len(got))
            if not some:
                raise f.Gone("closed")
            got += some
        return got

    def say(self, s, to, kind, flags, *numbers):
        """numbers: term, index, index_term, commit, round, as many as there are."""
        numbers += (0,) * (7 - len(numbers))
        s.sendall(raft.packed(raft.RAFT, struct.pack(self.HEAD, 1, kind, flags, 0, self.member, self.ids[to], *numbers, 0, 0, 0)))

    def beat(self, to, term, prev, prev_term):
        """Appends without entries, again and again: until the member has dialled, its answers go nowhere."""
        s = self.dial(to)

        def run():
            try:
                while not self.ended.wait(0.02):
                    self.say(s, to, self.APPEND, 0, term, prev, prev_term)
            except OSError:
                pass
        threading.Thread(target=run, daemon=True).start()

    def messages(self):
        """(kind, flags, numbers from `term` on, entries) of each message that comes. Who sends one dials for it."""
        while not self.ended.is_set():
            s = self.listener.accept()[0]
            s.settimeout(f.LIMIT)
            self.links.append(s)
            try:
                hello = self.take(s, struct.unpack(">I", self.take(s, 4))[0])
                if hello[21] != 1:
                    continue  # not a member's, but that of one who has something to ask
                s.sendall(raft.packed(raft.WELCOME))
                while True:
                    body = self.take(s, struct.unpack(">I", self.take(s, 4))[0])[16:]
                    _, kind, flags, _, _, _, *numbers = struct.unpack_from(self.HEAD, body)
                    yield kind, flags, numbers[:7], numbers[7]
            except (f.Gone, OSError):
                pass

    def answer(self):
        """(term, appended, index) of the next answer to an append."""
        return next((n[0], bool(flags & self.OK), n[1]) for kind, flags, n, _ in self.messages() if kind == self.APPENDED)

    def follow(self, to):
        """Grants every vote and has every entry, up to `self.has`; notes the last index that it was sent in `self.sent`."""
        s = self.dial(to)

        def run():
            for kind, flags, (term, prev, _, _, question, *_), count in self.messages():
                if kind == self.VOTE:
                    self.say(s, to, self.VOTED, self.OK | flags & self.PRE, term)
                elif kind == self.APPEND:
                    self.sent = max(self.sent, prev + count)
                    self.say(s, to, self.APPENDED, self.OK, term, min(self.has, prev + count), 0, 0, question)

        def guarded():
            try:
                run()
            except (OSError, RuntimeError, f.Gone):
                pass  # the end
        threading.Thread(target=guarded, daemon=True).start()


def counts_its_own_term(t):
    """
    A leader with an entry of an earlier term that a majority has now: another leader may still replace it, so it is not
    safe before one of this term is on a majority, too.
    """
    with Cluster(t, "older", 3, "--cluster-election-ms=2000") as c:
        c.start()
        c.sequence()
        leader = c.leader()
        other, late = (leader + 1) % 3, (leader + 2) % 3
        p = Pretender(c, other)
        named = c._ask(raft.IDENTITY)  # pylint: disable=protected-access
        c.pause(other)
        c.pause(late)
        ask = raft.Link(c.endpoints[leader])
        ask.send(raft.CAS, bytes(8) + named + bytes(25) + b"\0\0\0\1" + raft.text(b"\0alone") + raft.text(None) + raft.text(b"x"))
        f.wait_for("an entry that the leader alone has", lambda: c.own(leader)["last_index"] > c.own(leader)["commit_index"])
        c.kill(other)
        c.kill(late)
        ask.s.close()
        f.wait_for("it to lead no more", lambda: c.own(leader)["state"] != "leader")
        before = c.own(leader)
        t.check(before["last_index"] > before["commit_index"], f"there is something older, and not safe: {before}")
        with p:
            p.has = before["last_index"]
            p.follow(leader)
            f.wait_for("it to lead again, in another term", lambda: c.own(leader)["state"] == "leader" and
                       c.own(leader)["term"] > before["term"])
            f.wait_for("it to begin its term", lambda: p.sent > p.has)
            worst = 0
            for _ in range(20):  # several answers about the older ones
                worst = max(worst, c.own(leader)["commit_index"])
                time.sleep(0.02)
            t.equal(worst, before["commit_index"], "what is older is not safe by itself; safe up to")
            p.has = 1 << 62
            f.wait_for("all to be safe with one of its own", lambda: c.own(leader)["commit_index"] > before["last_index"])


def says_no_more_than_it_knows(t):
    """
    A follower with entries that a lost leader left behind: to the next one it answers for those that it was shown to have
    in common. Were it all, the leader would take its own entries of those numbers for safe, and lose what it confirmed.
    """
    with Cluster(t, "tail", 3, "--cluster-election-ms=1500") as c:
        c.start()
        c.sequence()

        def written_in_one_term():
            leader = c.leader()
            term = c.own(leader)["term"]
            load = Load(c)
            load.wait(20)
            load.end()
            said = c.own(leader)
            return said["state"] == "leader" and said["term"] == term and (leader, term)
        leader, term = f.wait_for("entries of one term", written_in_one_term)
        other, late = (leader + 1) % 3, (leader + 2) % 3
        p = Pretender(c, leader)
        f.wait_for("it to have everything", lambda: c.own(late)["last_index"] >= c.own(leader)["commit_index"])
        c.pause(other)
        c.kill(leader)
        has = c.own(late)
        with p:
            next_term, prev = has["term"] + 100, has["last_index"] - 3
            p.beat(late, next_term, prev, term)
            t.equal(p.answer(), (next_term, True, prev), "to a heartbeat behind its end it answers for what that shows")
        c.resume(other)


def a_full_disk(t):
    """Of the leader, then of a follower: the others go on, it passes on what it is asked, and goes on when there is room."""
    with Cluster(t, "full", 3) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(50)

        def writable(i):
            return "\nfirn_raft_log_writable 1\n" in f.get(c.home[i], "/metrics")[1]
        for who in ("leader", "follower"):
            full = c.leader() if who == "leader" else (c.leader() + 1) % 3
            pid, before = c.process[full].pid, resource.prlimit(c.process[full].pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
            load.wait(1500)  # more than it may hold back in memory
            f.wait_for("another leader", lambda full=full: c.leader() != full)
            f.wait_for("its metrics to say so", lambda full=full: not writable(full))
            lag = f.wait_for("the leader to say how far it is", lambda full=full: [
                m["lag"] for m in (c.glance((full + 1) % 3) or {"members": []})["members"]
                if m["address"] == c.endpoints[full] and "lag" in m])[0]
            t.check(lag > 0, f"the {who} stands still: it lags by {lag}")
            ask = f.Http(c.ticket[full])
            f.wait_for("a ticket by way of it", lambda ask=ask: ask.get(f"/generate?seq={SEQ}")[0] == 200)
            ask.close()
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            f.wait_for("it to catch up by itself", lambda full=full: [
                m for m in (c.glance(full) or {"members": []})["members"]
                if m["address"] == c.endpoints[full] and m.get("lag", 99) < 5])
            f.wait_for("its metrics to say so", lambda full=full: writable(full))
            t.check(c.process[full].poll() is None, f"the {who} lived on")
            t.check("log_written" in c.log(full), f"the {who} says so")  # before that, its own log file was full, too
            c.process[full].terminate()
            t.equal(c.process[full].wait(f.LIMIT), 0, f"the {who} ends cleanly")
            c.process[full] = None
            c.restart(full)
        load.end()
        load.lost += 2  # of the tickets taken by way of the members with full disks
        load.check(t)


def a_lying_disk(t):
    """A bit that flipped in the log or in the snapshot: refused with the cause and the cure. So is a log that is not there."""
    with Cluster(t, "lies", 1, "--cluster-snapshot-every=50", "--cluster-snapshot-keep=5") as c:
        c.start()
        c.sequence()
        load = Load(c, 2)
        load.wait(150)
        load.end()
        log, kept = os.path.join(c.data(0), "log"), t.state("kept")
        c.kill(0)
        shutil.copytree(c.data(0), kept + "-killed")
        c.restart(0)
        c.process[0].terminate()
        t.equal(c.process[0].wait(f.LIMIT), 0, "it ends cleanly")
        c.process[0] = None
        shutil.copytree(c.data(0), kept + "-ended")

        def refused(state, what, spoil):
            shutil.rmtree(c.data(0))
            shutil.copytree(kept + state, c.data(0))
            spoil()
            before = os.path.getsize(os.path.join(c.folder, "n0.log"))
            c.spawn(0)
            try:
                code = c.process[0].wait(f.LIMIT)
            except subprocess.TimeoutExpired:
                code = 0
                c.process[0].kill()
                c.process[0].wait()
            c.process[0] = None
            with open(os.path.join(c.folder, "n0.log"), encoding="utf-8", errors="replace") as said:
                said.seek(before)
                text = said.read()
            t.check(code == 1 and ("damaged" in text or "log" in text) and "join again" in text,
                    f"{what} is refused: {code} {text[-300:]}")

        def flipped(state, name, at):
            def flip():
                with open(os.path.join(log, name), "r+b") as file:
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 0x10]))
            refused(state, f"{name} with a wrong byte at {at}", flip)

        for state in ("-ended", "-killed"):
            names = sorted(os.listdir(kept + state + "/log"))
            t.check(len([n for n in names if n.startswith("log-")]) >= 1 and
                    len([n for n in names if n.startswith("snapshot-")]) >= 1, f"there is a log and a snapshot: {names}")
            for name in [max(n for n in names if n.startswith(kind)) for kind in ("log-", "snapshot-")]:
                with open(os.path.join(kept + state, "log", name), "rb") as file:
                    used = len(file.read().rstrip(b"\0"))
                for at in (9, used // 3, used // 2, used - 2):
                    flipped(state, name, at)
            refused(state, "a member without its log", lambda: [os.remove(os.path.join(log, n)) for n in os.listdir(log)])
            refused(state, "a member without its log, but with a snapshot", lambda: [
                os.remove(os.path.join(log, n)) for n in os.listdir(log) if n.startswith("log-")])
        shutil.rmtree(c.data(0))
        shutil.copytree(kept + "-killed", c.data(0))
        c.restart(0)
        load.check(t)


with f.Test("cluster_log") as test:
    for part in (catches_up, alone_with_a_snapshot, says_no_more_than_it_knows, counts_its_own_term,
                 a_full_disk, a_lying_disk):
        test.section(part)
