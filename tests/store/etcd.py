#!/usr/bin/env python3
"""
The etcd store against a real cluster of three, and against servers that answer what etcd never should.
What every store must do is tests/conformance; here is what only etcd has: members to fail over to, a watch,
snapshots, users, TLS, and JSON. Usage: tests/store/etcd.py BIN_DIR [SECTION...]
BIN_DIR is a build's bin folder (store_probe lies in ../tests beside it).
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "conformance")]
from engines.etcd import Etcd, EtcdError  # noqa: E402
from engines.ports import free_ports  # noqa: E402
from probe import Probe, ProbeError, Raw  # noqa: E402

LIMIT = 180  # seconds that anything may take before it counts as failed
UNKNOWN, CONFLICT, CHANGED, EIO, ENOENT = "FIRN_EUNKNOWN", "FIRN_ECONFLICT", "FIRN_ESTORE", "FIRN_EIO", "FIRN_ENOENT"


class Test:
    def __init__(self):
        self.probe_path = os.path.abspath(os.path.join(sys.argv[1] if len(sys.argv) > 1 else "", "..", "tests", "store_probe"))
        if not os.path.isfile(self.probe_path):
            print("usage: etcd.py BIN_DIR [SECTION...]")
            sys.exit(2)
        self.only = sys.argv[2:]
        self.passed = self.failed = 0
        self.ends = []  # what a section leaves to be ended

    def check(self, good, what):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAILED: {what}", flush=True)
        return good

    def result(self, answer, should, what):
        should = should if isinstance(should, tuple) else (should,)
        return self.check(answer.result in should, f"{what}: is '{answer}', should be {' or '.join(should)}")

    def equal(self, is_, should, what):
        return self.check(is_ == should, f"{what}: is {is_!r}, should be {should!r}")

    def probe(self, url, timeout_ms=15000):
        p = Probe(self.probe_path, url, timeout_ms)
        self.ends.append(lambda: self.equal(p.close(), 0, "the probe's exit status"))
        return p

    def opened(self, url, timeout_ms=15000):
        p = self.probe(url, timeout_ms)
        end = time.monotonic() + LIMIT
        while p.opened.result == EIO and time.monotonic() < end:  # a short time-out is for what comes later
            p.opened = p.reopen()
        self.result(p.opened, "0", f"open {url}")
        return p

    def cluster(self, **more):
        folder = tempfile.mkdtemp(prefix="firn-etcd-")
        self.ends.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        e = Etcd(folder, **more)
        self.ends.append(e.stop)
        e.start()
        return e

    def section(self, function):
        if self.only and function.__name__ not in self.only:
            return
        began = time.monotonic()
        print(f"etcd: {function.__name__}", flush=True)
        try:
            function(self)
        except (EtcdError, ProbeError, OSError, subprocess.SubprocessError, ValueError, KeyError, TimeoutError) as e:
            self.check(False, f"{function.__name__}: {type(e).__name__}: {e}")
        while self.ends:
            try:
                self.ends.pop()()
            except (OSError, ProbeError) as e:
                self.check(False, f"{function.__name__}, at its end: {e}")
        print(f"  {time.monotonic() - began:.1f} s", flush=True)


def until(what, check):
    """Ask until it is true; returns what it said."""
    end = time.monotonic() + LIMIT
    while True:
        said = check()
        if said:
            return said
        if time.monotonic() > end:
            raise TimeoutError(f"waited {LIMIT} s for: {what}")
        time.sleep(0.02)


# ---- a real cluster ----


def registers(t):
    e = t.cluster()
    p, other = t.opened(e.url()), t.opened(e.url("firn/two"))
    t.result(p.read(b"a"), ENOENT, "a register that is not there")
    t.result(p.cas(b"a", b"x", b"y"), CONFLICT, "replace what is not there")
    t.result(p.cas(b"a", None, b"one"), "0", "create")
    t.result(p.cas(b"a", None, b"two"), CONFLICT, "create again")
    t.result(p.cas(b"a", b"on", b"two"), CONFLICT, "replace a part of the value")
    t.result(p.cas(b"a", b"one", b""), "0", "replace by nothing")
    t.equal(p.read(b"a").value, b"", "an empty value")
    t.result(p.cas(b"a", None, b"two"), CONFLICT, "an empty register is not absent")
    everything = bytes(range(256)) * 4
    t.result(p.cas(b"a", b"", everything), "0", "replace the empty value by 1,024 bytes")
    t.equal(p.read(b"a").value, everything, "1,024 bytes of all kinds")
    t.equal(p.read(b"a", fresh=False).value, everything, "from this member alone")
    t.result(p.cas(b"a", everything, None), "0", "remove")
    t.result(p.cas(b"a", everything, None), CONFLICT, "remove again")
    t.result(p.cas(b"a" * 169, None, b"x"), "FIRN_EINVAL", "a key that is too long")
    t.result(p.cas(b"a", None, b"x" * 1825), "FIRN_EINVAL", "a value that is too long")

    a = p.cas(b"a", None, b"1")
    a = p.read(b"a")
    t.check(abs(a.store_ms / 1000 - time.time()) < LIMIT, f"the store's time: {a}")
    t.check(p.identity().value.startswith(b"etcd:"), "identity")
    t.equal(p.identity().value, other.identity().value, "one cluster, one identity")

    # Where the keys lie, and that neighbours do not see each other.
    t.equal(e.keys("firn"), ["a"], "keys behind firn's back")
    t.result(other.cas(b"a", None, b"2"), "0", "the same key below another path")
    t.equal((p.read(b"a").value, other.read(b"a").value), (b"1", b"2"), "two paths")
    t.equal([k for k, _ in other.scan(b"").found], [b"a"], "a scan of the other path")
    default = t.opened(e.url("").rstrip("/"))
    t.equal(default.read(b"a").value, b"1", "without a path it is firn")

    # INIT of a cluster: slots by the 127. Some are there already; each is compared on its own.
    t.result(p.cas(b"slot/0007", None, b"mine"), "0", "a slot of another")
    began, lost = time.monotonic(), []
    for lo in range(0, 1200, 127):
        keys = [b"slot/%04d" % i for i in range(lo, min(lo + 127, 1200))]
        a = p.many(*[(k, None, b"x" * 200) for k in keys])
        if t.result(a, "0", "many"):
            lost += [k for k, r in zip(keys, a.results) if r != "0"]
    print(f"  1,200 registers created in {time.monotonic() - began:.2f} s")
    t.equal(lost, [b"slot/0007"], "conflicts")
    t.result(p.many(*[(b"x%d" % i, None, b"x") for i in range(128)]), "FIRN_EINVAL", "more than etcd takes")
    t.equal(p.many((b"slot/0001", b"x" * 200, None), (b"slot/0002", b"y", None), (b"b", None, b"z")).results,
            ["0", CONFLICT, "0"], "removing, refusing and creating at once")
    found = p.scan(b"slot/").found  # three pages
    t.equal([k for k, _ in found], [b"slot/%04d" % i for i in range(1200) if i != 1], "a scan, in order")
    t.equal(dict(found)[b"slot/0007"], b"mine", "its values")
    t.equal(len(p.scan(b"slot/", 3).found), 3, "a scan that is ended early")
    t.equal(p.scan(b"slot/1").found, [x for x in found if x[0].startswith(b"slot/1")], "a part of them")


def waiting(t):
    e = t.cluster()
    p, w = t.opened(e.url(), 1000), t.opened(e.url())
    t.result(p.wait(b"a", None, 300), "FIRN_EAGAIN", "nothing comes")
    t.result(p.wait(b"a", None, 0), "FIRN_EAGAIN", "no time at all")
    t.result(p.wait(b"a", b"x", LIMIT * 1000), ENOENT, "it is absent already")
    p.send("wait", b"a", None, Raw(LIMIT * 1000))
    t.check(not p.ready(0.5), "it waits")
    t.result(w.cas(b"a", None, b"0"), "0", "create")
    t.equal(p.answer().value, b"0", "the new value")
    t.equal(p.wait(b"a", b"old", LIMIT * 1000).value, b"0", "it differs already")
    p.send("wait", b"a", b"0", Raw(LIMIT * 1000))
    t.check(not p.ready(2.5), "it waits longer than one call may take")
    t.result(w.cas(b"a", b"0", None), "0", "remove")
    t.result(p.answer(), ENOENT, "removed")

    # As fast as it goes: a change between a look and its watch must not be lost, or this would hang.
    last = None
    for i in range(200):
        p.send("wait", b"a", last, Raw(LIMIT * 1000))
        new = b"%d" % i
        until("a change", lambda: w.cas(b"a", last, new).ok or w.read(b"a").value == new)  # pylint: disable=cell-var-from-loop
        if not t.equal(p.answer().value, new, "a change at any moment"):
            break
        last = new

    # The member that is watched stops: the news come from another.
    p.send("wait", b"a", last, Raw(LIMIT * 1000))
    t.check(not p.ready(0.3), "it waits")
    e.pause(0)
    v = t.opened(e.url(endpoints=e.endpoints[1:]))
    until("a write without the first member", lambda: v.cas(b"a", last, b"end").ok or v.read(b"a").value == b"end")
    news = p.answer()
    if not news.ok:  # the members took longer to elect a leader than one call may: it asks again
        news = p.wait(b"a", last, LIMIT * 1000)
    t.equal(news.value, b"end", "the news of another member")
    e.resume(0)


def late_landing(t):
    """A write that was given up may land later; UNKNOWN says so, and the register tells."""
    e = t.cluster()
    p, w = t.opened(e.url(), 1000), t.opened(e.url())
    late = 0
    for i in range(12):
        key = b"late/%d" % i
        lead = e.leader()
        q = t.opened(e.url(endpoints=[e.endpoints[lead]]), 700) if i % 2 else p
        stopped = [n for n in range(3) if n != lead] if i % 2 else range(3)  # with and without the leader
        for n in stopped:
            e.pause(n)
        a = q.cas(key, None, b"%d" % i)
        for n in stopped:
            e.resume(n)
        t.result(a, UNKNOWN, "a write to members that stand still")
        again = until("etcd goes on", lambda: w.read(key) if w.read(key).result in ("0", ENOENT) else None)
        t.check(again.value in (None, b"%d" % i), f"the register: {again}")
        late += w.wait(key, None, 3000).ok
        if late and i:
            break
    t.check(late > 0, "no write was ever seen to land after its time-out")
    a = until("the handle works again", lambda: w.cas(b"x", None, b"y").result in ("0", CONFLICT))
    t.check(a, "another handle")
    t.equal(until("this one", lambda: p.read(b"x").value), b"y", "the handle that was given no answer")


def fail_over(t):
    e = t.cluster()
    p = t.opened(e.url(), 5000)
    value, number, maybe, counts = None, 0, set(), {}

    def write():
        """One write; the register tells what an open outcome was. Only a write of its own may be in the way."""
        nonlocal value, number
        number += 1
        new = b"%d" % number
        a = p.cas(b"k", value, new)
        counts[a.result] = counts.get(a.result, 0) + 1
        if a.ok:
            value, _ = new, maybe.clear()
            return True
        if a.result == UNKNOWN:
            maybe.add(new)
        r = until("a read", lambda: p.read(b"k") if p.read(b"k").result in ("0", ENOENT) else None)
        good = r.value == value or r.value in maybe
        t.check(good and a.result in (UNKNOWN, EIO, CONFLICT), f"{a}, then {r}, after {value} and {maybe}")
        t.check(a.result != CONFLICT or r.value in maybe, f"a conflict without another writer: {a}, {r}, {value}, {maybe}")
        if r.value != value:
            maybe.clear()
        value = r.value
        return False

    for round_ in range(6):
        until("a write", write)
        victim = round_ % 3
        for i in range(40):
            if i == 20:
                e.kill(victim)
            write()
        until("a write without it", write)
        t.equal(p.read(b"k").value, value, "what was acknowledged")
        e.restart(victim)
    print(f"  answers: {counts}")

    e.kill()
    t.result(p.cas(b"k", value, b"never"), EIO, "a write while no server listens")
    t.result(p.read(b"k"), EIO, "a read while no server listens")
    t.result(p.wait(b"k", value, 1000), EIO, "waiting while no server listens")
    t.result(p.scan(b""), EIO, "a scan while no server listens")
    t.result(p.identity(), EIO, "identity while no server listens")
    t.result(t.probe(e.url()).opened, EIO, "open while no server listens")
    e.restart()
    t.equal(until("a read", lambda: p.read(b"k").value), value, "kept over kill -9 of all")

    # Without a quorum the cause is not one member: each of them is named, with its own trouble.
    until("a write", write)
    e.kill(0)
    e.kill(1)
    def named(answer):
        return all(at in str(answer) for at in e.endpoints)
    until("a read that names every member", lambda: named(p.read(b"k")))
    until("a write that names every member", lambda: named(p.cas(b"k", value, value)))
    e.restart(0)
    e.restart(1)
    until("a read", lambda: p.read(b"k").result == "0")

    # One member stands still: a read goes on to the next within its time, a write that was sent does not.
    e.pause(0)
    q = t.opened(e.url(), 10000)
    t.equal(q.read(b"k").value, value, "a read past the silent member")
    e.resume(0)


def restored(t):
    e = t.cluster()
    snapshot = os.path.join(e.folder, "snapshot")
    reader, writer, blind, late = (t.opened(e.url()) for _ in range(4))
    t.result(writer.cas(b"k", None, b"1"), "0", "create")
    t.result(writer.cas(b"still", None, b"1"), "0", "create another")
    e.snapshot(snapshot)
    for i in range(1, 9):
        t.result(writer.cas(b"k", b"%d" % i, b"%d" % (i + 1)), "0", "what will be forgotten")
    for p in (reader, blind, late):
        t.equal(p.read(b"k").value, b"9", "before")
    id_before = reader.identity().value
    e.restore(snapshot)

    # A reader sees it; from then on it refuses to write, until it looked anew.
    t.equal(until("a read", lambda: reader.read(b"k").value), b"1", "after the restore")
    for _ in range(2):
        a = reader.cas(b"k", b"1", b"forked")
        t.result(a, CHANGED, "a write after the revision fell")
        t.check("restored" in a.text, f"says why: {a}")
    t.result(reader.many((b"x", None, b"y"), (b"z", None, b"y")), CHANGED, "several at once")
    t.result(reader.read(b"x"), ENOENT, "nothing was written")
    t.equal(reader.identity().value, id_before, "etcd itself does not know")
    # A writer whose compare fails learns it by that; one whose compare holds has written, and says UNKNOWN.
    t.result(writer.cas(b"k", b"9", b"10"), CHANGED, "a refused write to the restored store")
    t.result(writer.cas(b"k", b"1", b"2"), CHANGED, "and the next")
    t.result(blind.cas(b"still", b"1", b"2"), UNKNOWN, "a write that the restored store took")
    t.result(blind.cas(b"still", b"2", b"3"), CHANGED, "and the next")
    t.result(late.many((b"k", b"9", b"10"), (b"still", b"1", b"9")), CHANGED, "several, all refused")
    t.result(reader.cas(b"k", b"1", b"2"), "0", "a write after identity()")
    t.result(blind.identity(), "0", "identity")
    t.result(blind.cas(b"still", b"2", b"3"), "0", "a write after identity()")


def users(t):
    e = t.cluster()
    password = 'p:w@/ "%é'
    early = t.opened(e.url().replace("//", "//firn:p%3Aw%40%2F%20%22%25%C3%A9@", 1))
    t.result(early.cas(b"early", None, b"1"), "0", "with a password that no server asks for")
    for line in (["user", "add", "root:root"], ["role", "add", "root"], ["user", "grant-role", "root", "root"],
                 ["user", "add", f"firn:{password}"], ["role", "add", "firn"], ["user", "grant-role", "firn", "firn"],
                 ["role", "grant-permission", "firn", "readwrite", "/firn/", "--prefix=true"], ["auth", "enable"]):
        e.ctl(*line, endpoint=0)
    t.result(early.cas(b"early", b"1", b"2"), "0", "the same handle, now that it is asked for")
    t.equal(early.read(b"early").value, b"2", "and its reads")

    a = t.probe(e.url()).opened
    t.result(a, EIO, "open without a user")
    t.check("PASSWORD" in a.text, f"says what to do: {a}")
    wrong = t.probe(e.url().replace("//", "//firn:wrong@", 1)).opened
    t.result(wrong, EIO, "open with a wrong password")
    t.check("invalid user ID or password" in wrong.text and "wrong" not in wrong.text, f"says why: {wrong}")
    right = e.url().replace("//", "//firn:p%3Aw%40%2F%20%22%25%C3%A9@", 1)
    t.result(t.probe(right.replace("/firn", "/elsewhere")).opened, EIO, "open a path that is not allowed")
    p = t.opened(right)
    t.result(p.cas(b"a", None, b"1"), "0", "create")
    t.equal(len(p.scan(b"").found), 2, "scan")
    # Members forget their tokens when they end: the handle gets another.
    for i in range(3):
        e.kill(i)
        e.restart(i)
    t.equal(until("a read", lambda: p.read(b"a").value), b"1", "a read with a token that is forgotten")
    for i in range(3):
        e.kill(i)
        e.restart(i)
    until("a leader", lambda: e.leader() is not None)
    until("a write with a token that is forgotten", lambda: p.cas(b"a", b"1", b"2").ok or p.read(b"a").value == b"2")
    for i in range(3):
        e.kill(i)
        e.restart(i)
    p.send("wait", b"a", b"2", Raw(LIMIT * 1000))
    t.check(not p.ready(0.3), "it waits")
    until("a write by the other", lambda: early.cas(b"a", b"2", b"3").ok or early.read(b"a").value == b"3")
    t.equal(p.answer().value, b"3", "the news")


def tls(t):
    folder = tempfile.mkdtemp(prefix="firn-etcd-tls-")
    t.ends.append(lambda: shutil.rmtree(folder, ignore_errors=True))

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=LIMIT)

    def authority(name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")

    def certificate(name, by, more):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        with open(os.path.join(folder, "ext"), "w", encoding="ascii") as f:
            f.write(more)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial",
                "-days", "2", "-extfile", "ext", "-out", f"{name}.pem")

    for name in ("ca", "stranger"):
        authority(name)
    # The gateway reaches its own server by the same certificate, so that is a client's as well.
    certificate("server", "ca", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    certificate("client", "ca", "extendedKeyUsage=clientAuth\n")

    def file(name):
        return os.path.join(folder, name)

    e = t.cluster(tls={"ca": file("ca.pem"), "cert": file("server.pem"), "key": file("server.key"),
                       "client_cert": file("client.pem"), "client_key": file("client.key")})
    p = t.opened(e.url())
    t.result(p.cas(b"a", None, b"1"), "0", "create")
    t.equal(p.read(b"a").value, b"1", "read")
    p.send("wait", b"a", b"1", Raw(LIMIT * 1000))
    t.check(not p.ready(0.3), "it waits")
    q = t.opened(e.url())
    t.result(q.cas(b"a", b"1", b"2"), "0", "replace")
    t.equal(p.answer().value, b"2", "the news")
    e.kill(0)
    until("a write past a dead member", lambda: p.cas(b"b", None, b"1").result in ("0", CONFLICT))
    e.restart(0)

    bare, ca = e.url().split("?")[0], f"tls=yes&ca={file('ca.pem')}"
    localhost = [x.replace("127.0.0.1", "localhost") for x in e.endpoints]
    for url, what in ((f"{bare}?{ca}", "without a client's certificate"),
                      (bare, "without TLS"),
                      (e.url().replace("ca=", "ca=x"), "with an authority's file that is not there"),
                      (e.url().replace("/ca.pem", "/stranger.pem"), "with a stranger's authority"),
                      (f"{bare}?tls=yes&cert={file('client.pem')}&key={file('client.key')}", "with the system's authorities"),
                      (e.url(endpoints=localhost), "under a name that is not in the certificate")):
        t.result(t.probe(url).opened, EIO, f"open {what}")
    for url, what in ((f"{bare}?tls=maybe", "tls=maybe"), (f"{bare}?ca={file('ca.pem')}", "ca= without tls=yes"),
                      (f"{bare}?tls=no&ca={file('ca.pem')}", "ca= with tls=no"),
                      (f"{bare}?{ca}&key={file('client.key')}", "key= without cert="),
                      ("etcd://a%2Fb/firn", "a host that is none")):
        t.result(t.probe(url).opened, "FIRN_EFORMAT", what)


# ---- servers that are not etcd ----

class Fake:
    """Answers as etcd does, but to a transaction what `txn` says: bytes, or None to close without a word."""

    def __init__(self, t, version="3.4.23"):
        self.version, self.revision, self.cluster = version, 100, 7
        self.txn = self.range = lambda: self.say("{%s}" % self.header())
        self.seen, self.connections = [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.open = []
        t.ends.append(self.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def header(self):
        return '"header":{"cluster_id":"%d","revision":"%d"}' % (self.cluster, self.revision)

    def say(self, body, status="200 OK", more=""):
        body = body if isinstance(body, bytes) else body.encode()
        return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body

    @staticmethod
    def hang_up(data):
        return data, None

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.open.append(s)
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        f = s.makefile("rb")
        try:
            while True:
                path = f.readline().split(b" ")[1].decode()
                length = 0
                while (line := f.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                if len(f.read(length)) != length:
                    return
                self.seen.append(path)
                if path == "/v3/maintenance/status":
                    out = self.say('{%s,"version":"%s"}' % (self.header(), self.version))
                else:
                    out = self.txn() if path == "/v3/kv/txn" else self.range()
                for part in out if isinstance(out, tuple) else (out,):
                    if part is None:
                        return
                    s.sendall(part)
        except (OSError, IndexError, ValueError):
            pass
        finally:
            f.close()
            s.close()

    def txns(self):
        return self.seen.count("/v3/kv/txn")

    def close(self):
        self.listener.close()
        for s in self.open:
            s.close()


def strange_answers(t):
    """Whatever is no well-formed success and no well-formed conflict: UNKNOWN, after exactly one request."""
    a, b = Fake(t), Fake(t)
    p = t.opened(f"etcd://{a.address},{b.address}/firn", 3000)
    error = '{"error":"etcdserver: %s","message":"etcdserver: %s","code":%d}'
    put = '"succeeded":true,"responses":[{"response_put":{}}]'
    strange = {
        "closed without a word": lambda f: None,
        "nothing": lambda f: f.say(""),
        "an empty object": lambda f: f.say("{}"),
        "no JSON": lambda f: f.say("<html>"),
        "JSON that ends early": lambda f: f.say("{%s" % f.header()),
        "success without a header": lambda f: f.say("{%s}" % put),
        "success without responses": lambda f: f.say('{%s,"succeeded":true}' % f.header()),
        "responses without success": lambda f: f.say('{%s,"responses":[{"response_put":{}}]}' % f.header()),
        "two answers in one": lambda f: f.say("{%s,%s}{%s}" % (f.header(), put, f.header())),
        "half a head": lambda f: f.hang_up(b"HTTP/1.1 200 OK\r\nContent-Le"),
        "an answer that is cut": lambda f: f.hang_up(f.say("{%s,%s}" % (f.header(), put))[:-9]),
        "a status of 500": lambda f: f.say("{%s,%s}" % (f.header(), put), "500 Internal Server Error"),
        "a status of 201": lambda f: f.say("{%s,%s}" % (f.header(), put), "201 Created"),
        "no leader": lambda f: f.say(error % (("no leader",) * 2 + (14,)), "503 Service Unavailable"),
        "timed out": lambda f: f.say(error % (("request timed out",) * 2 + (14,)), "503 Service Unavailable"),
        "permission denied": lambda f: f.say(error % (("permission denied",) * 2 + (7,)), "403 Forbidden"),
        "sent elsewhere": lambda f: f.say("", "307 Temporary Redirect", f"Location: http://{b.address}/v3/kv/txn\r\n"),
        "not HTTP": lambda f: b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "without end": lambda f: f.say(b" " * (9 << 20)),
        "a length that never comes": lambda f: f.say("{%s,%s}" % (f.header(), put)).replace(b"Content-Length: ", b"Content-Length: 9"),
    }
    for what, answer in strange.items():
        for many in (False, True):
            p.read(b"warm")  # so that the connection is one that was kept
            for f in (a, b):
                f.seen.clear()
                f.txn = (lambda f=f, answer=answer: answer(f))
            got = p.many((b"k", None, b"v"), (b"l", None, b"v")) if many else p.cas(b"k", None, b"v")
            t.result(got, UNKNOWN, what)
            t.equal(a.txns() + b.txns(), 1, f"requests, {what}")
            for f in (a, b):
                f.txn = lambda f=f: f.say("{%s}" % f.header())
    t.result(p.cas(b"k", None, b"v"), CONFLICT, "a conflict as etcd says it")

    # A read may go on to the next member, and to the end of them.
    for what, answer in strange.items():
        if what in ("without end", "a length that never comes"):
            continue  # they take their time
        if what in ("success without responses", "responses without success"):
            continue  # nothing is wrong with that as the answer to a range
        for f in (a, b):
            f.range = lambda f=f, answer=answer: answer(f)
        t.result(p.read(b"k"), EIO, f"a read, {what}")
        t.result(p.scan(b""), EIO, f"a scan, {what}")
        b.range = lambda: b.say('{%s,"kvs":[{"key":"L2Zpcm4vaw==","value":"dg=="}]}' % b.header())
        t.equal(until("the other member", lambda: p.read(b"k").value), b"v", f"the other member, {what}")


def strange_stores(t):
    old = Fake(t, "3.4.20")
    a = t.probe(f"etcd://{old.address}").opened
    t.result(a, "FIRN_ENOTSUP", "an etcd that loses writes")
    t.check("3.4.21" in a.text, f"says which one does not: {a}")
    t.result(t.probe(f"etcd://{Fake(t, '3.5.4').address}").opened, "FIRN_ENOTSUP", "3.5.4")
    t.result(t.probe(f"etcd://{Fake(t, '3.5.5').address}").opened, "0", "3.5.5")
    t.result(t.probe(f"etcd://{Fake(t, 'none').address}").opened, EIO, "no version")

    f = Fake(t)
    p = t.opened(f"etcd://{f.address}")
    f.revision = 50
    t.result(p.read(b"k", fresh=False), ENOENT, "a lagging member's read")
    t.result(p.cas(b"k", None, b"v"), CHANGED, "an older revision")
    t.result(p.identity(), "0", "identity")
    t.result(p.cas(b"k", None, b"v"), CONFLICT, "the same revision")
    f.txn = lambda: f.say('{%s,"succeeded":true,"responses":[{"response_put":{}}]}' % f.header())
    t.result(p.cas(b"k", None, b"v"), UNKNOWN, "a write that did not raise the revision")
    t.result(p.cas(b"k", None, b"v"), CHANGED, "and the next")
    t.result(p.identity(), "0", "identity")
    f.cluster = 8
    t.result(p.read(b"k", fresh=False), CHANGED, "a read from another cluster")
    t.result(p.scan(b""), CHANGED, "a scan of another cluster")
    t.result(p.cas(b"k", None, b"v"), CHANGED, "a write to another cluster")
    t.equal(p.identity().value, b"etcd:0000000000000008", "identity of the other cluster")
    f.revision += 1
    t.result(p.cas(b"k", None, b"v"), "0", "a write for what identity() found")

    # Silence: a write is not sent to a second member, a read is; both end in time.
    silent, other = Fake(t), Fake(t)
    p = t.opened(f"etcd://{silent.address},{other.address}", 5000)
    hold = threading.Event()
    t.ends.append(hold.set)
    silent.txn = silent.range = lambda: hold.wait(LIMIT) and None
    other.seen.clear()
    t.result(p.cas(b"k", None, b"v"), UNKNOWN, "a write into silence")
    t.equal(other.seen, [], "what the next member got")
    t.result(p.cas(b"k", None, b"v"), CONFLICT, "the next write is the next member's")
    # No server listens at the first: nothing was sent, so a write may go on.
    q = t.opened(f"etcd://127.0.0.1:{free_ports(1)[0]},{other.address}", 20000)
    t.result(q.cas(b"k", None, b"v"), CONFLICT, "a write past a member that is not there")


def main():
    t = Test()
    missing = Etcd.missing()
    if missing:
        print(missing)
        return 1
    os.environ["http_proxy"] = os.environ["https_proxy"] = "http://127.0.0.1:1"  # must not be asked
    for section in (strange_answers, strange_stores, registers, waiting, late_landing, fail_over, restored, users, tls):
        t.section(section)
    print(f"{t.passed} passed, {t.failed} failed")
    return t.failed != 0 or t.passed == 0


if __name__ == "__main__":
    sys.exit(main())
