#!/usr/bin/env python3
"""
A sequence is deleted at one server while another has numbers of it in hand, and is created again: no number comes twice, on
a file that two processes share, in a cluster of three firnds, and on an etcd. And who may delete, and how many sequences
there may be.
"""
import hashlib
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position
from engines.etcd import Etcd  # noqa: E402  pylint: disable=wrong-import-position

PATIENT = "--store-timeout-ms=20000"


def send(home, method, path, body=b"", token=None):
    c = f.Http(home)
    try:
        c.ask(path, method, body, f"Authorization: Bearer {token}\r\n" if token else "")
        status, answer = c.answer()
        return status, answer.decode()
    finally:
        c.close()


def create(t, home, status, **spec):
    c = f.Http(home)
    got, body = c.post("/v1/sequences", spec)
    c.close()
    t.equal(got, status, f"POST of {spec}: {body}")
    return body


def error_of(c, *words):
    try:
        return f"no error: {c.do(*words)}"
    except f.RespError as e:
        return str(e)


def life(t, home, ticket):
    """Two servers of one store: 0 deletes, 1 goes on as long as it can."""
    here, there = f.Resp(ticket[0]), f.Resp(ticket[1])
    for mode in ("gapless", "range"):
        create(t, home[0], 201, name=mode, mode=mode)
        got = [c.do("INCR", mode) for _ in range(3) for c in (here, there)]
        status, body = send(home[0], "DELETE", "/v1/sequences/" + mode)
        t.check(status == 200 and '"state":"deleted"' in body, f"{status} {body}")
        t.equal(send(home[0], "DELETE", "/v1/sequences/" + mode)[0], 404, "it is gone")
        t.equal(send(home[1], "GET", "/v1/sequences/" + mode)[0], 404, "for the other server, too")
        t.check("was deleted" in error_of(here, "INCR", mode), "INCR does not create it again")
        for _ in range(300):  # numbers in hand are still given: they are below all that follow
            try:
                got.append(there.do("INCR", mode))
            except f.RespError as e:
                t.check("was deleted" in str(e), str(e))
                break
        else:
            t.check(False, f"the other server goes on and on with {mode}")
        t.check(mode == "range" or len(got) == 6, f"of a gapless sequence none is in hand: {got}")
        t.check(f'"name":"{mode}"' not in send(home[1], "GET", "/v1/sequences?limit=1000")[1], "it is not listed")
        body = create(t, home[1], 409, name=mode, mode=mode)
        t.check(b"sequence-deleted" in body, body)
        other = "range" if mode == "gapless" else "gapless"
        create(t, home[1], 409, name=mode, mode=other, start=10**6)
        create(t, home[1], 201, name=mode, mode=mode, start=10**6)
        got += [c.do("INCR", mode) for _ in range(3) for c in (there, here)]
        t.equal(len(set(got)), len(got), f"no number comes twice: {got}")
        t.check(min(got[-6:]) == 10**6, f"it goes on where it was told to: {got[-6:]}")
    create(t, home[0], 201, name="invoice", dated={"reset": "day"})
    dated = [f.get(h, "/v1/sequences/invoice/next")[1]["id"] for h in home[:2]]
    t.equal(send(home[0], "DELETE", "/v1/sequences/invoice")[0], 200, "a dated one")
    t.equal([f.get(h, "/v1/sequences/invoice/next")[0] for h in home[:2]], [404, 404], "its period ends, too")
    create(t, home[1], 201, name="invoice", dated={"reset": "day"})
    dated += [f.get(h, "/v1/sequences/invoice/next")[1]["id"] for h in home[:2]]
    t.equal(len(set(dated)), 4, f"none of its numbers comes twice: {dated}")
    here.close()
    there.close()


def processes_on_one_file(t):
    state = t.steady("file")
    servers = [f.Firnd(t, state, PATIENT).wait_ready() for _ in range(2)]
    life(t, [s.home for s in servers], [s.ticket for s in servers])
    for s in servers:
        t.equal(s.stop(), 0, "it ends cleanly")
    again = f.Firnd(t, state, PATIENT).wait_ready()
    c = f.Resp(again.ticket)
    t.equal(c.do("DEL", "range", "nothing"), 1, "DEL answers how many there were")
    c.close()
    t.equal(again.stop(), 0, "it ends cleanly")
    again = f.Firnd(t, state, PATIENT).wait_ready()
    c = f.Resp(again.ticket)
    t.check("was deleted" in error_of(c, "INCR", "range"), "also after a restart")
    c.close()
    t.equal(again.stop(), 0, "it ends cleanly")


def members_of_a_cluster(t):
    os.environ["FIRN_BIN_DIR"] = t.bin
    folder = t.state("cluster")
    os.mkdir(folder)
    c = raft.Raft(folder, options=(PATIENT, "--cluster-election-ms=1000"))
    try:
        c.start()
        f.wait_for("members that are ready", lambda: all(f.get(h, "/readyz")[0] == 200 for h in c.home))
        life(t, c.home, c.ticket)
    except raft.RaftError as e:
        raise f.NotThere(str(e)) from e
    finally:
        c.stop()


