#!/usr/bin/env python3
"""
Changes of a cluster's members at a bad moment: a change that the leader wrote and that was never committed is undone, by a
leader that was killed and by one that only stood still, and nobody counts votes without the member that it was to remove.
"""
import os
import shutil
import struct
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from cluster_world import Cluster, Load  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position


def mine(c, i):
    """The status as the member itself sees it, not its leader."""
    return f.wait_for(f"the status of member {i}", lambda: c.glance(i, own=True))


def write_removal(c, leader, gone):
    """The leader, alone, gets the order to remove a member: it writes it to its log, which nobody else has."""
    last = mine(c, leader)["last_index"]
    member = int(next(m["id"] for m in mine(c, leader)["members"] if m["address"] == c.endpoints[gone]), 16)
    link = raft.Link(c.endpoints[leader])  # which soon forgets the order: it would give it to the next leader
    link.send(raft.CHANGE, struct.pack(">BQ", raft.REMOVE, member) + raft.text(b""), 500)
    f.wait_for("the change to be in the leader's log", lambda: mine(c, leader)["last_index"] > last)
    return link


def more_tickets(c, of, n):
    """Tickets from these members, until the log has grown by n entries."""
    begin = mine(c, of[0])["last_index"]

    def grown():
        for i in of:
            try:
                s = f.Http(c.ticket[i])
                s.get("/generate?seq=other")
                s.close()
            except (f.Gone, f.NotThere, OSError):
                pass
        return mine(c, of[0])["last_index"] >= begin + n
    f.wait_for(f"{n} more entries", grown)


def begin(c):
    """A cluster with two sequences: one for Load, and one that makes the log longer."""
    c.start()
    c.sequence()
    s = f.Http(c.home[0])
    f.wait_for("the other sequence", lambda: s.post("/v1/sequences", {"name": "other", "mode": "gapless"})[0] in (201, 409))
    s.close()


def all_count(t, c, what):
    """Every member counts three voters, and any two of them are enough."""
    def counted(i):
        voters = [m for m in mine(c, i)["members"] if m["role"] == "voter"]
        return len(voters) == 3
    for i in range(3):
        f.wait_for(f"{what}: member {i} to count three voters", lambda k=i: counted(k))
    load = Load(c)
    load.wait(50)
    for gone in range(3):
        c.kill(gone)
        load.wait(20)
        c.spawn(gone)
        c.wait(range(3))
    load.end()
    load.check(t)


def undone_after_a_crash(t):
    """The leader is killed with the change in its log; the others go on; it returns, and goes back to three."""
    with Cluster(t, "crash", 3, "--cluster-election-ms=1500") as c:
        begin(c)
        a = c.leader()
        b, gone = [i for i in range(3) if i != a]
        c.kill(b)
        c.kill(gone)
        write_removal(c, a, gone)
        c.kill(a)
        c.spawn(b)
        c.spawn(gone)
        more_tickets(c, [b, gone], 5)
        c.spawn(a)
        c.wait(range(3))
        all_count(t, c, "after a crash")


def undone_behind_a_snapshot(t):
    """The leader stands still meanwhile, and the entry with the members before the change is in a snapshot by now."""
    with Cluster(t, "snapshot", 3, "--cluster-election-ms=1500", "--cluster-snapshot-every=100",
                 "--cluster-snapshot-keep=5") as c:
        begin(c)
        while mine(c, 0)["snapshot_index"] == 0:
            more_tickets(c, [0], 3)
        a = c.leader()
        b, gone = [i for i in range(3) if i != a]
        c.kill(b)
        c.kill(gone)
        write_removal(c, a, gone)
        c.pause(a)
        c.spawn(b)
        c.spawn(gone)
        more_tickets(c, [b, gone], 3)
        c.resume(a)
        f.wait_for("the old leader to follow, or to end", lambda: c.process[a].poll() is not None or
                   (c.glance(a, own=True) or {}).get("state") == "follower")
        more_tickets(c, [b, gone], 3)
        if t.check(c.process[a].poll() is None, f"the old leader lives on: {c.process[a].returncode}"):
            c.wait(range(3))
            all_count(t, c, "behind a snapshot")


