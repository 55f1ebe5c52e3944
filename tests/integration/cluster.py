#!/usr/bin/env python3
"""
A cluster of firnds: it grows and shrinks while it serves, its leaders are killed, most of it stands still, a member
loses its disk, another one's disk lies. Gapless tickets stay without a gap and a repeat, IDs without a duplicate.

FIRN_CLUSTER_KILLS sets how many leaders are killed (10; a long run takes 60).
"""
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position

KILLS = int(os.environ.get("FIRN_CLUSTER_KILLS", "10"))
SEQ = "invoice"
INSTALLS = 2


class Cluster(raft.Raft):
    """A cluster whose processes the test knows, ended also when it breaks down."""

    def __init__(self, t, name, nodes, *options, tls=None, env=None):
        os.environ["FIRN_BIN_DIR"] = t.bin
        folder = t.state(name)
        os.mkdir(folder)
        super().__init__(folder, nodes, options, tls)
        self.env = env or {}
        self.t = t

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.resume()
        self.stop()
        said = self.logs()
        for i in range(self.nodes):
            path = os.path.join(self.folder, f"n{i}.log")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as log:
                    whole = log.read()
                for word in f.BAD_WORDS:
                    self.t.check(word not in whole, f"the log of member {i} is free of '{word}': {whole[:3000]}")
        if kind:
            print(said)
        if kind is raft.RaftError:
            raise f.NotThere(str(value)) from value

    def firn(self, i, *args):
        """A lead that could not be handed over in time, a few hundred milliseconds, is asked for again, as it says."""
        end = time.monotonic() + f.LIMIT
        while True:
            p = subprocess.run([os.path.join(self.t.bin, "firn"), "cluster", *args, "--url", "http://" + self.home[i]],
                               capture_output=True, text=True, timeout=90, check=False)
            if "handed over in time" not in p.stderr or time.monotonic() > end:
                return p.returncode, p.stdout + p.stderr

    def id_of(self, i):
        end = time.monotonic() + f.LIMIT
        while time.monotonic() < end:
            for k in range(self.nodes):
                for m in (self.status(k) or {}).get("members", []):
                    if m["address"] == self.endpoints[i]:
                        return m["id"]
            time.sleep(0.05)
        raise f.NotThere(f"member {i} is not in the status")

    def fill(self, registers):
        """So that a snapshot takes a while."""
        named = self._ask(raft.IDENTITY)
        for k in range(registers):
            self._ask(raft.CAS, bytes(8) + named + bytes(25) + b"\0\0\0\1" + raft.text(b"fill\0%d" % k) + raft.text(None) +
                      raft.text(bytes(1800)))

    def own(self, i):
        """The status as that member itself sees it, at once."""
        with raft.Link(self.endpoints[i]) as link:
            return link.status(1)

    def sequence(self):
        end = time.monotonic() + f.LIMIT
        while True:
            try:
                c = f.Http(self.home[0])
                status, body = c.post("/v1/sequences", {"name": SEQ, "mode": "gapless", "start": "1"})
                c.close()
                if status in (200, 201):
                    return
            except f.Gone as e:
                body = e
            if time.monotonic() > end:
                raise f.NotThere(f"the sequence: {body}")
            time.sleep(0.05)