def servers_on_etcd(t):
    folder = t.state("etcd")
    os.mkdir(folder)
    engine = Etcd(folder, nodes=1)
    try:
        engine.start()
        env = {"FIRN_STORE": engine.url("deleted")}
        servers = [f.Firnd(t, t.steady(f"e{i}"), "--store-init=yes", env=env) for i in range(2)]
        for s in servers:  # tickets need not wait for the slots of a new store
            f.wait_for("tickets", lambda s=s: f.get(s.ticket, "/generate")[0] == 200)
        life(t, [s.home for s in servers], [s.ticket for s in servers])
        for s in servers:
            t.equal(s.stop(), 0, "it ends cleanly")
    finally:
        engine.stop()


def who_may_delete(t):
    words = {name: name + "-secret" for name in ("shop", "boss")}
    config = "auth:\n  tokens:\n"
    for name, word in words.items():
        config += (f"    - name: {name}\n      token_sha256: {hashlib.sha256(word.encode()).hexdigest()}\n"
                   f"      sequences: [\"shop.*\", one]\n      max_sequences: 2\n" +
                   ("      admin: true\n" if name == "boss" else ""))
    path = os.path.join(t.dir, "tokens.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(config)
    s = f.Firnd(t, t.steady("tokens"), config=path).wait_ready()
    c = f.Resp(s.ticket)
    t.check("NOAUTH" in error_of(c, "DEL", "shop.a"), "without a token")
    c.do("AUTH", words["shop"])
    t.equal(c.do("INCR", "shop.a"), 1, "one who may take numbers")
    t.check("admin" in error_of(c, "DEL", "shop.a"), "may not delete")
    t.equal(send(s.home, "DELETE", "/v1/sequences/shop.a")[0], 401, "nor one without a token")
    t.equal(send(s.home, "DELETE", "/v1/sequences/shop.a", token=words["shop"])[0], 403, "nor over HTTP")
    t.equal(send(s.home, "DELETE", "/v1/sequences/other", token=words["boss"])[0], 403, "an admin in its scope only")
    t.equal(send(s.home, "DELETE", "/v1/sequences/shop.a", token=words["boss"])[0], 200, "there it may")
    t.equal([c.do("INCR", n) for n in ("shop.b", "shop.c", "one")], [1, 1, 1], "names of its own")
    t.check("max_sequences" in error_of(c, "INCR", "shop.d"), "but not more than it may have")
    t.check("max_sequences" in error_of(c, "SETNX", "shop.d", 1), "nor by SETNX")
    status, body = send(s.home, "POST", "/v1/sequences", b'{"name":"shop.d"}', words["boss"])
    t.check(status == 409 and "max_sequences" in body, f"nor over HTTP: {status} {body}")
    t.equal([c.do("INCR", n) for n in ("shop.b", "shop.c", "one")], [2, 2, 2], "what is there goes on")
    t.equal(send(s.home, "DELETE", "/v1/sequences/shop.b", token=words["boss"])[0], 200, "one is deleted")
    t.equal(c.do("INCR", "shop.d"), 1, "and there is room for another")
    c.do("AUTH", words["boss"])
    t.equal(c.do("DEL", "shop.c", "shop.d"), 2, "two by one DEL")
    c.close()
    t.equal(s.stop(), 0, "it ends cleanly")
    done = re.findall(r" info +admin action=(\w+) target=(\S+) by=(\S+) from=127\.0\.0\.1:\d+ result=(\w+|\".*\")", s.log())
    t.equal([d[:3] for d in done], [("delete", "shop.a", "token:boss"), ("create", "shop.d", "token:boss"),
                                    ("delete", "shop.b", "token:boss"), ("delete", "shop.c", "token:boss"),
                                    ("delete", "shop.d", "token:boss")], "who did what is in the log, each action once")
    t.check([d[3] == "done" for d in done] == [True, False, True, True, True] and "max_sequences" in done[1][3],
            f"and how it ended: {done}")


def so_many_and_no_more(t):
    s = f.Firnd(t, t.steady("limit"), "--limits-sequences=3").wait_ready()
    c = f.Resp(s.ticket)
    t.equal([c.do("INCR", n) for n in "abc"], [1, 1, 1], "three sequences")
    t.check("limits.sequences" in error_of(c, "INCR", "d"), "a fourth is refused")
    t.check("limits.sequences" in error_of(c, "SETNX", "d", 7), "by SETNX, too")
    body = create(t, s.home, 409, name="d")
    t.check(b"too-many-sequences" in body and b"limits.sequences" in body, body)
    t.equal([c.do("INCR", n) for n in "abc"], [2, 2, 2], "those that exist go on")
    create(t, s.home, 200, name="a", mode="range")
    t.equal((s.metric("firn_sequences"), s.metric("firn_sequences_limit"), c.do("DBSIZE")), (3, 3, 3), "the count")
    t.equal(c.do("DEL", "b"), 1, "one is deleted")
    t.equal(c.do("INCR", "d"), 1, "and another has room")
    t.equal(s.metric("firn_sequences"), 3, "the count")
    c.close()
    t.equal(s.stop(), 0, "it ends cleanly")
    s = f.Firnd(t, s.state, "--limits-sequences=3").wait_ready()
    f.wait_for("the count after a start", lambda: s.metric("firn_sequences") == 3)
    t.equal(s.stop(), 0, "it ends cleanly")


with f.Test("deleted") as test:
    for part in (processes_on_one_file, members_of_a_cluster, servers_on_etcd, who_may_delete, so_many_and_no_more):
        test.section(part)
