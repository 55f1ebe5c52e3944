"""
What store.h promises, as cases that every store goes through. A case is a function of a Context; what it needs of a
store is in its decorator, and a store that has no such thing (memory has no second handle) leaves it out.
"""
import os
import random
import socket
import tempfile
import time

from probe import Probe, Raw
from proxy import Proxy

KEY_MAX, VALUE_MAX = 168, 1824  # STORE_KEY_MAX, STORE_VALUE_MAX of store.h
INSIDE_KEY_MAX, INSIDE_VALUE_MAX = 165, 1024  # QUORUM_KEY_MAX, PAXOS_VALUE_MAX: what others leave room for
CALL_MS = 15000                 # an ordinary handle's time-out: nothing comes near it, on a busy machine neither
SHORT_MS = 500                  # of a handle that is going to meet it
MARGIN_MS = 10000               # a call that comes back this much after its time-out is late
HEAL_S = 90                     # by then a store that has its servers again must work again
UNKNOWN, CONFLICT, EIO, ESTORE = "FIRN_EUNKNOWN", "FIRN_ECONFLICT", "FIRN_EIO", "FIRN_ESTORE"
ABSENT, INVALID, TIME_OVER, UNSUPPORTED = "FIRN_ENOENT", "FIRN_EINVAL", "FIRN_EAGAIN", "FIRN_ENOTSUP"

CASES = []  # (name, function, needs), in the order in which they run


class Failure(Exception):
    """A promise was broken."""


class Undecided(Failure):
    """A write of unknown outcome, where the case had done nothing to that end: a store may say that at any
    time, and then the case has shown nothing."""


def case(*needs):
    def add(f):
        CASES.append((f.__name__.replace("_", " "), f, set(needs)))
        return f
    return add


class Context:
    """One case on one store: opens handles under a path of its own, and ends what it opened."""

    def __init__(self, binary, engine, traits, path, options=()):
        self.binary, self.engine, self.traits, self.path = binary, engine, traits, path
        self.options = options
        self.opened = []
        inside = "inside" in traits
        self.key_max, self.value_max = (INSIDE_KEY_MAX, INSIDE_VALUE_MAX) if inside else (KEY_MAX, VALUE_MAX)
        self.said = ""  # a number worth seeing beside the case's name

    def url(self, endpoints=None, path=None):
        return self.engine.url(path or self.path, endpoints)

    def start(self, timeout_ms=CALL_MS, endpoints=None, path=None, closed=False):
        """A probe, open or not."""
        p = Probe(self.binary, self.url(endpoints, path), timeout_ms, self.options, closed)
        self.opened.append(p)
        return p

    def probe(self, timeout_ms=CALL_MS, endpoints=None, path=None):
        """A new handle. That the store did not answer in time may be the busy machine: it gets some more."""
        p = self.start(timeout_ms, endpoints, path)
        end = time.monotonic() + HEAL_S
        while p.opened.result == EIO and time.monotonic() < end:
            p.opened = p.reopen()
        self.check(p.opened.ok, "open", p.url, p.opened)
        return p

    def other(self, p):
        """Another handle on the same registers, where there can be one."""
        return self.probe() if "shared" in self.traits else p

    def healed(self, timeout_ms=CALL_MS, endpoints=None):
        """A new handle, as soon as the store lets itself be opened again."""
        p = self.start(timeout_ms, endpoints)
        end = time.monotonic() + HEAL_S
        while not p.opened.ok:
            self.check(time.monotonic() < end, "opens again", p.opened)
            time.sleep(0.05)
            p.opened = p.reopen()
        return p

    def close(self, by_force=False):
        for p in self.opened:
            if by_force:
                p.kill()
            else:
                self.check(p.close() == 0, "the probe ends cleanly, status", p.process.returncode)
        self.opened = []

    @staticmethod
    def check(right, *what):
        if not right:
            raise Failure(" ".join(str(w) if not isinstance(w, bytes) else repr(w[:60]) for w in what))

    def expect(self, answer, *results):
        if answer.result == UNKNOWN and "0" in results and UNKNOWN not in results:
            raise Undecided(f"expected {'/'.join(results)} and got: {answer}")
        self.check(answer.result in results, "expected", "/".join(results), "and got:", answer)
        return answer

    def holds(self, p, key, value):
        """A fresh read gives this value (None: there is no such register)."""
        a = p.read(key)
        end = time.monotonic() + HEAL_S
        while a.result == EIO and time.monotonic() < end:  # a busy machine's server may be silent for a while
            a = p.read(key)
        self.check(a.result == (ABSENT if value is None else "0"), key, "should hold", value, "but:", a)
        self.check(a.value == value, key, "should hold", value, "but holds", a.value)

    def met(self, p, i, value):
        """The call before was refused for its write i: this is what was there, if the store says that."""
        a = p.instead(i)
        if a.result != UNSUPPORTED:
            self.check(a.result == (ABSENT if value is None else "0") and a.value == value, "met", value, "but says", a)

    # ---- a store that may be away for a while ----
    def read_again(self, p, key):
        """The value by a fresh read, as soon as the store answers one; None for absent."""
        end = time.monotonic() + HEAL_S
        while True:
            a = p.read(key)
            if a.ok or a.result == ABSENT:
                return a.value
            self.expect(a, EIO, UNKNOWN)
            self.check(time.monotonic() < end, "reads work again by themselves", a)
            time.sleep(0.05)

    def write_again(self, p, key, old, new):
        """Replace, however often it takes; after an answer that leaves it open, a read decides."""
        end = time.monotonic() + HEAL_S
        doubt = False
        while True:
            a = p.cas(key, old, new)
            if a.ok:
                return
            if a.result == CONFLICT and doubt:
                self.check(self.read_again(p, key) == new, key, "changed to something that no client wrote")
                return
            self.expect(a, EIO, UNKNOWN)
            doubt = doubt or a.result == UNKNOWN
            self.check(time.monotonic() < end, "writes work again by themselves", a)
            time.sleep(0.05)

    def identity_again(self, p):
        end = time.monotonic() + HEAL_S
        while not (a := p.identity()).ok:
            self.expect(a, EIO, UNKNOWN)
            self.check(time.monotonic() < end, "its identity can be read again", a)
        return a.value

    def settle(self, judge, key, old, new, answer, patience_s):
        """
        `answer` was the answer to replacing `old` by `new` (None: absent), while the store was being broken. Has the
        write landed?
        The judge looks for at most patience_s, then writes over `old` itself: from then on the write cannot
        land any more. The answer must agree with what was found. Returns (landed, the value now).
        """
        rival = b"rival of " + (new or b"a removal")
        end = time.monotonic() + patience_s
        while (value := self.read_again(judge, key)) == old and time.monotonic() < end and answer.result == UNKNOWN:
            time.sleep(0.02)
        if value == old:
            end, doubt = time.monotonic() + HEAL_S, False
            while True:
                a = judge.cas(key, old, rival)
                if a.ok or a.result == CONFLICT:
                    break
                self.expect(a, EIO, UNKNOWN)
                doubt = doubt or a.result == UNKNOWN
                self.check(time.monotonic() < end, "writes work again by themselves", a)
            value = self.read_again(judge, key)
            self.check(value in ((rival,) if a.ok else (new, rival) if doubt else (new,)),
                       "the judge's write was answered", a, "and then the register held", value)
        self.check(value in (new, rival), "the register holds", value, "that no client wrote")
        landed = value == new
        self.check(landed or not answer.ok, "the write was acknowledged and is not there:", answer)
        self.check(not landed or answer.result in ("0", UNKNOWN), "the write landed, and the answer was", answer)
        self.check(landed or answer.result in (UNKNOWN, EIO), "no other client wrote, and the answer was", answer)
        return landed, value