class Load:
    """Clients that take tickets and IDs from any member that answers, and note everything."""

    def __init__(self, cluster, clients=4):
        self.c, self.lock, self.ended = cluster, threading.Lock(), False
        self.tickets, self.ids, self.lost, self.refused = [], [], 0, 0
        self.last = time.monotonic()  # when a ticket last came
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, i):
        at = i
        while not self.ended:
            try:
                self._use(at % self.c.nodes)
            except (f.Gone, OSError):
                time.sleep(0.002)
            at += 1

    def _use(self, node):
        """One member, until it does not answer well."""
        tickets = f.Http(self.c.ticket[node], 30)
        ids = f.Http(self.c.snowflake[node], 30)
        try:
            while not self.ended:
                try:
                    status, body = tickets.get(f"/generate?seq={SEQ}")
                except (f.Gone, f.NotThere, OSError):
                    with self.lock:
                        self.lost += 1
                    return
                with self.lock:
                    if status == 200:
                        self.tickets.append(int(json.loads(body)["id"]))
                        self.last = time.monotonic()
                    else:
                        self.refused += 1
                if status != 200:
                    return
                status, body = ids.get("/generate?n=3")
                if status == 200:
                    with self.lock:
                        self.ids.extend(int(n) for n in json.loads(body)["ids"])
        finally:
            tickets.close()
            ids.close()

    def wait(self, more):
        begin = len(self.tickets)
        f.wait_for(f"{more} more tickets", lambda: len(self.tickets) - begin >= more)

    def end(self):
        self.ended = True
        for t in self.threads:
            t.join(f.LIMIT)

    def check(self, t):
        """No number twice, and holes only where an answer was lost on its way to a client."""
        numbers, c = self.tickets, f.Resp(self.c.ticket[0])
        end = int(c.do("INCR", SEQ))
        c.close()
        t.equal(len(set(numbers)), len(numbers), "tickets are distinct; how many")
        t.check(numbers and min(numbers) >= 1 and max(numbers) < end, "tickets are within bounds")
        holes = end - 1 - len(set(numbers))
        t.check(holes <= self.lost + self.refused,
                f"{holes} holes, but only {self.lost} answers lost and {self.refused} refused")
        t.equal(len(set(self.ids)), len(self.ids), "IDs are distinct; how many")
        t.check(len(self.ids) > 100, f"IDs came: {len(self.ids)}")
        t.say(f"{len(numbers)} tickets, {len(self.ids)} IDs, {self.lost} answers lost, {self.refused} refused, "
              f"{holes} holes")


def grows_and_shrinks(t):
    """1 -> 3 -> 5 -> 3 under load, the leader among those that go."""
    with Cluster(t, "grow", 5, "--cluster-snapshot-every=100", "--cluster-snapshot-keep=20") as c:
        c.spawn(0, "--cluster-init", "--cluster-fresh")
        c.wait([0])
        c.sequence()
        load = Load(c)
        load.wait(20)
        for new, voters in (((1, 2), 3), ((3, 4), 5)):
            for i in new:
                c.spawn(i, "--cluster-join", c.endpoints[0])
            c.members(voters)
            load.wait(50)
        t.check(True, "it grew to five")
        leader = c.leader()
        go = [leader, (leader + 1) % 5]
        stay = [i for i in range(5) if i not in go]
        for i in go:
            status, said = c.firn(stay[0], "remove", c.id_of(i))
            t.equal((status, "done" in said), (0, True), f"member {i} was removed: {said}")
            load.wait(20)
            c.kill(i)
        c.members(3, stay[0])
        load.wait(50)
        f.wait_for("the lead to be handed over", lambda: c.firn(stay[0], "transfer", c.id_of(stay[1]))[0] == 0 and
                   c.leader() == stay[1])
        t.check(True, "the lead was handed over")
        status, said = c.firn(stay[2], "transfer", "1234")
        t.check(status != 0 and "voter" in said, f"not to a stranger: {said}")
        load.wait(20)
        load.end()
        for i in go:
            shutil.rmtree(c.data(i))
            c.spawn(i, "--cluster-join", c.endpoints[stay[0]])
        c.members(5, stay[0])
        c.wait(range(5))
        load.check(t)


def leaders_killed(t):
    """kill -9 of the leader, again and again."""
    back = []
    with Cluster(t, "kills", 3, "--cluster-snapshot-every=300", "--cluster-snapshot-keep=50") as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(20)
        for _ in range(KILLS):
            leader = c.leader()
            c.kill(leader)
            killed = time.monotonic()
            f.wait_for("tickets after a leader's end", lambda k=killed: load.last > k + 0.02)
            back.append(load.last - killed)
            load.wait(10)
            c.spawn(leader)
            c.wait([leader])
        load.end()
        t.check(c.status(0)["term"] > KILLS, "there were as many elections")
        load.check(t)
    back.sort()
    t.say(f"{KILLS} leaders killed; tickets came again after {back[len(back) // 2] * 1000:.0f} ms (median), "
          f"{back[-1] * 1000:.0f} ms (longest)")


