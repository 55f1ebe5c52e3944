#!/usr/bin/env python3
"""
Keys: a retry gets the same numbers and IDs again, over both protocols, whatever happens in between. firnd is
killed again and again while clients ask, each until it has its answer: then every key has exactly one number,
and the sequence has no hole.
"""
import json
import os
import signal
import sqlite3
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from firnd import Firnd, Gone, Http, NotThere, Resp, RespError, Test, wait_for  # noqa: E402

KILLS = 30
PATIENT = "--store-timeout-ms=20000"  # a disk that takes its time is no error here


class Keyed(Http):
    """HTTP with a key: (status, body, whether it was a replay)."""

    def ask_key(self, path, key, method="GET", fields=""):
        self.ask(path, method, fields=f"Idempotency-Key: {key}\r\n{fields}")
        status = int(self.line().split()[1])
        length, replayed = 0, False
        while True:
            field = self.line()
            if not field:
                break
            name, value = field.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
            if name.lower() == b"idempotent-replayed":
                replayed = value.strip() == b"true"
        return status, self.exactly(length), replayed

    def id(self, path, key, **more):
        status, body, replayed = self.ask_key(path, key, **more)
        if status != 200:
            return status, json.loads(body).get("type", ""), replayed
        value = json.loads(body)
        return status, value.get("id") or value.get("ids"), replayed


def error_of(resp, *words):
    try:
        return f"no error but {resp.do(*words)!r}"
    except RespError as e:
        return str(e)


def create(t, http, **spec):
    status, body = http.post("/v1/sequences", spec)
    t.check(status in (200, 201), f"{spec['name']} is created: {status} {body[:200]}")