# ---- one handle ----
@case()
def create_replace_remove(t):
    p = t.probe()
    t.holds(p, b"a", None)
    t.expect(p.cas(b"a", b"x", b"y"), CONFLICT)  # absent is not some value
    t.met(p, 0, None)
    t.holds(p, b"a", None)
    t.expect(p.cas(b"a", None, b"one"), "0")
    t.expect(p.cas(b"a", None, b"two"), CONFLICT)
    t.holds(p, b"a", b"one")
    t.expect(p.cas(b"a", b"one", b"two"), "0")
    for wrong in (b"one", b"tw", b"two2", b"", b"two\0", None):
        t.expect(p.cas(b"a", wrong, b"three"), CONFLICT)
        t.met(p, 0, b"two")
    t.holds(p, b"a", b"two")
    t.holds(p, b"ab", None)
    for wrong in (b"one", b"", b"tw"):
        t.expect(p.cas(b"a", wrong, None), CONFLICT)  # removing compares too
    t.holds(p, b"a", b"two")
    t.expect(p.cas(b"a", b"two", None), "0")
    t.holds(p, b"a", None)
    t.expect(p.cas(b"a", b"two", None), CONFLICT)
    t.expect(p.cas(b"a", b"two", b"three"), CONFLICT)
    t.expect(p.cas(b"a", None, b"again"), "0")
    t.holds(p, b"a", b"again")


