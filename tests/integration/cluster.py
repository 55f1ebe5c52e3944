#!/usr/bin/env python3
"""
A cluster of firnds: it grows and shrinks while it serves, its leaders are killed, most of it stands still, a member
loses its disk, all of it is restored, one goes on without the others. Gapless tickets stay without a gap and a repeat, IDs
without a duplicate.

FIRN_TEST_KILLS sets how many leaders are killed (10; a long run takes 60).
"""
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from cluster_world import Cluster, Load, SEQ  # noqa: E402  pylint: disable=wrong-import-position

KILLS = int(os.environ.get("FIRN_TEST_KILLS", "10"))


def grows_and_shrinks(t):
    """1 -> 3 -> 5 -> 3 under load, the leader among those that go; of five any two may be lost."""
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
        lost = [leader, (leader + 2) % 5]
        for i in lost:
            c.kill(i)
        load.wait(50)
        t.check(True, "two of five were lost, the leader among them, and tickets came on")
        for i in lost:
            c.spawn(i)
        c.wait(lost)
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
    with Cluster(t, "kills", 3, "--cluster-election-ms=150", "--cluster-snapshot-every=300", "--cluster-snapshot-keep=50") as c:
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


def raft_metrics(c, i):
    """firn_raft_* of member i."""
    found = {}
    for line in f.get(c.home[i], "/metrics")[1].splitlines():
        if line.startswith("firn_raft_"):
            name, value = line.rsplit(" ", 1)
            if name in found:
                raise f.NotThere(f"{name} is there twice")
            found[name] = float(value)
    return found


def numbers_to_watch(t):
    """firn_raft_* at /metrics of each member."""
    with Cluster(t, "metrics", 3, "--cluster-snapshot-every=50", "--cluster-snapshot-keep=10") as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(150)
        load.end()

        def of(i):
            return raft_metrics(c, i)

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
                    m["firn_raft_election_timeout_seconds"] >= 0.15 and
                    m["firn_raft_registers"] > 1000, f"there are entries, registers and snapshots: {m}")
            lags = {n: v for n, v in m.items() if n.startswith("firn_raft_peer_lag")}
            t.equal(len(lags), 2 if leads else 0, f"the leader alone knows of two others: {lags}")
            t.check(max(lags.values(), default=0) < 20, f"who have nearly everything: {lags}")
            if leads:
                t.check(m["firn_raft_writes_total"] >= m["firn_raft_entries_total"] > 0, f"writes share entries: {m}")
                t.check(all(f'member="{c.id_of(k)}"' in " ".join(lags) for k in range(3) if k != leader), "by their ids")
        forwarded = 'firn_raft_forwarded_total{kind="write"}'
        f.minted(c.ticket[follower], f"/generate?seq={SEQ}")
        f.wait_for("it to be counted as passed on", lambda: of(follower)[forwarded] > seen[follower][forwarded])
        c.kill(leader)
        f.wait_for("the change to be counted", lambda: of(follower)["firn_raft_leader_changes_total"] >
                   seen[follower]["firn_raft_leader_changes_total"] and of(follower)["firn_raft_has_leader"] == 1)
        t.check(of(follower)["firn_raft_term"] > seen[follower]["firn_raft_term"], "and the term is another")
        f.wait_for("the lost one to be seen as lost", lambda: min(
            (v for n, v in of(c.leader()).items() if n.startswith("firn_raft_peer_seen")), default=1) == 0)


def a_lost_lead(t):
    """A leader that hears from no other member gives up the lead, and counts it; one that hands over does not."""
    with Cluster(t, "lost-lead", 3) as c:
        c.start()
        lost = "firn_raft_leadership_lost_total"

        def of(i):
            return raft_metrics(c, i)
        leader = c.leader()
        before = [of(i)[lost] for i in range(3)]  # a machine that stalls may have lost some
        t.equal(c.firn(leader, "transfer")[0], 0, "the lead is handed over")
        f.wait_for("another leader", lambda: of(leader)["firn_raft_has_leader"] == 1 and of(leader)["firn_raft_is_leader"] == 0)
        t.equal(of(leader)[lost], before[leader], "that is no loss")
        leader = c.leader()
        for i in range(3):
            if i != leader:
                c.pause(i)
        f.wait_for("the loss to be counted", lambda: of(leader)[lost] > before[leader])
        t.check("leadership_lost" in c.log(leader), "it is in the log")
        c.resume()
        f.wait_for("a leader again", lambda: all(of(i)["firn_raft_has_leader"] == 1 for i in range(3)))