def refused_without_a_majority(t):
    """Of three voters one is gone: without the one that answers, the leader would hear no majority."""
    with Cluster(t, "majority", 3) as c:
        c.start()
        leader = c.leader()
        up, down = [i for i in range(3) if i != leader]
        gone, here = c.id_of(down), c.id_of(up)
        c.kill(down)
        f.wait_for("the leader not to hear it", lambda: any(m["id"] == gone and m.get("seen") is False
                                                            for m in mine(c, leader)["members"]))
        code, said = c.firn(leader, "remove", here)
        t.check(code != 0 and "no majority" in said and gone in said, f"refused, with the member that does not answer: {said}")
        t.equal(len(mine(c, leader)["members"]), 3, "members")
        code, said = c.firn(leader, "remove", gone)
        t.equal(code, 0, f"the one that is gone can be removed: {said}")
        t.equal(sorted(m["id"] for m in mine(c, leader)["members"] if m["id"] in (gone, here)), [here], "who is left")


def no_second_cluster(t):
    """A first member with cluster.init and cluster.join whose folder is lost: it joins the cluster that the others know."""
    with Cluster(t, "second", 3) as c:
        join = ("--cluster-init", "--cluster-fresh", "--cluster-join", f"{c.endpoints[1]},{c.endpoints[2]}")
        c.spawn(0, *join)
        f.wait_for("a word on why it waits", lambda: "cluster_not_begun" in c.log(0))
        c.spawn(1, "--cluster-join", c.endpoints[0])
        f.wait_for("the second to look for the first", lambda: "join_" in c.log(1))
        t.check("cluster_begun" not in c.log(0), "one has not answered yet, and may know a cluster")
        c.spawn(2, "--cluster-join", c.endpoints[0])
        c.wait([0])
        t.check("cluster_begun" in c.log(0), "no other one knows a cluster, so it begins one")
        c.members(3)
        c.wait(range(3))
        before, old = c.status(1)["cluster"], c.id_of(0)
        c.kill(0)
        shutil.rmtree(c.data(0))
        c.spawn(0, *join)
        c.members(3, 1)
        c.wait(range(3))
        t.equal(mine(c, 0)["cluster"], before, "the cluster")
        t.check("init_ignored" in c.log(0) and c.id_of(0) != old, "it has joined, under a new id")


def same_settings(t):
    """All members have cluster.init and one list of all: the first of it begins, also when it starts last and after it lost its folder."""
    with Cluster(t, "same", 3) as c:
        same = ("--cluster-init", "--cluster-fresh", "--cluster-join", ",".join(c.endpoints))
        for i in (2, 1, 0):
            c.spawn(i, *same)
        c.members(3)
        c.wait(range(3))
        t.equal([i for i in range(3) if "cluster_begun" in c.log(i)], [0], "who began the cluster")
        before = c.status(1)["cluster"]
        c.kill(0)
        shutil.rmtree(c.data(0))
        c.spawn(0, *same)
        c.members(3, 1)
        c.wait(range(3))
        t.equal(mine(c, 0)["cluster"], before, "the cluster")


def no_second_cluster_by_init(t):
    """The same with cluster.init alone: a note beside the folder says that it had data; and where the whole disk is lost, the
    other members connect before a cluster is begun."""
    with Cluster(t, "init", 3) as c:
        c.start()
        before, old, home = c.status(1)["cluster"], c.id_of(0), os.path.join(c.folder, "n0")
        c.kill(0)
        shutil.rmtree(c.data(0))
        c.spawn(0, "--cluster-init")
        t.check(c.process[0].wait(f.LIMIT) != 0, "it does not start")
        t.check("raft.begun says that the folder has lost" in c.log(0) and "set cluster.join" in c.log(0), f"the cause and the cure: {c.log(0)}")
        c.process[0] = None
        shutil.rmtree(home)
        c.spawn(0, "--cluster-init")
        f.wait_for("a word on why it does not begin", lambda: "cluster_not_begun" in c.log(0))
        t.check("cluster.join 127.0.0.1:" in c.log(0), f"the cure: {c.log(0)}")
        time.sleep(4)  # in which it would begin one, if it did
        t.equal(c.own(0)["members"], [], "the members that it knows")
        c.kill(0)
        shutil.rmtree(home)
        c.spawn(0, "--cluster-join", c.endpoints[1])
        c.members(3, 1)
        c.wait(range(3))
        t.equal(mine(c, 0)["cluster"], before, "the cluster")
        t.check(c.id_of(0) != old, "it has joined, under a new id")


with f.Test("cluster_change") as test:
    for part in (undone_after_a_crash, undone_behind_a_snapshot, refused_without_a_majority, no_second_cluster,
                 same_settings, no_second_cluster_by_init):
        test.section(part)