@case()
def every_byte_every_length(t):
    p = t.probe()
    t.expect(p.cas(b"empty", None, b""), "0")  # an empty value is a value
    t.holds(p, b"empty", b"")
    t.expect(p.cas(b"empty", None, b"x"), CONFLICT)
    t.expect(p.cas(b"empty", b"", b"x"), "0")
    t.expect(p.cas(b"empty", b"x", b""), "0")
    t.expect(p.cas(b"empty", b"", None), "0")
    t.holds(p, b"empty", None)
    every = (bytes(range(256)) * (t.value_max // 256 + 1))[:t.value_max]
    long_key = b"k" * t.key_max
    t.expect(p.cas(long_key, None, every), "0")
    t.holds(p, long_key, every)
    t.expect(p.cas(long_key, every[:-1] + b"\0", b"x"), CONFLICT)  # one bit, at the very end
    t.expect(p.cas(long_key, every, every[::-1]), "0")
    t.holds(p, long_key, every[::-1])
    t.expect(p.cas(long_key + b"k", None, b"x"), INVALID)
    t.expect(p.cas(b"big", None, every + b"x"), INVALID)
    t.holds(p, b"big", None)
    t.expect(p.cas(long_key, every[::-1], None), "0")
    for n in range(1, 9):  # values that begin alike, and look like numbers, JSON, paths
        for value in (b"\0" * n, b"0" * n, b"{}\"\\"[:n], b"\xff" * n, b"/." * n):
            t.expect(p.cas(b"v", None, value), "0")
            t.holds(p, b"v", value)
            t.expect(p.cas(b"v", value + b"\0", b"x"), CONFLICT)
            t.expect(p.cas(b"v", value, None), "0")


@case()
def every_name(t):
    """Names of sequences hold A-Z a-z 0-9 . _ : - @, so a segment may be a dot or two; other text is kept apart too."""
    p = t.probe()
    names = [b"meta", b"seq/a", b"seq/A", b"seq/.", b"seq/..", b"seq/...", b"seq/-", b"seq/a:b", b"seq/a@1", b"seq/a_b",
             b"seq", b"seq/", b"seq/a/b", b"seq//", b"/", b"//", b"/seq/a", b"seq/a/", b"%", b"%2F", b"seq%2Fa", b"a b",
             b" a", b"a ", b"\"", b"'", b"\\", b"*", b"?", b"[a]", b"{a}", b"$1", b"#", b"a\nb", b"\x01", b"\x7f",
             "é".encode(), b"zookeeper", b"/zookeeper", b"firn", b"NULL"]
    for name in names:
        t.expect(p.cas(name, None, b"of " + name), "0")
    for name in (b"", b"\xff\xfe", b"\x80", b"a\0b", b"a\0", b"\0"):  # no text: kept apart from the others, or refused
        a = t.expect(p.cas(name, None, b"of " + name), "0", INVALID)
        names += [name] if a.ok else []
    for name in names:
        t.holds(p, name, b"of " + name)
    a = p.scan(b"")
    t.check(a.found == [(n, b"of " + n) for n in sorted(names)], "a scan of all gives", a)
    for name in names:
        t.expect(p.cas(name, b"of " + name, b"now " + name), "0")
        t.expect(p.cas(name, b"now " + name, None), "0")
    t.check(p.scan(b"").found == [], "all are gone", p.scan(b""))


@case()
def a_value_never_comes_back(t):
    """Engines count versions from 0 again after delete + create; a write must compare what is there."""
    p = t.probe()
    q = t.other(p)
    for i, steps in enumerate((0, 1, 3)):
        key = b"k%d" % i
        t.expect(p.cas(key, None, b"first 0"), "0")
        for n in range(steps):
            t.expect(p.cas(key, b"first %d" % n, b"first %d" % (n + 1)), "0")
        stale = b"first %d" % steps
        t.holds(p, key, stale)  # what p knows of the register from now on is old
        t.expect(q.cas(key, stale, None), "0")
        t.expect(q.cas(key, None, b"second 0"), "0")
        for n in range(steps):  # as often as in its first life
            t.expect(q.cas(key, b"second %d" % n, b"second %d" % (n + 1)), "0")
        t.expect(p.cas(key, stale, b"stale write"), CONFLICT)
        t.expect(p.cas(key, stale, None), CONFLICT)
        t.expect(p.cas(key, None, b"stale create"), CONFLICT)
        t.holds(p, key, b"second %d" % steps)


@case("many")
def many_at_once(t):
    p = t.probe()
    t.expect(p.cas(b"b", None, b"old"), "0")
    t.expect(p.cas(b"c", None, b"other"), "0")
    t.expect(p.cas(b"e", None, b"leaves"), "0")
    want = [(b"a", None, b"1"), (b"b", b"old", b"2"), (b"c", b"wrong", b"3"), (b"d", b"absent", b"4"),
            (b"e", b"leaves", None)]
    a = t.expect(p.many(*want), "0")
    t.check(a.results == ["0", "0", CONFLICT, CONFLICT, "0"], "each compared on its own:", a)
    t.met(p, 2, b"other")
    t.met(p, 3, None)
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"c", b"other"), (b"d", None), (b"e", None)):
        t.holds(p, key, value)
    a = t.expect(p.many(*want), "0")
    t.check(a.results == [CONFLICT] * 5, "none can match any more:", a)
    a = t.expect(p.many((b"a", b"1", b"x" * (t.value_max + 1)), (b"b", b"2", b"y")), INVALID)
    t.holds(p, b"b", b"2")  # all or none
    a = t.expect(p.many(*[(b"m%03d" % i, None, b"x" * t.value_max) for i in range(100)]), "0")
    t.check(a.results == ["0"] * 100, "100 long registers", a)
    q = t.other(p)
    t.check(len(q.scan(b"m").found) == 100, "all 100 are there")


def fill(t, p, keys):
    """Create all of them, quickly."""
    if "many" in t.traits:
        for i in range(0, len(keys), 100):
            a = t.expect(p.many(*[(k, None, b"v" + k) for k in keys[i:i + 100]]), "0")
            t.check(set(a.results) == {"0"}, a)
        return
    for i in range(0, len(keys), 50):
        for k in keys[i:i + 50]:
            p.send("cas", k, None, b"v" + k)
        for _ in keys[i:i + 50]:
            t.expect(p.answer(), "0")