def minority_alone(t):
    """Two of three stand still: the third serves out its window, says that it is not ready, and recovers."""
    with Cluster(t, "minority", 3, "--cluster-window-ms=10000") as c:
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
        began = time.monotonic()
        status, said = c.firn(alone, "transfer")
        t.check(status != 0 and "no leader" in said, f"nor is there a lead to hand over: {said}")
        t.check(time.monotonic() - began < 20, "and that is told long before the 30 s that it may take")

        def more():
            code, body = f.get(c.snowflake[alone], "/generate")
            ids.extend([int(body["id"])] if code == 200 else [])
            return code == 503
        f.wait_for("the window to end", more)
        t.equal(f.get(c.home[alone], "/readyz")[0], 503, "it says that it is not ready")
        c.resume()
        for i in range(3):
            f.wait_for(f"member {i} to be ready again", lambda i=i: f.get(c.home[i], "/readyz")[0] == 200)
            ids.append(int(f.minted(c.snowflake[i])["id"]))
        t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")
        t.equal(f.minted(c.ticket[alone], f"/generate?seq={SEQ}"), {"id": "1"}, "no ticket was lost")


def a_wiped_member(t):
    """It comes back as another one, by a snapshot; the one that it was is removed, by the leader itself."""
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

        c.members(3, other)
        c.wait([lost])
        t.check(c.id_of(lost) != old, "it has another id")
        t.check(old not in [m["id"] for m in c.status(other)["members"]], "its old one is gone")
        t.check("member_replaced" in "".join(c.log(i) for i in range(3)), "and that is in the leader's log")
        files = os.listdir(os.path.join(c.data(lost), "log"))
        t.check(any(n.startswith("snapshot-") for n in files), f"it got a snapshot, not the log: {files}")
        load.wait(20)
        load.end()
        load.check(t)


def told_of_its_removal(t):
    """A member that goes on after it was removed finds out, also when it starts again, and says what to do."""
    with Cluster(t, "removed", 3) as c:
        c.start()
        c.sequence()
        gone = (c.leader() + 1) % 3
        other = (gone + 1) % 3
        status, said = c.firn(other, "remove", c.id_of(gone))
        t.equal(status, 0, f"it was removed: {said}")

        def knows():
            try:
                return "\nfirn_raft_removed 1\n" in f.get(c.home[gone], "/metrics")[1]
            except f.Gone:
                return False  # it has just been started again
        for _ in range(2):
            f.wait_for("it to know", knows)
            f.wait_for("the cure in its log", lambda: "cluster.join" in c.log(gone))
            f.wait_for("clients to be told", lambda: (lambda status, said: status == 503 and "removed from the cluster" in str(said))(
                *f.get(c.ticket[gone], f"/generate?seq={SEQ}")))
            c.kill(gone)
            c.spawn(gone, "--cluster-join", c.endpoints[other])
        c.kill(gone)
        shutil.rmtree(c.data(gone))
        c.spawn(gone, "--cluster-join", c.endpoints[other])
        c.members(3, other)
        c.wait([gone])
        f.wait_for("it to be one again after the cure", lambda: "\nfirn_raft_removed 0\n" in f.get(c.home[gone], "/metrics")[1])


def restored(t):
    """From a copy of one member's folder: another incarnation, fenced, so that no ID comes again."""
    with Cluster(t, "restored", 3, "--cluster-window-ms=4000") as c:
        c.start()
        ids = []

        def take(n):
            for i in range(3):
                ids.extend(int(x) for x in f.minted(c.snowflake[i], f"/generate?n={n}")["ids"])
        take(100)
        before, members = c.status(0)["cluster"], {m["id"] for m in c.status(0)["members"]}
        c.snapshot(t.state("copy"))
        take(5000)
        c.restore(t.state("copy"))
        take(5000)
        t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")
        t.check(c.status(0)["cluster"] != before, "it is another incarnation")
        t.equal(members & {m["id"] for m in c.status(0)["members"]}, set(), "members that the old cluster knows")
        p = subprocess.run([os.path.join(t.bin, "firn"), "admin", "doctor", "--store", c.url("")],
                           capture_output=True, text=True, timeout=90, check=False)
        t.equal(p.returncode, 0, f"firn admin doctor, by raft://: {p.stdout} {p.stderr}")
        with open(os.path.join(t.state("copy"), "of"), encoding="ascii") as of:
            first = int(of.read())
        anew = c.status(0)["cluster"]
        c.kill(first)
        c.spawn(first, "--cluster-restore")  # left in its settings
        c.wait([first])
        t.equal((c.status(first)["cluster"], len(c.status(first)["members"])), (anew, 3), "it goes on as a member")
        t.check("restore_still_set" in c.log(first), "with a warning")
        c.stop()  # a copy of what was restored can be restored itself
        shutil.copytree(c.data(first), t.state("second"), symlinks=True)
        shutil.rmtree(c.data(first))
        shutil.copytree(t.state("second"), c.data(first))
        c.spawn(first, "--cluster-restore")
        c.wait([first])
        t.check(c.status(first)["cluster"] not in (before, anew), "it is yet another one")


