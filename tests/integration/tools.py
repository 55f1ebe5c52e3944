#!/usr/bin/env python3
"""
The tools that measure, compare, advise, watch and audit, against real servers: firn bench URL, compare, choose,
top, verify --follow and audit.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from firnd import BAD_WORDS, LIMIT, Firnd, Test  # noqa: E402


class Ran:
    """One firn that has ended."""

    def __init__(self, t, *args, stdin=""):
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
        p = subprocess.run([os.path.join(t.bin, "firn"), *args], input=stdin, capture_output=True, text=True,
                           timeout=LIMIT * 2, cwd=t.dir, env=env, check=False)
        self.status, self.out, self.err = p.returncode, p.stdout, p.stderr
        for word in BAD_WORDS:
            t.check(word not in self.err, f"firn {' '.join(args)} is free of '{word}': {self.err[:3000]}")

    def json(self):
        return json.loads(self.out)


def firn(t, status, *args, stdin=""):
    r = Ran(t, *args, stdin=stdin)
    t.check(r.status == status, f"firn {' '.join(args)} ends with {r.status}, should be {status}: {r.out[-400:]} {r.err[-600:]}")
    return r


# --- firn bench URL ---


def bench(t):
    a, b = Firnd(t, t.state("bench-a")), Firnd(t, t.state("bench-b"))
    a.wait_ready()
    b.wait_ready()
    snowflake, incr = f"http://{a.snowflake}/generate", f"redis://{a.ticket}/INCR/orders"
    r = firn(t, 0, "bench", snowflake, "--requests", "500", "--connections", "5", "--save", "a.json", "--json").json()
    t.equal((r["requests"], r["errors"], r["check"]["ids"], r["check"]["distinct"], r["check"]["exact"]),
            (500, 0, 500, 500, True), "a closed loop: answers, errors, IDs, distinct, exact")
    latency = r["latency_ns"]
    t.check(0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p99.9"] <= latency["max"], f"percentiles rise: {latency}")
    with open(os.path.join(t.dir, "a.json"), encoding="utf-8") as f:
        t.equal(json.load(f), r, "what --save keeps")

    r = firn(t, 0, "bench", incr, "--rate", "200", "--seconds", "1", "--connections", "4", "--save", "b.json", "--json").json()
    t.check(150 <= r["requests"] <= 200, f"an open loop sends what is due: {r['requests']}")
    t.equal((r["rate"], r["command"], r["check"]["rising"]), (200, "INCR orders", True), "rate, command, order")

    # One store each: both hold slot 0, so the two hand out the same IDs sooner or later; tickets do at once.
    tickets = [f"redis://{f.ticket}/INCR/twice" for f in (a, b)]
    r = firn(t, 1, "bench", *tickets, "--requests", "100", "--connections", "2", "--json")
    t.check("came twice" in r.err and r.json()["check"]["distinct"] < 100, f"the same number from two servers is found: {r.err}")
    t.check(all(s["requests"] > 0 for s in r.json()["targets"]), f"both are asked: {r.out}")
    r = firn(t, 0, "bench", f"http://{a.snowflake}/generate?kind=uuidv4", "--requests", "100", "--json").json()
    t.equal((r["check"]["distinct"], r["check"]["rising"]), (100, False), "texts are compared, too, and need not rise")
    r = firn(t, 0, "bench", snowflake, "--requests", "126000", "--memory", "1", "--depth", "100")
    t.check("not exact" in r.err and "IDs not checked" in r.out, f"says when memory is full: {r.err}")

    r = firn(t, 0, "bench", "--compare", "a.json", "b.json")
    t.check("not the same load" in r.err and " x" in r.out and "p99.9" in r.out, f"two runs as ratios: {r.out} {r.err}")
    r = firn(t, 0, "bench", "--compare", "a.json", "a.json", "--json").json()
    t.equal((r["per_second"]["ratio"], r["latency_ns.p99"]["ratio"]), ("1.0000", "1.0000"), "a run is as fast as itself")

    for args, says in ((("bench", "--compare", "a.json"), "two files"), (("bench", "--compare", "a.json", "none.json"), "No such file"),
                       (("bench", "http://192.0.2.1/"), "loopback"), (("bench", "ftp://127.0.0.1/"), "neither"), (("bench",), "which one"),
                       (("bench", f"redis://u:p@{a.ticket}/"), "password"), (("bench", "http://127.0.0.1:1/"), "is the server running")):
        r = firn(t, 2, *args)
        t.check(says in r.err, f"firn {' '.join(args)} says {says}: {r.err}")
    r = firn(t, 1, "bench", f"redis://{a.ticket}/PING", "--requests", "10")
    t.check("--no-check" in r.err, f"answers without IDs: {r.err}")
    firn(t, 0, "bench", f"redis://{a.ticket}/PING", "--requests", "10", "--no-check")


with Test("tools") as test:
    for part in (bench,):
        test.section(part)