def numbers_to_watch(t):
    """firn_raft_* at /metrics of each member."""
    with Cluster(t, "metrics", 3, "--cluster-snapshot-every=50", "--cluster-snapshot-keep=10") as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(150)
        load.end()

        def of(i):
            found = {}
            for line in f.get(c.home[i], "/metrics")[1].splitlines():
                if line.startswith("firn_raft_"):
                    name, value = line.rsplit(" ", 1)
                    if name in found:
                        raise f.NotThere(f"{name} is there twice")
                    found[name] = float(value)
            return found

        def settled():
            seen = [of(i) for i in range(3)]
            same = ("applied_index", "last_index", "commit_index", "term", "has_leader")
            return len({tuple(m["firn_raft_" + n] for n in same) for m in seen}) == 1 and \
                sum(m["firn_raft_is_leader"] for m in seen) == 1 and seen
        seen = f.wait_for("all members to have everything", settled)
        leader = [m["firn_raft_is_leader"] for m in seen].index(1)
        follower = (leader + 1) % 3
        for i, m in enumerate(seen):
            leads = i == leader
            t.equal((m["firn_raft_is_leader"], m['firn_raft_state{state="leader"}'], m['firn_raft_state{state="follower"}'],
                     m["firn_raft_has_leader"], m["firn_raft_log_writable"]), (leads, leads, not leads, 1, 1), "the role")
            t.equal((m['firn_raft_members{role="voter"}'], m['firn_raft_members{role="standby"}']), (3, 0), "members")
            t.check(m["firn_raft_last_index"] > 50 and m["firn_raft_snapshot_index"] > 0 and
                    m["firn_raft_snapshots_total"] > 0 and m["firn_raft_leader_changes_total"] >= 1 and
                    m["firn_raft_registers"] > 1000, f"there are entries, registers and snapshots: {m}")
            lags = {n: v for n, v in m.items() if n.startswith("firn_raft_peer_lag")}
            t.equal(len(lags), 2 if leads else 0, f"the leader alone knows of two others: {lags}")
            t.check(max(lags.values(), default=0) < 20, f"who have nearly everything: {lags}")
            if leads:
                t.check(m["firn_raft_writes_total"] >= m["firn_raft_entries_total"] > 0, f"writes share entries: {m}")
                t.check(all(f'member="{c.id_of(k)}"' in " ".join(lags) for k in range(3) if k != leader), "by their ids")
        forwarded = 'firn_raft_forwarded_total{kind="write"}'
        t.equal(f.get(c.ticket[follower], f"/generate?seq={SEQ}")[0], 200, "a ticket of a follower")
        f.wait_for("it to be counted as passed on", lambda: of(follower)[forwarded] > seen[follower][forwarded])
        c.kill(leader)
        f.wait_for("the change to be counted", lambda: of(follower)["firn_raft_leader_changes_total"] >
                   seen[follower]["firn_raft_leader_changes_total"] and of(follower)["firn_raft_has_leader"] == 1)
        t.check(of(follower)["firn_raft_term"] > seen[follower]["firn_raft_term"], "and the term is another")
        f.wait_for("the lost one to be seen as lost", lambda: min(
            (v for n, v in of(c.leader()).items() if n.startswith("firn_raft_peer_seen")), default=1) == 0)


def minority_alone(t):
    """Two of three stand still: the third serves out its window, says that it is not ready, and recovers."""
    with Cluster(t, "minority", 3, "--cluster-window-ms=4000") as c:
        c.start()
        c.sequence()
        for i in range(3):
            f.wait_for(f"member {i} to be ready", lambda i=i: f.get(c.home[i], "/readyz")[0] == 200)
        alone = (c.leader() + 1) % 3
        for i in range(3):
            if i != alone:
                c.pause(i)
        status, said = f.get(c.snowflake[alone], "/generate")
        t.equal(status, 200, f"it makes IDs on: {said}")
        ids = [int(said["id"])]
        status, said = f.get(c.ticket[alone], f"/generate?seq={SEQ}")
        t.equal(status, 503, f"a ticket needs a majority: {said}")

        def more():
            code, body = f.get(c.snowflake[alone], "/generate")
            ids.extend([int(body["id"])] if code == 200 else [])
            return code == 503
        f.wait_for("the window to end", more)
        t.equal(f.get(c.home[alone], "/readyz")[0], 503, "it says that it is not ready")
        c.resume()
        for i in range(3):
            f.wait_for(f"member {i} to be ready again", lambda i=i: f.get(c.home[i], "/readyz")[0] == 200)
            ids.append(int(f.get(c.snowflake[i], "/generate")[1]["id"]))
        t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")
        t.equal(f.get(c.ticket[alone], f"/generate?seq={SEQ}")[1], {"id": "1"}, "no ticket was lost")


