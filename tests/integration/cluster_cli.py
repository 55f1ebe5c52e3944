#!/usr/bin/env python3
"""
firn cluster against real members: the status as a table and as JSON, with and without a leader; changes, good and mistyped;
a standby from its first start to its vote.
"""
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from cluster_world import Cluster, SEQ  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position

HEADER = ["ID", "ADDRESS", "ROLE", "INDEX", "LAG", "SEEN"]


def rows(said):
    """The table as {id: {column: text}}."""
    lines = said.split("\n\n", 1)[1].splitlines()
    table = [re.split(r" {2,}", line.strip()) for line in lines if line]
    return {row[0]: dict(zip(table[0], row)) for row in table[1:]}


def status(c, i, code=0):
    """As JSON."""
    got, said = c.firn(i, "status", "--json")
    c.t.equal(got, code, f"exit status of status --json: {said}")
    return json.loads(said.splitlines()[0])


def role(c, i, who):
    return {m["id"]: m["role"] for m in status(c, i)["members"]}.get(who)


def ticket(c, i):
    """Whether a number is granted."""
    try:
        http = f.Http(c.ticket[i])
        got = http.get(f"/generate?seq={SEQ}")[0] == 200
        http.close()
        return got
    except f.Gone:
        return False


def shown(t):
    with Cluster(t, "shown", 3) as c:
        c.start()
        leader = c.leader()
        ids = [c.id_of(i) for i in range(3)]
        for asked in range(3):  # by way of any member it is what the leader sees
            code, said = c.firn(asked, "status")
            t.equal(code, 0, f"exit status: {said}")
            t.check(re.match(r"term \d+, index \d+, committed \d+, \d+ registers, snapshot at \d+, cluster [0-9a-f]{16}\n", said),
                    f"the first line: {said}")
            t.equal(said.splitlines()[2].split(), HEADER, "header")
            table = rows(said)
            t.equal(set(table), set(ids), "members")
            for i, who in enumerate(ids):
                t.equal(table[who]["ROLE"], "voter, leader" if i == leader else "voter", f"role of {i}")
                t.equal((table[who]["ADDRESS"], table[who]["SEEN"]), (c.endpoints[i], "yes"), f"member {i}")
                t.check(table[who]["INDEX"].isdigit() and table[who]["LAG"].isdigit(), f"numbers of {i}: {said}")
            d = status(c, asked)
            t.equal((d["leader"], d["answered_by"], d["state"]), (ids[leader],) * 2 + ("leader",), "who leads")
            t.equal({m["id"] for m in d["members"] if m["leader"]}, {ids[leader]}, "which of the members leads")
            t.equal(sorted(m["address"] for m in d["members"]), sorted(c.endpoints), "addresses")

        stays, gone = (leader + 1) % 3, (leader, (leader + 2) % 3)
        for i in gone:
            c.kill(i)
        f.wait_for("no leader to be known", lambda: c.own(stays)["leader"] is None)
        code, said = c.firn(stays, "status")
        t.equal(code, 1, f"exit status without a leader: {said}")
        t.check(said.startswith("NO LEADER") and "more than half of the voters" in said, f"it says so: {said}")
        t.check(all(", leader" not in r["ROLE"] for r in rows(said.split("\nfirn cluster:")[0]).values()), f"nobody leads: {said}")
        d = status(c, stays, 1)
        t.equal((d["leader"], d["answered_by"]), (None, ids[stays]), "the leader, and who says so")
        t.check(not any(m["leader"] for m in d["members"]), f"nobody leads: {d}")
        code, said = c.firn(gone[0], "status")
        t.equal(code, 2, f"exit status where nobody listens: {said}")
        t.check("is firnd running there?" in said, f"what to do: {said}")
        c.restart(gone[0])
        f.wait_for("a leader", lambda: c.firn(stays, "status")[0] == 0)

        alone = f.Firnd(t, t.state("alone"), "--store=memory:")
        p = c.home[stays]
        c.home[stays] = alone.home
        code, said = c.firn(stays, "status")
        c.home[stays] = p
        t.equal(code, 2, f"exit status where there is no cluster: {said}")
        t.check("no member of a cluster" in said, f"the cause: {said}")
        alone.stop()


def changed(t):
    with Cluster(t, "changed", 3) as c:
        c.start()
        leader = c.leader()
        for words, part in ((("remove", "zzz"), "'zzz' is not a member ID"),
                            (("remove", "0"), "16 hexadecimal digits"),
                            (("promote", "12345678901234567"), "16 hexadecimal digits"),
                            (("remove", '1"}'), "16 hexadecimal digits"),
                            (("transfer", "-1x"), None),
                            (("add", "5", "nonsense"), "'nonsense' is not an address"),
                            (("add", "5", 'x":1'), "is not an address"),
                            (("add", "5"), "firn cluster --help"),
                            (("remove",), "firn cluster --help"),
                            (("frobnicate",), "firn cluster --help"),
                            (("remove", "0123456789abcdef"), "no member has the id 0123456789abcdef"),
                            (("promote", "0123456789abcdef"), "no member has the id 0123456789abcdef"),
                            (("transfer", "0123456789abcdef"), "no voter"),
                            (("add", "5", c.endpoints[0]), "another member has this address")):
            for asked in (leader, (leader + 1) % 3):
                code, said = c.firn(asked, *words)
                t.equal(code, 2, f"exit status of {words}: {said}")
                t.check("done" not in said and (not part or part in said), f"{words} says why: {said}")
        t.equal(len(status(c, 0)["members"]), 3, "members after all that")
        http = f.Http(c.home[0])
        for who in ("zzz", "-1", "0x12", " 12", "12345678901234567"):
            code, body = http.post("/v1/cluster", {"action": "remove", "id": who})
            t.equal(code, 400, f"an id '{who}' over HTTP: {body}")
        http.close()

        to = (leader + 1) % 3
        t.equal(c.firn(to, "transfer", c.id_of(to)), (0, f"done: transfer {c.id_of(to)}\n"), "the lead goes to")
        f.wait_for("the new leader", lambda: c.leader() == to)
        term = c.status(to)["term"]
        code, said = c.firn(0, "transfer", "--json")
        t.equal((code, json.loads(said)), (0, {"done": "transfer"}), "transfer --json")
        # On a busy machine the lead may have come back by now, in a term after the other one's.
        f.wait_for("another leader", lambda: c.leader() != to or c.status(to)["term"] > term + 1)

        out = c.id_of((c.leader() + 1) % 3)
        asked = c.leader()
        members = status(c, asked)["members"]
        code, said = c.firn(asked, "remove", out, "--json")
        t.equal((code, json.loads(said)), (0, {"done": "remove"}), "remove --json")
        t.check(out not in [m["id"] for m in status(c, asked)["members"]], "it is out")
        gone = c.endpoints.index(next(m["address"] for m in members if m["id"] == out))
        removed_again(t, c, out, [i for i in range(3) if i != gone])