def twice(t):
    """Everywhere, and by both protocols: the second time is the first again."""
    f = Firnd(t, t.steady("twice")).wait_ready()
    home, snow, ticket, r = Keyed(f.home), Keyed(f.snowflake), Keyed(f.ticket), Resp(f.ticket)
    create(t, home, name="dense", mode="gapless", step=2, offset=1)
    create(t, home, name="fast", mode="range")
    create(t, home, name="inv", mode="gapless", dated={"reset": "year", "digits": 4})
    create(t, home, name="invr", mode="range", dated={"reset": "day", "digits": 4})
    create(t, home, name="three", mode="gapless", max=3)
    for c, path in ((snow, "/generate"), (ticket, "/generate"), (home, "/v1/ids/snowflake"),
                    (home, "/v1/ids/tsid"), (home, "/v1/ids/sonyflake"), (home, "/v1/ids/uuidv7?n=20"),
                    (home, "/v1/ids/ulid?n=3"), (home, "/v1/ids/typeid?prefix=user"),
                    (home, "/v1/ids/nanoid?length=255&n=2"), (home, "/v1/ids/ticket?seq=dense&n=5"),
                    (home, "/v1/sequences/dense/next"), (home, "/v1/sequences/fast/next?n=7"),
                    (home, "/v1/sequences/inv/next?n=2"), (home, "/v1/sequences/invr/next"),
                    (home, "/v1/ids/dated?seq=inv"), (home, "/generate?prefix=ord&encoding=base62")):
        for method in ("GET", "POST"):
            key = f"{c is snow}{path}{method}"
            first, second = c.id(path, key, method=method), c.id(path, key, method=method)
            other = c.id(path, key + "2", method=method)
            t.check(first[0] == 200 and not first[2], f"{method} {path}: {first}")
            t.check(second[:2] == first[:2] and second[2], f"again: {second} is {first}")
            t.check(other[0] == 200 and other[1] != first[1] and not other[2], f"another key, another ID: {other}")
    for words in (("ticket", "SEQ", "dense"), ("ticket", "SEQ", "fast", "COUNT", 3), ("dated", "SEQ", "inv"),
                  ("snowflake",), ("snowflake", "COUNT", 20), ("ulid", "COUNT", 2), ("snowflake", "ENCODING", "base62"), ("tsid",),
                  ("uuidv4",)):
        key = "resp " + str(words)
        first, second = (r.do("FIRN.NEXT", *words, "KEY", key) for _ in range(2))
        t.equal(second, first, f"FIRN.NEXT {words} with a key, twice")
        t.check(r.do("FIRN.NEXT", *words, "KEY", key + "!") != first, "and with another key")
    _, number, _ = home.id("/v1/sequences/dense/next", "both")
    t.equal(r.do("FIRN.NEXT", "ticket", "SEQ", "dense", "KEY", "both"), number, "one key, two protocols")
    _, flake, _ = home.id("/v1/ids/snowflake", "both f")
    t.equal(r.do("FIRN.NEXT", "snowflake", "KEY", "both f"), flake, "for IDs, too")
    home.ask_key("/v1/ids/snowflake", "o")
    status, body, replayed = home.ask_key("/v1/ids/snowflake", "o", fields="Accept: application/octet-stream\r\n")
    t.check(status == 200 and len(body) == 8 and replayed, "a replay in another format")
    # The same key for something else.
    for path in ("/v1/sequences/dense/next", "/v1/sequences/fast/next", "/v1/ids/ulid"):
        home.id(path, "used")
        for _ in range(2):
            status, kind, _ = home.id(path + "?n=2", "used")
            t.check(status == 422 and kind.endswith("key-reused"), f"{path} with a used key: {status} {kind}")
    t.check("key" in error_of(r, "FIRN.NEXT", "ulid", "COUNT", 3, "KEY", "used"), "and over RESP")
    # What is no key, or too much for one.
    for key in ("x" * 256, "\u00e9", "a\tb"):
        status, kind, _ = home.id("/generate", key)
        t.check(status == 400, f"the key {key[:5]!r} is refused: {status} {kind}")
    t.equal(home.id("/generate", "x" * 255)[0], 200, "255 characters are fine")
    t.check("KEY" in error_of(r, "FIRN.NEXT", "ulid", "KEY", ""), "an empty one is not")
    t.equal(home.id("/v1/ids/snowflake?n=21", "many")[0], 400, "IDs beyond what is kept")
    t.check("20" in error_of(r, "FIRN.NEXT", "snowflake", "COUNT", 21, "KEY", "many"), "over RESP, too")
    status, ids, _ = home.id("/v1/sequences/dense/next?n=100000", "many numbers")
    t.check(status == 200 and len(ids) == 100000, "but any number of a sequence's numbers")
    t.equal(home.id("/v1/sequences/dense/next?n=100000", "many numbers"), (200, ids, True), "again")
    # The last numbers.
    t.equal(home.id("/v1/sequences/three/next?n=2", "l1")[1], ["1", "2"], "two of three")
    t.check("left" in error_of(r, "FIRN.NEXT", "ticket", "SEQ", "three", "COUNT", 2, "KEY", "l2"), "two are too many")
    t.equal(home.id("/v1/sequences/three/next?n=2", "l3")[1], ["3"], "over HTTP the rest is given")
    t.equal(home.id("/v1/sequences/three/next", "l4")[0], 409, "then none is left")
    t.equal(home.id("/v1/sequences/three/next?n=2", "l3"), (200, ["3"], True), "which a retry does not mind")
    t.check(f.metric("firn_keys_replayed_total") > 30 and f.metric("firn_keys_kept_total") > 50, "metrics count")
    # All of it is in the store, not in memory.
    f.kill()
    f = Firnd(t, t.steady("twice")).wait_ready()
    home = Keyed(f.home)
    t.equal(home.id("/v1/sequences/dense/next", "both"), (200, number, True), "after kill -9")
    t.equal(home.id("/v1/ids/snowflake", "both f"), (200, flake, True), "IDs, too")
    t.equal(home.id("/v1/sequences/three/next?n=2", "l3"), (200, ["3"], True), "and the last number")
    t.equal(f.stop(), 0, "firnd ends well")