def forced(t):
    """The majority is lost for good: the survivor goes on alone while it runs, as another incarnation, fenced."""
    with Cluster(t, "forced", 3, "--cluster-window-ms=4000") as c:
        c.start()
        c.sequence()
        ids, tickets = [], []

        def take(which):
            for i in which:
                ids.extend(int(x) for x in f.minted(c.snowflake[i], "/generate?n=3000")["ids"])
                tickets.append(f.minted(c.ticket[i], f"/generate?seq={SEQ}")["id"])

        def refused(words, *lost):
            code, said = c.firn(0, "remove", *lost)
            t.check(code == 2 and words in said, f"remove {lost}: {code} {said}")
        take(range(3))
        if c.leader() != 0:
            c.firn(0, "transfer", c.id_of(0))
        own, *others = (c.id_of(i) for i in range(3))
        before = c.status(0)["cluster"]
        refused("there is a leader", "--force", *others)
        f.wait_for("member 0 to have all", lambda: c.own(0)["applied_index"] >= c.status(1)["last_index"])
        c.pause(1)
        c.kill(2)
        f.wait_for("no leader to be known", lambda: c.own(0)["leader"] is None)
        refused("answers: it is not lost", "--force", *others)
        c.resume(1)
        c.kill(1)
        f.wait_for("no leader to be known", lambda: c.own(0)["leader"] is None)
        f.wait_for("it to be refused", lambda: "remove --force" in c.firn(0, "remove", others[0])[1])
        f.wait_for("its connections to end", lambda: "answers" not in c.firn(0, "remove", "--force", "5")[1])
        refused("0000000000000005 is not another member", "--force", "5", *others)
        refused(f"{own} is not another member", "--force", own, *others)
        refused("name every other member", "--force", others[0])
        refused("'zz' is not a member ID", "--force", "zz")
        t.equal(c.status(0)["cluster"], before, "the cluster after all that")

        code, said = c.firn(0, "remove", "--force", *others)
        t.equal(code, 0, f"remove --force: {said}")
        now = c.status(0)
        t.equal((len(now["members"]), now["state"]), (1, "leader"), "the members, and who leads")
        t.check(now["cluster"] != before and now["members"][0]["id"] not in (own, *others), "it is another incarnation, and member")
        take([0, 0])
        for i in (1, 2):
            shutil.rmtree(c.data(i))
            c.spawn(i, "--cluster-join", c.endpoints[0])
        c.members(3)
        c.wait(range(3))
        take(range(3))
        for i in range(3):
            c.kill(i)
        c.restart()
        t.equal((c.status(0)["cluster"], c.id_of(0)), (now["cluster"], now["members"][0]["id"]), "after a restart")
        take(range(3))
        t.equal((len(set(ids)), len(set(tickets))), (len(ids), len(tickets)), "IDs and tickets are distinct; how many")


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


def refused(t):
    """Settings that would be dangerous, or that lack something."""
    for args, words in (
            (("--cluster-listen", "0.0.0.0:9003", "--cluster-init"), "cluster.plain"),
            (("--cluster-listen", "127.0.0.1:1",), "cluster.init on the first"),
            (("--cluster-listen", "nonsense", "--cluster-init"), "no address"),
            (("--store=sqlite:x.db", "--cluster-listen", "127.0.0.1:1", "--cluster-init"), "leave the store out"),
            (("--cluster-listen", "127.0.0.1:1", "--cluster-init", "--cluster-tls-ca", __file__), "all three")):
        p = subprocess.run([os.path.join(t.bin, "firnd"), "--no-config", "--state-dir",
                            t.state("refused"), *([] if "--store=sqlite:x.db" in args else ["--store=raft:"]), *[w for p in ("home", "snowflake", "ticket")
                                                  for w in (f"--listen-{p}", "127.0.0.1:0")], *args],
                           capture_output=True, text=True, timeout=f.LIMIT, check=False)
        t.check(p.returncode in (1, 2) and words in p.stderr, f"{args}: {p.returncode} {p.stderr}")


with f.Test("cluster") as test:
    for part in (refused, grows_and_shrinks, leaders_killed, numbers_to_watch, a_lost_lead, minority_alone,
                 a_wiped_member, told_of_its_removal, restored, forced, init_left):
        test.section(part)