@case()
def scan_1100_in_byte_order(t):
    p = t.probe()
    t.check(t.expect(p.scan(b""), "0").found == [], "an empty store has nothing to scan")
    keys = [b"slot/%05d" % i for i in range(1024)]  # one layout's worth
    keys += [b"slot", b"slot/", b"slot0", b"slo", b"slot/00001/x", b"slot/0000", b"slotx", b"s", b"a", b"z", b"slot.",
             b"slot/1", b"slot/10", b"slot/2", b"meta", b"Slot/1", b"slot-1", b"slot/~"]
    keys += [b"seq/n%d" % i for i in range(1100 - len(keys))]
    mixed = keys[:]
    random.Random(7).shuffle(mixed)
    fill(t, p, mixed)
    q = t.other(p)
    for prefix in (b"", b"s", b"slo", b"slot", b"slot/", b"slot/0000", b"slot/00001", b"slot/00001/x", b"slot/00001/x0",
                   b"slot/1", b"slot/~", b"seq/", b"none", b"zz"):
        right = [(k, b"v" + k) for k in sorted(keys) if k.startswith(prefix)]
        a = t.expect(q.scan(prefix), "0")
        t.check(a.found == right, "scan of", prefix, "gave", len(a.found), "registers, not", len(right), "in order", a)
        a = t.expect(q.scan(prefix, 2), "0")
        t.check(a.found == right[:2], "a scan that ends itself after two", a)
        for size in (7, 500, 1000):  # among them the engines' own pages
            paged, after = [], None
            while size > 400 or len(paged) < 70:
                a = t.expect(q.page(prefix, after, size), "0")
                paged += a.found
                if len(a.found) < size:
                    break
                after = a.found[-1][0]
            t.check(paged == right[:len(paged)] and (len(paged) == len(right) or len(paged) >= 70),
                    "pages of", size, "below", prefix, "gave", len(paged), "registers, not", len(right))
    for prefix, after in ((b"slot/", b"slot/00500"), (b"slot/", b"slot/00500x"), (b"slot/", b"a"), (b"slot/", b"slot"),
                          (b"slot/", b"slot/"), (b"slot/", b"zz"), (b"", b"slot/~"), (b"", b""), (b"slot/00001", b"slot/00001")):
        right = [(k, b"v" + k) for k in sorted(keys) if k.startswith(prefix) and k > after][:3]
        a = t.expect(q.page(prefix, after, 3), "0")
        t.check(a.found == right, "behind", after, "below", prefix, "are", right, a)


@case("shared")
def scan_while_others_write(t):
    """What no client changes is in every scan, once; what changes shows a value that it had."""
    p, q = t.probe(), t.probe()
    keys = [b"slot/%05d" % i for i in range(200)]
    fill(t, p, keys)
    had = {k: {b"v" + k} for k in keys}
    scans = 0
    value, busy = {k: b"v" + k for k in keys}, keys[100]
    for i in range(240):
        new = b"%d" % i
        had[busy].add(new)
        q.send("cas", busy, value[busy], new)
        if i % 8 == 0:
            p.send("scan", b"slot/")
        t.expect(q.answer(), "0")
        value[busy] = new
        if i % 8 == 7:
            a = t.expect(p.answer(), "0")
            t.check([k for k, _ in a.found] == keys, "all keys once, in order:", a)
            for k, v in a.found:
                t.check(v in had[k], k, "never held", v)
            scans += 1
    t.said = f"{scans} scans"


@case()
def wait_for_a_change(t):
    p = t.probe()
    t.expect(p.wait(b"k", None, 300), TIME_OVER)
    t.expect(p.cas(b"k", None, b"1"), "0")
    a = t.expect(p.wait(b"k", b"1", 300), TIME_OVER)
    t.check(a.ms >= 250, "it waited for its time", a)
    for old, value in ((None, b"1"), (b"0", b"1")):  # differs already
        a = t.expect(p.wait(b"k", old, 60000), "0")
        t.check(a.value == value and a.ms < 30000, "at once", a)
    a = t.expect(p.wait(b"gone", b"1", 60000), ABSENT)
    t.check(a.ms < 30000, "at once", a)


@case("shared")
def wait_for_others(t):
    p, q = t.probe(), t.probe()
    value = None
    for i, new in enumerate((b"created", b"changed", None, b"created again", None)):
        p.send("wait", b"k", value, Raw(60000))
        t.check(i > 1 or not p.ready(0.1), "it waits")
        t.expect(q.cas(b"k", value, new), "0")
        a = t.expect(p.answer(), "0" if new is not None else ABSENT)
        t.check(a.value == new and a.ms < 40000, "it saw", new, a)
        value = new


@case()
def the_clock_of_the_store(t):
    p = t.probe()
    t.expect(p.cas(b"k", None, b"v"), "0")
    a = t.expect(p.read(b"k"), "0")
    if "clock" in t.traits:
        t.check(abs(a.store_ms - time.time() * 1000) < 60000, "the store's time is ours:", a)
    else:
        t.check(a.store_ms == 0, "no clock", a)


# ---- several handles ----
@case("shared")
def many_open_a_new_store(t):
    """All at once where there is nothing yet: all come in, one creates."""
    for n in range(4):
        probes = [t.start(path=f"{t.path}-{n}", timeout_ms=20000, closed=True) for _ in range(8)]
        for p in probes:
            p.send("reopen")
        for p in probes:
            t.expect(p.answer(), "0")
        for p in probes:
            p.send("cas", b"k", None, b"v")
        results = [t.expect(p.answer(), "0", CONFLICT).result for p in probes]
        t.check(results.count("0") == 1, "one creates", results)
        t.close()


@case("shared")
def one_wins_each_race(t):
    probes = [t.probe(), t.probe(), t.probe()]
    value, wins = None, [0, 0, 0]
    for n in range(60):
        new = [b"%d of %d" % (n, i) for i in range(3)]
        if n % 10 == 9:
            new = [None] * 3
        for i, p in enumerate(probes):
            p.send("cas", b"k", value, new[i])
        results = [t.expect(p.answer(), "0", CONFLICT).result for p in probes]
        t.check(results.count("0") == 1, "one wins round", n, results)
        won = results.index("0")
        wins[won] += 1
        value = new[won]
        t.holds(probes[n % 3], b"k", value)
    t.said = "wins " + "+".join(map(str, wins))