def removed_again(t, c, out, stay):
    """It is the same request, for any member, also after all of them were restarted; what never was an id is a mistake."""
    wrong = f"{int(out, 16) ^ 1:016x}"
    for when in ("before", "after"):
        for i in stay:
            t.equal(c.firn(i, "remove", out), (0, f"done: remove {out}\n"), f"a removal again, {when} a restart")
            code, said = c.firn(i, "remove", wrong)
            t.equal(code, 2, f"exit status of the removal of no member: {said}")
            t.check(f"no member has the id {wrong}" in said, f"it is named: {said}")
        if when == "before":
            for i in stay:
                c.kill(i)
            for i in stay:
                c.spawn(i)
            c.wait(stay)


def votes(t, c, up, down, should):
    """With those members stopped tickets are granted, or not."""
    for i in down:
        c.pause(i)
    if should:
        f.wait_for("a ticket", lambda: ticket(c, up))
    else:
        f.wait_for("no leader to be known", lambda: c.own(up)["leader"] is None)
        t.check(not ticket(c, up), "no ticket without a majority")
    c.resume()
    c.wait([up])
    f.wait_for("a ticket again", lambda: ticket(c, up))


def standby(t):
    """It joins, catches up, counts in no majority; promoted, it does."""
    with Cluster(t, "standby", 4) as c:
        c.spawn(0, "--cluster-init", "--cluster-fresh")
        c.wait([0])
        for i in (1, 2):
            c.spawn(i, "--cluster-join", c.endpoints[0])
        c.members(3)
        c.wait(range(3))
        c.sequence()
        c.spawn(3, "--cluster-join", c.endpoints[0], "--cluster-standby")
        who = re.search(r"id=([0-9a-f]{16})", f.wait_for("its id", lambda: re.search(r"member id=\S+", c.log(3))).group(0)).group(1)
        f.wait_for("a standby", lambda: role(c, 0, who) == "standby")
        f.wait_for("it to have all", lambda: {m["id"]: m.get("lag") for m in status(c, 0)["members"]}[who] == 0)
        t.equal(rows(c.firn(3, "status")[1])[who]["ROLE"], "standby", "its role in the table")
        f.wait_for("a ticket by way of it", lambda: ticket(c, 3))
        time.sleep(1)  # in which it would ask for a vote, if it did
        t.equal(role(c, 0, who), "standby", "it stays")
        c.kill(3)
        c.spawn(3, "--cluster-join", c.endpoints[0], "--cluster-standby")
        c.wait([3])
        t.equal(role(c, 0, who), "standby", "it stays one after a restart")

        votes(t, c, 0, (2, 3), True)  # two of three
        votes(t, c, 0, (1, 2), False)  # one of three, and the standby does not help
        code, said = c.firn(0, "promote", who, "--json")
        t.equal((code, json.loads(said)), (0, {"done": "promote"}), "promote --json")
        t.equal(role(c, 0, who), "voter", "it has a vote")
        t.equal(c.firn(0, "promote", who)[0], 0, "to promote a voter is done already")
        votes(t, c, 0, (2, 3), False)  # two of four
        votes(t, c, 0, (2,), True)
        t.equal(role(c, 0, who), "voter", "it has it still")


def added(t):
    """A firnd that reaches none of them is let in from the other side."""
    with Cluster(t, "added", 2) as c:
        c.spawn(0, "--cluster-init", "--cluster-fresh")
        c.wait([0])
        c.spawn(1, "--cluster-join", f"127.0.0.1:{raft.free_ports(1)[0]}", "--cluster-standby")
        f.wait_for("it to try", lambda: "join_failed" in c.log(1))
        who = re.search(r"member id=([0-9a-f]{16})", c.log(1)).group(1)
        code, said = c.firn(0, "add", who, c.endpoints[1])
        t.equal((code, said), (0, f"done: add {who}\n"), "add")
        t.equal(role(c, 0, who), "standby", "its role")
        c.wait([1])
        t.equal(role(c, 1, who), "standby", "its role, as it passes it on")
        t.equal(c.firn(1, "promote", who), (0, f"done: promote {who}\n"), "promote, by way of itself")
        t.equal(role(c, 1, who), "voter", "its role")
        t.equal(c.firn(0, "add", who, c.endpoints[1])[0], 0, "to add a member is done already")
        code, said = c.firn(0, "add", who, "127.0.0.1:1")
        t.check(code == 2 and "another address" in said, f"under another address: {said}")


with f.Test("cluster_cli") as test:
    for part in (shown, changed, standby, added):
        test.section(part)
