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
    """Speaks as another member, in libraft's own protocol: a header's type and length, then its numbers, 64 bits each."""

    APPEND, APPENDED, VOTE, VOTED = range(1, 5)

    def __init__(self, c, who):
        self.c, self.member, self.address = c, int(c.id_of(who), 16), c.endpoints[who]
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
        hello = b"firn\x01\x01" + struct.pack(">Q", self.member) + raft.text(self.address.encode())
        s.sendall(struct.pack(">IBBHIQ", 16 + len(hello), raft.HELLO, 0, 0, 0, 0) + hello)
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

    def beat(self, s, term, prev, prev_term):
        """Appends without entries, again and again: until the member has dialled, its answers go nowhere."""
        def run():
            try:
                while not self.ended.wait(0.02):
                    s.sendall(struct.pack("<7Q", self.APPEND, 40, term, prev, prev_term, 0, 0))
            except OSError:
                pass
        threading.Thread(target=run, daemon=True).start()

    def messages(self):
        """(kind, body) of each message that comes. Who sends one dials for it."""
        while not self.ended.is_set():
            s = self.listener.accept()[0]
            s.settimeout(f.LIMIT)
            self.links.append(s)
            try:
                hello = self.take(s, struct.unpack(">I", self.take(s, 4))[0])
                if hello[21] != 1:
                    continue  # not a member's, but that of one who has something to ask
                s.sendall(struct.pack(">IBBHIQ", 16, raft.WELCOME, 0, 0, 0, 0))
                while True:
                    kind, length = struct.unpack("<QQ", self.take(s, 16))
                    body = self.take(s, length)
                    if kind == self.APPEND:  # behind the header is the size of the entries' data, each after its sizes
                        count = struct.unpack_from("<Q", body, 32)[0]
                        sizes = [struct.unpack_from("<I", body, 40 + 16 * k + 12)[0] for k in range(count)]
                        self.take(s, sum(sizes))
                    yield kind, body
            except (f.Gone, OSError):
                pass

    def answer(self):
        """(term, rejected, last index) of the next answer to an append."""
        return next(struct.unpack("<3Q", body[:24]) for kind, body in self.messages() if kind == self.APPENDED)

    def follow(self, to):
        """Grants every vote and has every entry, up to `self.has`; notes the last index that it was sent in `self.sent`."""
        s = self.dial(to)

        def run():
            for kind, body in self.messages():
                if kind == self.VOTE:
                    term, _, _, _, flags = struct.unpack("<5Q", body[:40])
                    s.sendall(struct.pack("<5Q", self.VOTED, 24, term, 1, flags >> 1 & 1))
                elif kind == self.APPEND:
                    term, prev, _, _, count = struct.unpack("<5Q", body[:40])
                    self.sent = max(self.sent, prev + count)
                    s.sendall(struct.pack("<5Q", self.APPENDED, 24, term, 0, min(self.has, prev + count)))

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
        c.pause(other)
        c.pause(late)
        ask = f.Http(c.ticket[leader])
        ask.ask(f"/generate?seq={SEQ}")  # nobody will confirm it
        f.wait_for("an entry that the leader alone has", lambda: c.own(leader)["last_index"] > c.own(leader)["commit_index"])
        c.kill(other)
        c.kill(late)
        ask.close()
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
            p.beat(p.dial(late), next_term, prev, term)
            t.equal(p.answer(), (next_term, 0, prev), "to a heartbeat behind its end it answers for what that shows")
        c.resume(other)


def a_full_disk(t):
    """Of the leader, then of a follower: the others go on, it passes on what it is asked, and recovers by a restart."""
    # What libraft waits for when a log cannot be written is never given back: it ends with the process.
    with Cluster(t, "full", 3, env={"LSAN_OPTIONS": "detect_leaks=0"}) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(50)
        for who in ("leader", "follower"):
            full = c.leader() if who == "leader" else (c.leader() + 1) % 3
            before = resource.prlimit(c.process[full].pid, resource.RLIMIT_FSIZE)
            resource.prlimit(c.process[full].pid, resource.RLIMIT_FSIZE, (0, before[1]))
            load.wait(1500)  # more than it may hold back in memory
            f.wait_for("another leader", lambda full=full: c.leader() != full)
            t.check(c.process[full].poll() is None, f"the {who} lives on")
            lag = f.wait_for("the leader to say how far it is", lambda full=full: [
                m["lag"] for m in (c.glance((full + 1) % 3) or {"members": []})["members"]
                if m["address"] == c.endpoints[full] and "lag" in m])[0]
            t.check(lag > 0, f"the {who} stands still: it lags by {lag}")
            resource.prlimit(c.process[full].pid, resource.RLIMIT_FSIZE, before)
            c.process[full].terminate()
            t.equal(c.process[full].wait(f.LIMIT), 0, f"the {who} ends cleanly")
            c.process[full] = None
            c.restart(full)
            f.wait_for("it to catch up", lambda full=full: [
                m for m in (c.glance(full) or {"members": []})["members"]
                if m["address"] == c.endpoints[full] and m.get("lag", 99) < 5])
        load.end()
        load.check(t)


def a_lying_disk(t):
    """A bit that flipped in the log or in the snapshot: refused with the cause and the cure."""
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

        def flipped(state, name, at):
            shutil.rmtree(c.data(0))
            shutil.copytree(kept + state, c.data(0))
            with open(os.path.join(log, name), "r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 0x10]))
            before = os.path.getsize(os.path.join(c.folder, "n0.log"))
            c.env = {"LSAN_OPTIONS": "detect_leaks=0"}  # libraft forgets memory when it refuses a segment
            c.spawn(0)
            c.env = {}
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
            t.check(code == 1 and "damaged" in text and "join again" in text,
                    f"{name} with a wrong byte at {at} is refused: {code} {text[-300:]}")

        snapshots = sorted((n for n in os.listdir(kept + "-ended/log") if n.startswith("snapshot-")),
                           key=lambda n: int(n.split("-")[2]))
        for name in [n for n in os.listdir(kept + "-ended/log") if n[0] == "0"] + snapshots[-2:]:
            size = os.path.getsize(os.path.join(kept + "-ended/log", name))
            for at in (size // 3, size - 3):
                flipped("-ended", name, at)
        for name in [n for n in os.listdir(kept + "-killed/log") if n.startswith("open-")]:
            with open(os.path.join(kept + "-killed/log", name), "rb") as file:
                used = len(file.read().rstrip(b"\0"))
            for at in (9, used // 2, used - 2) if used else ():
                flipped("-killed", name, at)
        shutil.rmtree(c.data(0))
        shutil.copytree(kept + "-killed", c.data(0))
        c.restart(0)
        load.check(t)


with f.Test("cluster_log") as test:
    for part in (catches_up, alone_with_a_snapshot, says_no_more_than_it_knows, counts_its_own_term,
                 a_full_disk, a_lying_disk):
        test.section(part)