@case("shared")
def they_count_together(t):
    """Each adds one at its own pace: nothing is lost, nothing doubled."""
    probes, each = [t.probe() for _ in range(3)], 30
    t.expect(probes[0].cas(b"n", None, b"0"), "0")
    done, reading = [0] * 3, [True] * 3
    for p in probes:
        p.send("read", b"n", Raw("fresh"))
    while sum(done) < 3 * each:
        for i, p in enumerate(probes):
            if not p.pending or not p.ready(0.001):
                continue
            a = t.expect(p.answer(), "0", CONFLICT)
            if reading[i]:
                p.send("cas", b"n", a.value, b"%d" % (int(a.value) + 1))
                reading[i] = False
                continue
            done[i] += a.ok
            reading[i] = True
            if done[i] < each:
                p.send("read", b"n", Raw("fresh"))
    t.holds(probes[0], b"n", b"%d" % (3 * each))


@case("shared")
def a_fresh_read_is_fresh(t):
    """Also on another server of a cluster, and also after a write that was refused."""
    p = t.probe()
    readers = [t.probe(endpoints=[e]) for e in t.engine.endpoints] or [t.probe(), t.probe()]
    value = b"0"
    t.expect(p.cas(b"k", None, value), "0")
    for n in range(1, 31):
        new = b"%d" % n
        t.expect(p.cas(b"k", value, new), "0")
        reader = readers[n % len(readers)]
        if n % 2:
            t.expect(reader.cas(b"k", value, b"too late"), CONFLICT)
        t.holds(reader, b"k", new)
        a = t.expect(reader.read(b"k", fresh=False), "0")
        t.check(a.value in [b"%d" % i for i in range(n + 1)], "some write left", a.value)
        value = new


@case("shared")
def one_identity(t):
    p, q = t.probe(), t.probe()
    a = t.expect(p.identity(), "0")
    t.check(a.value and t.expect(q.identity(), "0").value == a.value, "both handles see the same", a)
    t.expect(p.cas(b"k", None, b"v"), "0")
    t.check(p.identity().value == a.value, "it stays over a write", p.identity())
    t.expect(p.reopen(), "0")
    t.check(p.identity().value == a.value, "and over reopening", p.identity())
    t.holds(p, b"k", b"v")


@case("shared", "plain")
def deleted_behind_its_back(t):
    p = t.probe()
    for key in (b"slot/00001", b"slot/00002", b"slot/00003"):
        t.expect(p.cas(key, None, b"v" + key), "0")
    keys = sorted(k.encode() if isinstance(k, str) else k for k in t.engine.keys(t.path))
    t.check(keys == [b"slot/00001", b"slot/00002", b"slot/00003"], "its own client finds", keys)
    t.engine.delete(t.path, b"slot/00002")
    t.holds(p, b"slot/00002", None)
    t.expect(p.cas(b"slot/00002", b"vslot/00002", b"x"), CONFLICT)
    t.expect(p.cas(b"slot/00002", b"vslot/00002", None), CONFLICT)
    t.check([k for k, _ in p.scan(b"slot/").found] == [b"slot/00001", b"slot/00003"], p.scan(b"slot/"))
    t.expect(p.cas(b"slot/00002", None, b"second life"), "0")
    t.expect(p.cas(b"slot/00002", b"vslot/00002", b"x"), CONFLICT)
    t.holds(p, b"slot/00002", b"second life")


# ---- a server that is away ----
@case("server")
def nobody_answers(t):
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts, and never says a word
        closed = socket.create_server(("127.0.0.1", 0))
        addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in (closed, deaf)]
        closed.close()
        for address in addresses:
            p = t.start(SHORT_MS, [address])
            t.expect(p.opened, EIO)
            t.check(p.opened.ms < SHORT_MS + MARGIN_MS, "by its time-out", p.opened)
            t.check(p.opened.text, "it says why", p.opened)
            if "hosts" in t.traits:
                p = t.healed(2000, [address, t.engine.endpoints[0]])  # the next one does
                t.write_again(p, b"by " + address.encode(), None, b"v")