def a_wiped_member(t):
    """It comes back as another one, by a snapshot."""
    with Cluster(t, "wiped", 3, "--cluster-snapshot-every=50", "--cluster-snapshot-keep=10") as c:
        c.start()
        c.sequence()
        lost = (c.leader() + 1) % 3
        other = (lost + 1) % 3
        load = Load(c)
        load.wait(100)
        old = c.id_of(lost)
        c.kill(lost)
        shutil.rmtree(c.data(lost))
        c.spawn(lost, "--cluster-join", c.endpoints[other])

        def refused():
            with open(os.path.join(c.folder, f"n{lost}.log"), encoding="utf-8") as log:
                return "another member has this address" in log.read()
        f.wait_for("the new one to be told of the old one", refused)
        status, said = c.firn(other, "remove", old)
        t.equal(status, 0, f"the old one was removed: {said}")
        c.members(3, other)
        c.wait([lost])
        t.check(c.id_of(lost) != old, "it has another id")
        files = os.listdir(os.path.join(c.data(lost), "log"))
        t.check(any(n.startswith("snapshot-") for n in files) and
                not any(n.startswith("0000000000000001-") for n in files), f"it got a snapshot, not the log: {files}")
        load.wait(20)
        load.end()
        load.check(t)


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
                said = c.status(other) or {}
                seen = [m.get("index", 0) for m in said.get("members", [])]
                return len(seen) == 3 and min(seen) + 60 > said["last_index"]
            f.wait_for(f"member {away} to have what the others have", near)
        load.end()
        load.check(t)


