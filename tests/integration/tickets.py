#!/usr/bin/env python3
"""
Sequences at their edges: the last numbers, requests that ask for too much, dated sequences over the Redis
protocol, names that only firn may use, and the order of pipelined requests.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from firnd import Firnd, Http, Resp, RespError, Test  # noqa: E402


def error_of(resp, *words):
    try:
        return f"no error but {resp.do(*words)!r}"
    except RespError as e:
        return str(e)


def error_of_answer(resp):
    try:
        return f"no error but {resp.answer()!r}"
    except RespError as e:
        return str(e)


def create(t, http, **spec):
    status, body = http.post("/v1/sequences", spec)
    t.check(status == 201, f"{spec['name']} is created: {status} {body[:200]}")


def serve(t):
    f = Firnd(t, t.steady(f"store-{t.passed}"))
    f.wait_ready()
    return Http(f.ticket), Resp(f.ticket)


def last_numbers(t):
    http, r = serve(t)
    create(t, http, name="ten", mode="gapless", max=10)
    t.equal(r.do("INCRBY", "ten", "7"), 7, "seven of ten")
    t.check("ERR" in error_of(r, "INCRBY", "ten", "5"), "five of the last three are refused")
    t.equal([r.do("INCR", "ten") for _ in range(3)], [8, 9, 10], "and the three are still there")
    t.check("last number" in error_of(r, "INCR", "ten"), "then it is used up")
    create(t, http, name="odd", mode="range", start=1, step=2, offset=1, max=9)
    t.equal([r.do("INCR", "odd") for _ in range(5)], [1, 3, 5, 7, 9], "a range sequence up to its last number")
    t.check("ERR" in error_of(r, "INCR", "odd"), "and not beyond")


def too_many(t):
    _, r = serve(t)
    t.equal(r.do("INCR", "big"), 1, "one")
    t.check("ERR" in error_of(r, "INCRBY", "big", "1000001"), "more than a commit holds is refused")
    t.check("ERR" in error_of(r, "FIRN.NEXT", "ticket", "SEQ", "big", "COUNT", "100001"), "and more than n may be")
    t.equal(r.do("INCR", "big"), 2, "which takes no number")


def dated(t):
    http, r = serve(t)
    create(t, http, name="inv", mode="gapless", dated={"reset": "year", "digits": 4})
    first = r.do("FIRN.NEXT", "dated", "SEQ", "inv")
    t.check(first.endswith("-0001") and len(first) == 9, f"a dated number: {first}")
    t.check("dated" in error_of(r, "INCR", "inv"), "INCR would give the same integers each year: refused")
    t.check("dated" in error_of(r, "GET", "inv"), "GET, too")
    t.equal(r.do("FIRN.NEXT", "dated", "SEQ", "inv")[-4:], "0002", "and none was taken")
    r.ask("FIRN.NEXT", "dated", "SEQ", "inv")
    r.ask("INCR", "inv")
    t.equal(r.answer()[-4:], "0003", "a dated number")
    t.check("dated" in error_of_answer(r), "and INCR is refused in the same breath, too")
    t.check("ERR" in error_of(r, "INCR", "inv@" + first[:4]), "the period's own counter is out of reach")
    status, body = http.get("/v1/sequences")
    t.check(status == 200 and b"@" not in body, "and is not listed")
    r.do("INCR", "inv:" + first[:4])
    t.equal(r.do("FIRN.NEXT", "dated", "SEQ", "inv")[-4:], "0004", "nor can another name reach it")


def order(t):
    """Names that share a place in the coordinator's table, pipelined on one connection."""
    http, r = serve(t)
    for name in ("y1476", "seqx"):
        create(t, http, name=name, mode="gapless")
    for _ in range(20):
        for word in ("y1476", "seqx", "seqx", "seqx", "seqx"):
            r.ask("INCR", word)
        numbers = [r.answer() for _ in range(5)]
        t.check(numbers[1:] == sorted(numbers[1:]), f"pipelined numbers rise: {numbers}")
    for words in (("INCR", "h"), ("INCR", "h"), ("GET", "h")):
        r.ask(*words)
    t.equal([r.answer() for _ in range(3)], [1, 2, "3"], "GET sees what was taken before it")


def runs(t):
    """The same request many times over, as pipelining clients send it: an answer each, in order."""
    http, r = serve(t)
    create(t, http, name="gapless", mode="gapless")
    create(t, http, name="range", mode="range")
    create(t, http, name="few", mode="gapless", max=5)
    for name in ("gapless", "range"):
        at = 0
        for n in (1, 2, 3, 100, 2500, 7):
            r.send(f"*2\r\n$4\r\nINCR\r\n${len(name)}\r\n{name}\r\n".encode() * n)
            t.equal([r.answer() for _ in range(n)], list(range(at + 1, at + n + 1)), f"{n} of {name} in a row")
            at += n
    for word in ("INCR", "INCR", "GET", "INCR", "INCR", "INCR"):
        r.ask(word, "gapless")
    t.equal([r.answer() for _ in range(6)], [2614, 2615, "2616", 2616, 2617, 2618], "GET between runs sees the first")
    for name in ("range", "gapless", "gapless", "range", "range"):
        r.ask("INCR", name)
    t.equal([r.answer() for _ in range(5)], [2614, 2619, 2620, 2615, 2616], "runs of two sequences in turn")
    r.ask("INCR", "few")
    r.answer()
    for _ in range(8):
        r.ask("INCR", "few")
    answers = []
    for _ in range(8):
        try:
            answers.append(r.answer())
        except RespError as e:
            answers.append("last number" in str(e))
    t.equal(answers, [2, 3, 4, 5, True, True, True, True], "the last numbers, and an error for each that got none")
    r.send(b"*2\r\n$9\r\nFIRN.NEXT\r\n$9\r\nsnowflake\r\n" * 3000)
    ids = [int(r.answer()) for _ in range(3000)]
    t.check(ids == sorted(set(ids)), "3,000 Snowflake IDs in a row rise")
    for cut in range(1, 55):  # a run that is cut anywhere by the network
        request = b"*2\r\n$4\r\nINCR\r\n$7\r\ngapless\r\n" * 2
        r.send(request[:cut])
        r.send(request[cut:])
        a, b = r.answer(), r.answer()
        t.check(b == a + 1, f"cut after {cut} bytes: {a}, {b}")


def restarts(t):
    """A clean end gives back what is in hand; after kill -9 that is a gap, and never comes again."""
    state, taken = t.steady("restarts"), []
    for i in range(3):
        f = Firnd(t, state)
        f.wait_ready()
        taken.append(Resp(f.ticket).do("INCR", "visits"))
        f.stop()
    t.equal(taken, [1, 2, 3], "INCR over clean restarts")
    f = Firnd(t, state)
    f.wait_ready()
    t.equal(Resp(f.ticket).do("INCR", "visits"), 4, "and once more")
    f.kill()
    f = Firnd(t, state)
    f.wait_ready()
    t.check(Resp(f.ticket).do("INCR", "visits") > 4, "after kill -9 numbers go on above")
    f.stop()


def main():
    with Test("tickets") as t:
        for section in (last_numbers, too_many, dated, order, runs, restarts):
            t.section(section)


main()