@case("pause")
def a_paused_server(t):
    """No answer: the call comes back by its time-out, and what was sent may land when no caller waits any more."""
    judge, key, value = t.probe(), b"k", b"0"
    t.expect(judge.cas(key, None, value), "0")
    nodes = len(t.engine.endpoints)
    unknown = late = 0
    for n in range(12 if "late" in t.traits else 2):
        if n >= 4 and unknown and late:
            break
        # By turns all servers are paused, or all but the one that is asked (a write then waits for the others).
        alone = (n // 2) % nodes if nodes > 1 and n % 2 else None
        p = t.healed(SHORT_MS, [t.engine.endpoints[alone]] if alone is not None else None)
        t.check(t.read_again(p, key) == value, "the value before it")
        paused = [None] if alone is None else [i for i in range(nodes) if i != alone]
        for i in paused:
            t.engine.pause(i)
        try:
            new = b"%d" % (n + 1)
            a = p.cas(key, value, new)
            others = [p.read(key), p.wait(key, value, SHORT_MS)] if n == 1 else []
        finally:
            for i in paused:
                t.engine.resume(i)
        t.expect(a, UNKNOWN, EIO)
        for b in [a] + others:
            t.check(b.ms < 2 * SHORT_MS + MARGIN_MS, "it came back by its time-out", b)
        for b in others:  # no client can have written; a file can be read while it is locked
            t.check(b.value in (None, value, new) and b.result != ABSENT, "what was never there:", b)
        landed, value = t.settle(judge, key, value, new, a, 1.5 if n % 4 < 2 else 0)
        unknown += a.result == UNKNOWN
        late += landed
        t.write_again(p, key, value, b"after %d" % n)  # the same handle works again, by itself
        value = b"after %d" % n
        p.close()
        t.opened.remove(p)
    t.said = f"{unknown} unknown, {late} landed late"
    time.sleep(0.3)
    t.holds(judge, key, value)
    t.check("late" not in t.traits or (unknown and late), "no write landed late:", t.said)


def sweep(total, points):
    """About so many numbers in 0..total, with both ends."""
    return sorted({0, 1, total - 1, total} | {total * i // points for i in range(points)})


def both_ways(request, reply, points):
    return [("request", n) for n in sweep(request, points)] + [("reply", n) for n in sweep(reply, points)]


@case("server")
def a_cut_connection(t):
    """At each byte of the request and of the answer. The next connection works."""
    host, port = t.engine.endpoints[0].rsplit(":", 1)
    proxy = Proxy((host, int(port)))
    try:
        judge, key, value = t.probe(), b"k", b"0"
        t.expect(judge.cas(key, None, value), "0")
        p = t.healed(endpoints=[proxy.address])
        t.write_again(p, key, value, b"1")
        proxy.count()
        t.expect(p.cas(key, b"1", b"2"), "0")
        value, (request, reply) = b"2", proxy.count()
        points = 8 if "slow" in t.traits else 20
        tries = both_ways(request, reply, points)
        outcomes = {}
        for side, n in tries:
            new = b"%s %d" % (side.encode(), n)
            proxy.arm(side, n)
            a = p.cas(key, value, new)
            proxy.release()
            t.expect(a, "0", UNKNOWN, EIO)
            t.check(a.ms < CALL_MS + MARGIN_MS, "it came back by its time-out", a)
            landed, value = t.settle(judge, key, value, new, a, 0.1)
            outcome = a.result.replace("FIRN_E", "").lower() + (" landed" if landed and not a.ok else "")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            t.check(t.read_again(p, key) == value, "the handle works again by itself")
        t.said = f"{proxy.cuts} cuts: " + ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()))
        t.check(proxy.cuts >= len(tries) * 3 // 4, "most were cut", t.said)
        t.check(outcomes.get("unknown landed"), "an answer was lost:", t.said)
    finally:
        proxy.close()


@case("server")
def a_cut_creation_or_removal(t):
    host, port = t.engine.endpoints[0].rsplit(":", 1)
    proxy = Proxy((host, int(port)))
    try:
        judge, p = t.probe(), t.healed(endpoints=[proxy.address])
        t.write_again(p, b"first", None, b"1")
        outcomes = {}
        for what in ("creation", "removal"):
            proxy.count()
            t.expect(p.cas(b"k", None, b"v") if what == "creation" else p.cas(b"k", b"v", None), "0")
            request, reply = proxy.count()
            points = 3 if "slow" in t.traits else 8
            for side, n in both_ways(request, reply, points):
                key = b"%s/%s%d" % (what.encode(), side.encode(), n)
                old, new = (None, b"new") if what == "creation" else (b"old", None)
                if old:
                    t.write_again(judge, key, None, old)
                t.read_again(p, key)
                proxy.arm(side, n)
                a = p.cas(key, old, new)
                proxy.release()
                t.expect(a, "0", UNKNOWN, EIO)
                landed, _ = t.settle(judge, key, old, new, a, 0.05)
                outcome = a.result.replace("FIRN_E", "").lower() + (" landed" if landed and not a.ok else "")
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        t.said = ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()))
        t.check(outcomes.get("unknown landed"), "an answer was lost:", t.said)
    finally:
        proxy.close()


@case("server", "many")
def a_cut_transaction(t):
    """Several registers in one write: all that can be done are done, or none."""
    host, port = t.engine.endpoints[0].rsplit(":", 1)
    proxy = Proxy((host, int(port)))
    try:
        judge, p = t.probe(), t.healed(endpoints=[proxy.address])
        value = {b"a": b"0", b"b": b"0", b"c": b"0"}
        t.expect(judge.many(*[(k, None, v) for k, v in value.items()]), "0")
        t.read_again(p, b"a")

        def write(new):
            """The write of all, and with it one that must be refused."""
            return p.many(*[(k, v, new) for k, v in value.items()], (b"d", b"never", new))

        counts = []
        for new in (b"1", b"2", b"3"):  # one of them may say more than usual, and a cut behind the end of a write is none
            proxy.count()
            a = t.expect(write(new), "0")
            t.check(a.results == ["0", "0", "0", CONFLICT], a)
            counts.append(proxy.count())
            value = dict.fromkeys(value, new)
        request, reply = (min(c) for c in zip(*counts))
        points, landed = 3 if "slow" in t.traits else 8, 0
        # The answer to a commit may be its last few bytes.
        for side, n in both_ways(request, reply, points) + [("reply", reply - k) for k in (2, 5, 9, 14)]:
            new = b"%s %d" % (side.encode(), n)
            t.read_again(p, b"a")
            proxy.arm(side, n)
            a = t.expect(write(new), "0", UNKNOWN, EIO)
            proxy.release()
            t.check(not a.ok or a.results == ["0", "0", "0", CONFLICT], a)
            if a.result == UNKNOWN:
                time.sleep(0.05)
            # The judge writes over what was there before: from then on nothing can land.
            fence = t.expect(judge.many(*[(k, v, b"rival of " + new) for k, v in value.items()]), "0")
            t.check(len(set(fence.results)) == 1, "all or none:", fence, "after", a)
            done = fence.results[0] == CONFLICT
            t.check(done or not a.ok, "acknowledged, and not there:", a)
            t.check(not done or a.result in ("0", UNKNOWN), "it landed, and the answer was", a)
            value = dict.fromkeys(value, new if done else b"rival of " + new)
            for k, v in value.items():
                t.holds(judge, k, v)
            t.holds(judge, b"d", None)
            landed += done and not a.ok
        t.said = f"{landed} landed without an answer"
        t.check(landed, "an answer was lost")
    finally:
        proxy.close()