def alone_with_a_snapshot(t):
    """The others end while a member stores the snapshot that it was sent: it waits until it has it, and goes on."""
    with Cluster(t, "install", 3, "--cluster-snapshot-every=50", "--cluster-snapshot-keep=10") as c:
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
                       (c.status(m) or {}).get("state") == "candidate")
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
    with Cluster(t, "older", 3, "--cluster-election-ms=600") as c:
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
                m["lag"] for m in (c.status((full + 1) % 3) or {"members": []})["members"]
                if m["address"] == c.endpoints[full] and "lag" in m])[0]
            t.check(lag > 0, f"the {who} stands still: it lags by {lag}")
            resource.prlimit(c.process[full].pid, resource.RLIMIT_FSIZE, before)
            c.process[full].terminate()
            t.equal(c.process[full].wait(f.LIMIT), 0, f"the {who} ends cleanly")
            c.process[full] = None
            c.restart(full)
            f.wait_for("it to catch up", lambda full=full: [
                m for m in (c.status(full) or {"members": []})["members"]
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
            t.check(code == 1 and "damaged" in text and "join anew" in text,
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


def restored(t):
    """From a copy of one member's folder: another incarnation, fenced, so that no ID comes again."""
    with Cluster(t, "restored", 3, "--cluster-window-ms=4000") as c:
        c.start()
        ids = []

        def take(n):
            for i in range(3):
                f.wait_for(f"member {i} to be ready", lambda i=i: f.get(c.home[i], "/readyz")[0] == 200)
                ids.extend(int(x) for x in f.get(c.snowflake[i], f"/generate?n={n}")[1]["ids"])
        take(100)
        before = c.status(0)["cluster"]
        c.snapshot(t.state("copy"))
        take(5000)
        c.restore(t.state("copy"))
        take(5000)
        t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")
        t.check(c.status(0)["cluster"] != before, "it is another incarnation")
        p = subprocess.run([os.path.join(t.bin, "firn"), "admin", "doctor", "--store", c.url("")],
                           capture_output=True, text=True, timeout=90, check=False)
        t.equal(p.returncode, 0, f"firn admin doctor, by raft://: {p.stdout} {p.stderr}")


def certificates(t, name):
    """An authority and a certificate of it for this machine."""
    folder = t.state(name)
    os.mkdir(folder)

    def openssl(*args):
        p = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        if p.returncode:
            raise f.NotThere(f"openssl {args}: {p.stderr}")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=cluster", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=member", "-keyout", "member.key", "-out", "member.csr")
    with open(os.path.join(folder, "ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "member.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "ext", "-out", "member.pem")
    return {"ca": os.path.join(folder, "ca.pem"), "cert": os.path.join(folder, "member.pem"),
            "key": os.path.join(folder, "member.key")}


def sealed(t):
    """TLS between members: all of it goes through, and nobody else comes in."""
    tls, other = certificates(t, "ours"), certificates(t, "others")
    with Cluster(t, "tls", 3, "--cluster-snapshot-every=100", "--cluster-snapshot-keep=20", tls=tls) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(150)
        for _ in range(3):
            leader = c.leader()
            c.kill(leader)
            load.wait(50)
            c.spawn(leader)
            c.wait([leader])
        lost = (c.leader() + 1) % 3  # a whole snapshot goes through, too
        t.equal(c.firn(c.leader(), "remove", c.id_of(lost))[0], 0, "a member was removed")
        c.kill(lost)
        shutil.rmtree(c.data(lost))
        c.spawn(lost, "--cluster-join", c.endpoints[c.leader()])
        c.members(3, c.leader())
        c.wait([lost])
        load.end()
        load.check(t)
        for who, what in ((None, "plain"), (other, "another authority's"), ({**tls, "ca": other["ca"]}, "not trusted")):
            try:
                with raft.Link(c.endpoints[0], 5, who):
                    t.check(False, f"a client that is {what} was welcomed")
            except (OSError, raft.RaftError):
                t.check(True, what)
        host, port = c.endpoints[0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=f.LIMIT) as silent:
            t.equal(silent.recv(1), b"", "who says nothing is sent away")
        port = raft.free_ports(1)[0]
        stranger = f.Firnd(t, t.state("stranger"), "--store=raft:", "--cluster-listen", f"127.0.0.1:{port}",
                           "--cluster-join", c.endpoints[0], env=raft.SANITIZED)
        stranger.wait_log("join_failed")
        t.equal(len(c.status(0)["members"]), 3, "a plain stranger is not let in; members")
        stranger.stop()


def renewed(t):
    """Certificates and authority of a cluster that serves are exchanged, by SIGHUP and without a restart."""
    ours, next_ca, other = certificates(t, "old"), certificates(t, "new"), certificates(t, "foreign")

    def copy(what, frm):
        shutil.copyfile(frm[what], ours[what] + ".part")
        os.rename(ours[what] + ".part", ours[what])

    def shown(address, tls):
        """The certificate that a member shows; None where it sends us away."""
        try:
            with raft.Link(address, 5, tls) as link:
                return link.s.getpeercert(binary_form=True)
        except (OSError, raft.RaftError):
            return None

    def der(tls):
        with open(tls["cert"], encoding="ascii") as file:
            return ssl.PEM_cert_to_DER_cert(file.read())

    with Cluster(t, "renewed", 3, tls=ours) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(50)

        def reload(word="reloaded", which=range(3)):
            before = [c.log(i).count(word) for i in which]
            for i in which:
                c.process[i].send_signal(signal.SIGHUP)
            for i, n in zip(which, before):
                f.wait_for(f"'{word}' of member {i}", lambda i=i, n=n: c.log(i).count(word) > n)

        t.check(shown(c.endpoints[0], next_ca) is None, "another authority's certificate is not taken yet")
        with open(ours["cert"], "ab") as file:  # as a half written file
            file.truncate(100)
        reload("tls_reload_failed")
        t.check(ours["cert"] in c.log(0) and "send SIGHUP again" in c.log(0), f"cause and cure: {c.log(0)[-600:]}")
        t.check(c.status(1) is None and c.process[1].poll() is None, "our own client has no certificate now")
        load.wait(10)
        with open(ours["ca"], "ab") as both, open(next_ca["ca"], "rb") as file:
            both.write(file.read())
        copy("cert", next_ca)
        reload("tls_reload_failed")  # the key is of the old one
        t.check("does not belong to" in c.log(0), f"which key: {c.log(0)[-600:]}")
        copy("key", next_ca)
        reload()  # from now on both authorities are trusted, and the new certificate is shown
        f.wait_for("the new certificate", lambda: [shown(a, next_ca) for a in c.endpoints] == [der(next_ca)] * 3)
        load.wait(20)
        c.kill(0)  # connections between members are made anew, with the new certificates
        load.wait(20)
        c.spawn(0)
        c.wait([0])
        copy("ca", next_ca)
        reload()
        f.wait_for("the new authority alone", lambda: shown(c.endpoints[1], next_ca) == der(next_ca))
        leader = c.leader()
        t.equal(c.firn(leader, "transfer")[0], 0, "the lead goes over connections of the new authority")
        load.wait(30)
        t.check(shown(c.endpoints[1], {**other, "ca": next_ca["ca"]}) is None, "a foreign certificate is refused")
        t.check([c.process[i].poll() for i in range(3)] == [None] * 3, "nobody was restarted but the one killed")
        load.end()
        load.check(t)


def init_left(t):
    """cluster.init on a member that has data does nothing, but to warn."""
    with Cluster(t, "init", 1) as c:
        c.start()
        before = c.status(0)["cluster"]
        t.check("init_still_set" not in c.log(0), "the first time it is right")
        c.kill(0)
        c.spawn(0, "--cluster-init")
        c.wait([0])
        t.equal(c.status(0)["cluster"], before, "the cluster")
        t.check("init_still_set" in c.log(0) and "cluster.join" in c.log(0), f"a warning with its cure: {c.log(0)}")


def rude_peers(t):
    """What no member says: the member ends that connection, and nothing else."""
    key = raft.text(b"\0k")
    read, hello = bytes(8) + b"\1" + key, b"firn\x01"
    member = hello + b"\x01" + bytes(7) + b"\x09" + raft.text(b"127.0.0.1:1")
    with Cluster(t, "rude", 1) as c:
        c.start()
        f.wait_for("the slots", lambda: f.get(c.home[0], "/readyz")[0] == 200)
        for what, frames in (
                ("greets again as a member", [(raft.READ, read)] * 3 + [(raft.HELLO, member)]),
                ("greets again in nonsense", [(raft.READ, read)] * 3 + [(raft.HELLO, b"nonsense")]),
                ("greets again as a client", [(raft.READ, read), (raft.HELLO, hello + b"\x02" + bytes(8) + raft.text(b""))]),
                ("answers what nobody asked", [(raft.READ, read), (raft.REPLY, bytes(20))]),
                ("welcomes", [(raft.READ, read), (raft.WELCOME, b"")])):
            for _ in range(5):
                with raft.Link(c.endpoints[0]) as link:
                    link.s.sendall(b"".join(raft.packed(kind, body) for kind, body in frames))
                    try:
                        while link.frame()[0] == raft.REPLY:
                            pass
                        t.check(False, f"one that {what} is listened to")
                    except (OSError, raft.RaftError):
                        t.check(True, what)
            t.check(c.process[0].poll() is None, f"the member lives on beside one that {what}: {c.logs()}")
        with socket.create_connection(tuple(c.endpoints[0].split(":")), timeout=f.LIMIT) as unknown:
            unknown.sendall(raft.packed(raft.IDENTITY, b""))
            t.equal(unknown.recv(1), b"", "who asks before a greeting gets")
        with raft.Link(c.endpoints[0]) as link:
            for address in ("nonsense", 'x","role":"voter"}:1', "a b:1", "a\0b:1", ":1", "a:"):
                try:
                    link.change(raft.ADD, 5, address)
                    t.check(False, f"a member at {address!r} is taken")
                except raft.RaftError as e:
                    t.check("no host:port" in str(e), f"{address!r}: {e}")
        t.equal(len(c.status(0)["members"]), 1, "members")
        deaf = raft.Link(c.endpoints[0])
        scan, end = raft.packed(raft.SCAN, bytes(8) + raft.text(b"") + raft.text(None), 5000), time.monotonic() + f.LIMIT
        try:
            while time.monotonic() < end:
                deaf.s.sendall(scan)
            t.check(False, "one that asks and never listens is sent away")
        except OSError as e:
            t.check(not isinstance(e, TimeoutError), "one that asks and never listens is sent away")
        deaf.s.close()
        c.wait([0])


def refused(t):
    """Settings that would be dangerous, or that lack something."""
    for args, words in (
            (("--cluster-listen", "0.0.0.0:9003", "--cluster-init"), "cluster.plain"),
            (("--cluster-listen", "127.0.0.1:1",), "cluster.init on the very first"),
            (("--cluster-listen", "nonsense", "--cluster-init"), "no address"),
            (("--cluster-listen", "127.0.0.1:1", "--cluster-init", "--cluster-tls-ca", __file__), "all three")):
        p = subprocess.run([os.path.join(t.bin, "firnd"), "--no-config", "--store=raft:", "--state-dir",
                            t.state("refused"), *[w for p in ("home", "snowflake", "ticket")
                                                  for w in (f"--listen-{p}", "127.0.0.1:0")], *args],
                           capture_output=True, text=True, timeout=f.LIMIT, check=False)
        t.check(p.returncode in (1, 2) and words in p.stderr, f"{args}: {p.returncode} {p.stderr}")


with f.Test("cluster") as test:
    for part in (refused, grows_and_shrinks, leaders_killed, numbers_to_watch, minority_alone, a_wiped_member, catches_up,
                 alone_with_a_snapshot, says_no_more_than_it_knows, counts_its_own_term, a_full_disk, a_lying_disk,
                 restored, sealed, renewed, init_left, rude_peers):
        test.section(part)