def scopes(t):
    """A key belongs to the token that it came with."""
    import hashlib
    path = os.path.join(t.dir, "tokens.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write("auth:\n  tokens:\n")
        for name in ("ann", "bob"):
            out.write(f"    - name: {name}\n      token_sha256: {hashlib.sha256(name.encode() * 4).hexdigest()}\n"
                      "      kinds: [\"*\"]\n      sequences: [\"*\"]\n")
    f = Firnd(t, t.steady("scopes"), config=path)
    wait_for("firnd to be ready", lambda: f.readyz()[0])
    c, got = Keyed(f.ticket), {}
    for name in ("ann", "bob", "ann"):
        fields = f"Authorization: Bearer {name * 4}\r\n"
        for what in ("/generate", "/v1/ids/snowflake"):
            status, number, replayed = c.id(what, "k" + what, fields=fields)
            t.check(status == 200 and replayed == ((name, what) in got), f"{name} {what}: {status} {number} {replayed}")
            t.check(got.setdefault((name, what), number) == number, f"{name}'s own number")
    t.equal(len(set(got.values())), 4, "the same key of two clients is two keys")
    r = Resp(f.ticket)
    r.do("AUTH", "bobbobbobbob")
    t.equal(r.do("FIRN.NEXT", "ticket", "KEY", "k/generate"), got["bob", "/generate"], "over RESP bob is bob")
    f.stop()


class Client(threading.Thread):
    """Asks for its keys one after the other, each until it is answered; some again, later."""

    def __init__(self, t, name, address, resp, path_seq):
        super().__init__()
        self.t, self.name_, self.address, self.resp, self.seq = t, name, address, resp, path_seq
        self.got, self.ended, self.retries, self.lost, self.wrong = {}, False, 0, 0, []

    def once(self, key):
        """The number, or None if it is not known what became of it."""
        try:
            if not self.conn:
                self.conn = Resp(self.address()) if self.resp else Keyed(self.address())
            if self.resp:
                return self.conn.do("FIRN.NEXT", "ticket", "SEQ", self.seq, "KEY", key)
            status, number, replayed = self.conn.id(f"/v1/sequences/{self.seq}/next", key)
            if status == 200:
                self.lost += replayed and key not in self.got  # it had the number, only the answer was lost
                return number
            if status != 503:
                self.wrong.append((key, status, number))
        except RespError as e:
            if not str(e).startswith("TRYAGAIN"):
                self.wrong.append((key, str(e)))
        except (Gone, NotThere, OSError, TypeError, IndexError, ValueError):
            self.conn = None
        return None

    def run(self):
        self.conn, n = None, 0
        while not self.ended:
            key = f"{self.name_}-{n}"
            n += 1
            number = self.once(key)
            while number is None:
                self.retries += 1
                time.sleep(0.002)
                number = self.once(key)
            self.got[key] = int(number)
            if n % 7 == 0:  # one of before, again
                old = f"{self.name_}-{n * 5 // 7 - 1}"
                again = self.once(old)
                if again is not None and int(again) != self.got[old]:
                    self.wrong.append((old, self.got[old], again))


def settle(t, clients, what):
    """Every key has one number, and together they are all numbers."""
    for c in clients:
        c.ended = True
    for c in clients:
        c.join()
    numbers = sorted(n for c in clients for n in c.got.values())
    wrong = [x for c in clients for x in c.wrong]
    t.check(not wrong, f"{what}: a key's answers are all the same: {wrong[:5]}")
    t.check(len(set(numbers)) == len(numbers), f"{what}: no number for two keys")
    missing = sorted(set(range(1, len(numbers) + 1)) - set(numbers))
    t.check(numbers == list(range(1, len(numbers) + 1)),
            f"{what}: no hole in {len(numbers)} numbers: {missing[:5]}, the last is {numbers[-1]}")
    t.check(sum(c.retries for c in clients) > 0, f"{what}: there were retries")
    print(f"     {what}: {len(numbers)} numbers, {sum(c.retries for c in clients)} retries, "
          f"{sum(c.lost for c in clients)} lost answers seen")


def progress(clients):
    return sum(len(c.got) for c in clients)


def kills(t):
    """One firnd, killed in the middle of its work."""
    state = t.state("kills")
    now = [Firnd(t, state).wait_ready()]
    create(t, Http(now[0].home), name="s", mode="gapless")
    clients = [Client(t, f"c{i}", lambda: now[0].ticket, i % 2, "s") for i in range(24)]
    for c in clients:
        c.start()
    for i in range(KILLS):
        before = progress(clients)
        wait_for("some answers", lambda: progress(clients) > before + 20 + i % 13)
        now[0].kill()
        now[0] = Firnd(t, state)
    before = progress(clients)
    wait_for("answers at the end", lambda: progress(clients) > before + 100)
    settle(t, clients, f"{KILLS} kills")
    t.check(sum(c.lost for c in clients) > 0, "some kills came between the commit and the answer")
    t.equal(now[0].stop(), 0, "firnd ends well")


def two(t):
    """Two on one file; clients go from one to the other with the same key, and both are killed in turn."""
    state = t.state("two")
    store = "sqlite:" + os.path.join(t.dir, "shared.db")
    os.makedirs(state, exist_ok=True)
    now = [Firnd(t, t.state(f"two-{i}"), "--store", store, PATIENT) for i in range(2)]
    create(t, Http(now[0].home), name="s", mode="gapless")
    turn = [0]

    def address():
        turn[0] += 1
        return now[turn[0] % 2].ticket
    clients = [Client(t, f"c{i}", address, i % 2, "s") for i in range(16)]
    for c in clients:
        c.start()
    for i in range(12):
        before = progress(clients)
        wait_for("some answers", lambda: progress(clients) > before + 20)
        now[i % 2].kill()
        now[i % 2] = Firnd(t, t.state(f"two-{i % 2}"), "--store", store, PATIENT)
    # The same new keys at both at the same time.
    pairs = [(Keyed(now[0].ticket), Keyed(now[1].ticket)) for _ in range(4)]
    for k in range(50):
        for a, b in pairs:
            for c in (a, b):
                c.ask("/v1/sequences/s/next", fields=f"Idempotency-Key: same-{k}\r\n")
        got = {c.answer() for pair in pairs for c in pair}
        t.check(len(got) == 1 and list(got)[0][0] == 200, f"eight at once with one key: {got}")
        clients[0].got[f"same-{k}"] = int(json.loads(list(got)[0][1])["id"])
    settle(t, clients, "two on one file")
    for f in now:
        t.equal(f.stop(), 0, "firnd ends well")


def midnight(t):
    """A crash after the number was taken and before its key had a register, a retry on the next day."""
    state = t.steady("midnight")
    f = Firnd(t, state).wait_ready()
    c = Keyed(f.home)
    create(t, c, name="inv", mode="gapless", dated={"reset": "day", "digits": 4})
    first = c.id("/v1/sequences/inv/next?n=2", "k")[1]
    f.kill()
    day = first[0][:8]
    before = time.strftime("%Y%m%d", time.gmtime(time.time() - 86400))
    if day == before:  # it was midnight just now
        before = time.strftime("%Y%m%d", time.gmtime(time.time() - 2 * 86400))
    db = sqlite3.connect(os.path.join(state, "firn.db"))
    with db:  # as if all that had been yesterday
        n = db.execute("UPDATE register SET key = ? WHERE key = ?", (f"seq/inv@{before}", f"seq/inv@{day}")).rowcount
        t.equal(n, 1, "the day's record is there")
        n = db.execute("DELETE FROM register WHERE key GLOB 'idem/*'").rowcount
        t.equal(n, 1, "and the key's register")
    db.close()
    f = Firnd(t, state).wait_ready()
    c = Keyed(f.home)
    t.equal(c.id("/v1/sequences/inv/next?n=2", "k"), (200, [x.replace(day, before) for x in first], True),
            "the retry gets yesterday's numbers")
    status, new, replayed = c.id("/v1/sequences/inv/next", "new")
    t.check(status == 200 and new.endswith("-0001") and not replayed, f"and a new key today's first: {new}")
    f.kill()


def retention(t):
    """Keys are forgotten, but not before their time."""
    f = Firnd(t, t.steady("retention"), "--tickets-idem-retention-s", "2").wait_ready()
    c = Keyed(f.ticket)
    create(t, c, name="fast", mode="range")
    first = {}
    for i in range(150):
        for path in ("/generate", "/v1/ids/snowflake", "/v1/sequences/fast/next"):
            first[path, i] = c.id(path, f"{path} {i}")[1]
    c.id("/generate", "the last is in the record's list until another one comes")
    t.check(f.metric("firn_keys_kept_total") >= 451, "all are kept")
    wait_for("old keys to be removed", lambda: f.metric("firn_keys_removed_total") >= 450)
    for path in ("/generate", "/v1/ids/snowflake", "/v1/sequences/fast/next"):
        status, number, replayed = c.id(path, f"{path} 0")
        t.check(status == 200 and number != first[path, 0] and not replayed, f"a forgotten key is a new one: {number}")
    t.equal(f.stop(), 0, "firnd ends well")


def mixed(t):
    """Requests with and without keys in the same commits: unique, dense, and the hot ones do not wait long."""
    f = Firnd(t, t.state("mixed")).wait_ready()
    create(t, Http(f.home), name="s", mode="gapless")
    r = Resp(f.ticket)
    for i in range(3000):
        if i % 3:
            r.ask("INCR", "s")
        else:
            r.ask("FIRN.NEXT", "ticket", "SEQ", "s", "KEY", f"m{i % 600}")
    answers = [int(r.answer()) for _ in range(3000)]
    keyed = {}
    for i in range(0, 3000, 3):
        t.passed += keyed.setdefault(i % 600, answers[i]) == answers[i]
        if keyed[i % 600] != answers[i]:
            t.check(False, f"key m{i % 600} has {keyed[i % 600]} and {answers[i]}")
    plain = [answers[i] for i in range(3000) if i % 3]
    t.check(plain == sorted(plain), "those without a key rise")
    t.equal(sorted(plain + list(keyed.values())), list(range(1, 2001 + len(keyed))), "no hole, no number twice")
    commits = f.metric("firn_commits_total")
    t.check(commits < 1500, f"they were committed together: {commits} commits for 3000")
    f.stop()


def main():
    with Test("keyed") as t:
        for section in (twice, scopes, kills, two, midnight, retention, mixed):
            t.section(section)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main()