@case("server")
def held_up_on_the_way(t):
    """The connection stays, but the rest of the request, or of the answer, arrives only after the time-out."""
    host, port = t.engine.endpoints[0].rsplit(":", 1)
    proxy = Proxy((host, int(port)))
    try:
        judge, key, value = t.probe(), b"k", b"0"
        t.expect(judge.cas(key, None, value), "0")
        p = t.healed(CALL_MS, endpoints=[proxy.address])
        t.write_again(p, key, value, b"1")
        proxy.count()
        t.expect(p.cas(key, b"1", b"2"), "0")
        value, (request, reply) = b"2", proxy.count()
        p = t.healed(SHORT_MS, endpoints=[proxy.address])
        lost = late = 0
        tries = [("reply", n) for n in sorted({0, reply // 2, reply - 1})]
        tries += [("request", n) for n in sorted({request // 3, request * 2 // 3, request - 1})]
        for side, n in tries:
            new = b"%s %d" % (side.encode(), n)
            t.check(t.read_again(p, key) == value, "the value before it")  # and a connection that is there
            proxy.arm(side, n, hold=True)
            a = p.cas(key, value, new)
            if side == "request":
                proxy.release()
            t.expect(a, "0", UNKNOWN, EIO)
            t.check(a.ms < SHORT_MS + MARGIN_MS, "it came back by its time-out", a)
            landed, value = t.settle(judge, key, value, new, a, 0.5)
            proxy.release()
            lost += side == "reply" and landed and a.result == UNKNOWN
            late += side == "request" and landed and a.result == UNKNOWN
            t.write_again(p, key, value, new + b" and on")  # the late answer is not taken for this one's
            value = new + b" and on"
            t.holds(judge, key, value)
        t.said = f"{lost} landed without an answer, {late} after their time-out"
        t.check(lost and late, t.said)
    finally:
        proxy.close()


@case("durable")
def killed_after_ok(t):
    """kill -9 of all servers (without one: of the writer), right after an answer or in the middle of the next write."""
    dice = random.Random(11)
    p, key, value = t.healed(), b"k", None
    acknowledged = 0
    for n in range(10 if "server" in t.traits else 20):
        for i in range(dice.randrange(1, 4)):
            new = b"%d.%d" % (n, i)
            t.expect(p.cas(key, value, new), "0")
            value = new
            acknowledged += 1
        flying, said = None, None
        if n % 2:
            flying = b"flying %d" % n
            p.send("cas", key, value, flying)
            time.sleep(dice.choice((0, 0.001, 0.003)))
        if "server" in t.traits:
            t.engine.kill()
            if flying:
                said = t.expect(p.answer(), "0", UNKNOWN, EIO).result
            t.engine.restart()
            p.close()
        else:
            p.kill()
        t.opened.remove(p)
        p = t.healed()
        found = t.read_again(p, key)
        t.check(found == value or (flying and found == flying), "acknowledged:", value, "and found:", found)
        t.check(said != "0" or found == flying, "acknowledged in flight:", flying, "and found:", found)
        t.check(said != EIO or found == value, "refused:", flying, "and found:", found)
        if said == UNKNOWN and found == value or "inside" in t.traits and flying and found == value:
            # It may still land, once: a client library sends what it had queued when the servers are back, or when it is
            # closed; and of a quorum's stores a minority may have it, which the next writer completes.
            a = t.expect(p.cas(key, value, b"after it"), "0", CONFLICT)
            found = b"after it" if a.ok else flying
            t.holds(p, key, found)
        value = found
    t.said = f"{acknowledged} acknowledged writes"


@case("server")
def a_restarted_server(t):
    """A handle lives over it, except where the engine becomes another one by it (Redis): then it says so."""
    p, key = t.healed(SHORT_MS), b"k"
    t.write_again(p, key, None, b"0")
    before = t.identity_again(p)
    t.engine.kill()
    a = p.cas(key, b"0", b"while it was away")
    t.expect(a, EIO, UNKNOWN)
    t.engine.restart()
    judge = t.healed()
    _, value = t.settle(judge, key, b"0", b"while it was away", a, 0)
    if "changes" in t.traits:
        changed(t, p, judge, key, value)
        t.check(judge.identity().value != before, "another identity", before)
        return
    t.write_again(p, key, value, b"1")
    t.holds(judge, key, b"1")
    t.expect(judge.cas(key, value, b"2"), CONFLICT)
    t.check({before} == {t.identity_again(p), t.identity_again(judge)}, "one identity", before)


@case("server")
def wait_over_a_restart(t):
    """It may end early with an error, but what changed meanwhile is not missed, and no wait stays for ever."""
    p, judge = t.probe(), t.probe()
    t.expect(judge.cas(b"k", None, b"0"), "0")
    p.send("wait", b"k", b"0", Raw(30000))
    t.check(not p.ready(0.2), "it waits")
    t.engine.kill()
    t.engine.restart()
    t.write_again(t.healed(), b"k", b"0", b"1")
    end = time.monotonic() + HEAL_S
    while not (a := p.answer()).ok:
        t.expect(a, EIO, UNKNOWN, TIME_OVER)
        t.check(time.monotonic() < end, "it sees the change", a)
        p.send("wait", b"k", b"0", Raw(30000))
    t.check(a.value == b"1", "it sees the change", a)


def changed(t, p, judge, key, value):
    """
    p was open when its store became another one: no write of it is done until it has looked at it anew. Where only an
    answer tells (etcd), the first one may be done, and is then "unknown": it compared the whole value, so nothing
    that was lost is missing under it.
    """
    end, doubt = time.monotonic() + HEAL_S, False
    while (a := p.cas(key, value, b"into another store")).result != ESTORE:
        doubt = doubt or a.result == UNKNOWN
        t.expect(a, EIO, UNKNOWN, *([CONFLICT] if doubt and "after" in t.traits else []))
        t.check(time.monotonic() < end, "it notices", a)
    t.check(a.text, "it says why", a)
    found = t.read_again(judge, key)
    t.check(found == value or (doubt and "after" in t.traits and found == b"into another store"),
            "a write was done in another store:", found)
    for k, old in ((key, found), (b"new", None)):  # until somebody asks
        t.expect(p.cas(k, old, b"again"), ESTORE)
    t.holds(judge, key, found)
    t.holds(judge, b"new", None)
    t.identity_again(p)
    if "server" not in t.traits and p.cas(key, found, b"known").result == ESTORE:
        t.expect(p.reopen(), "0")  # a file's handle is of no more use
    t.write_again(p, key, found, b"known")
    t.holds(judge, key, b"known")


@case("restore")
def a_restored_store(t):
    """Acknowledged writes are gone. A handle that has seen them must not go on as if nothing had happened."""
    p, key = t.probe(), b"k"
    before = t.expect(p.identity(), "0").value
    t.expect(p.cas(key, None, b"saved"), "0")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(t.engine.folder)) as copy:
        os.chmod(copy, 0o777)  # PostgreSQL's user writes here
        copy = os.path.join(copy, "saved")  # a file or a folder, as the engine likes
        t.engine.snapshot(copy)
        t.expect(p.cas(key, b"saved", b"lost"), "0")
        t.expect(p.cas(b"made", None, b"lost too"), "0")
        for i in range(20):
            t.expect(p.cas(b"made", b"lost too" + b"." * i, b"lost too" + b"." * (i + 1)), "0")
        t.engine.restore(copy)
    judge = t.healed()
    t.check(t.read_again(judge, key) == b"saved", "the old value is back")
    t.holds(judge, b"made", None)
    t.expect(judge.cas(key, b"lost", b"x"), CONFLICT)  # what was lost compares with nothing
    changed(t, p, judge, key, b"saved")
    t.expect(judge.cas(key, b"lost", b"x"), CONFLICT)
    if "copy" in t.traits:
        t.check(judge.identity().value != before, "another identity than", before)


@case("cluster")
def a_lost_leader(t):
    """Killed or paused: reads and writes go on by themselves, on the same handle."""
    p, key, value = t.probe(2000), b"k", b"0"
    t.expect(p.cas(key, None, value), "0")
    for n, (hit, heal) in enumerate(((t.engine.kill, t.engine.restart), (t.engine.pause, t.engine.resume),
                                     (t.engine.kill, t.engine.restart))):
        leader = t.engine.leader()
        node = leader if n < 2 else (leader + 1) % len(t.engine.endpoints)
        hit(node)
        try:
            for i in range(3):
                new = b"%d.%d" % (n, i)
                t.write_again(p, key, value, new)
                value = new
                t.check(t.read_again(p, key) == value, "reads go on")
        finally:
            heal(node)
        t.check(t.read_again(t.healed(endpoints=[t.engine.endpoints[node]]), key) == value, "it came back, and knows")


@case("cluster")
def a_leader_that_was_away(t):
    """While it stood still the others chose another leader and went on. Asked then, it must not answer from memory."""
    key, value = b"k", b"0"
    t.expect(t.probe().cas(key, None, value), "0")
    right = errors = 0
    for n in range(2):
        leader = t.engine.leader()
        old = t.healed(CALL_MS, [t.engine.endpoints[leader]])
        judge = t.healed(2000, [e for i, e in enumerate(t.engine.endpoints) if i != leader])
        t.check(t.read_again(old, key) == value, "the value before it")
        t.engine.pause(leader)
        try:
            t.write_again(judge, key, value, b"%d" % (n + 1))
            value = b"%d" % (n + 1)
            old.send("read", key, Raw("fresh"))
            old.ready(0.05)  # the request is on its way
        finally:
            t.engine.resume(leader)
        a = t.expect(old.answer(), "0", EIO, UNKNOWN)
        t.check(not a.ok or a.value == value, "a fresh read shows", a, "although", value, "was acknowledged")
        right, errors = right + a.ok, errors + (not a.ok)
        t.check(t.read_again(old, key) == value, "and later")
        old.close()
        t.opened.remove(old)
    t.said = f"{right} right, {errors} errors"
