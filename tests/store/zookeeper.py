#!/usr/bin/env python3
"""
What is particular to ZooKeeper, on a real ensemble of three: sessions, users, versions that count from 0 again, servers
that lag or stand still, an ensemble that lost its memory. What all stores promise is in tests/conformance.

Usage: tests/store/zookeeper.py BIN_DIR
"""
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "conformance")]
from engines.zookeeper import Refused, ZooKeeper, znode  # noqa: E402  pylint: disable=wrong-import-position
from probe import Probe  # noqa: E402  pylint: disable=wrong-import-position
from proxy import Proxy  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_S = 180
NO_AUTH = -102
UNKNOWN, CONFLICT, EIO, ESTORE = "FIRN_EUNKNOWN", "FIRN_ECONFLICT", "FIRN_EIO", "FIRN_ESTORE"


class Failure(Exception):
    pass


class Test:
    """One case: its own path in the ensemble, its probes and proxies."""

    def __init__(self, binary, zk, path):
        self.binary, self.zk, self.path = binary, zk, path
        self.opened = []

    def probe(self, timeout_ms=15000, endpoints=None, user=""):
        p = Probe(self.binary, self.zk.url(self.path, endpoints, user), timeout_ms)
        self.opened.append(p)
        for _ in range(30):  # a short time-out is for what comes later
            if p.opened.result not in (EIO, UNKNOWN):
                break
            p.opened = p.reopen()
        return p

    def proxy(self, i):
        host, port = self.zk.endpoints[i].split(":")
        x = Proxy((host, int(port)))
        self.opened.append(x)
        return x

    def close(self):
        for p in self.opened:
            if p.close() not in (None, 0):
                raise Failure(f"the probe ended with status {p.process.returncode}")

    @staticmethod
    def check(right, *what):
        if not right:
            raise Failure(" ".join(str(w) for w in what))

    def expect(self, answer, *results):
        self.check(answer.result in results, "expected", "/".join(results), "and got:", answer)
        return answer

    def until(self, what, ask):
        end = time.monotonic() + LIMIT_S
        while not (said := ask()):
            self.check(time.monotonic() < end, "waited in vain:", what)
            time.sleep(0.02)
        return said

    def connections(self, i):
        """Clients of node i."""
        host, port = self.zk.endpoints[i].split(":")
        with socket.create_connection((host, int(port)), timeout=60) as s:
            s.sendall(b"srvr")
            answer = b""
            while part := s.recv(4096):
                answer += part
        return int(re.search(rb"^Connections: (\d+)", answer, re.M)[1]) - 1  # this one


class Forgetful(threading.Thread):
    """Before a server: what comes on connections that stand when stick() is called is forgotten, but for pings. So does
    ZooKeeper 3.8.0, now and then, with all that one session asks for."""
    PING, MULTI = -2, 14

    def __init__(self, to):
        super().__init__(daemon=True)
        self.to, self.lock, self.all, self.stuck = to, threading.Lock(), [], {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        try:
            while True:
                client, server = self.listener.accept()[0], socket.create_connection(self.to)
                with self.lock:
                    self.all += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()
        except OSError:
            pass  # closed

    def stick(self, *operations):
        """Only these operations, if any are named."""
        with self.lock:
            self.stuck = {c: operations for c in self.all}

    def _requests(self, client, server):
        try:
            f, first = client.makefile("rb"), True
            while head := f.read(4):
                body = f.read(int.from_bytes(head, "big"))
                xid, operation = (int.from_bytes(body[i:i + 4], "big", signed=True) for i in (0, 4))
                with self.lock:
                    only = self.stuck.get(client)
                if first or only is None or xid == self.PING or (only and operation not in only):
                    server.sendall(head + body)
                first = False
        except OSError:
            pass
        server.close()

    @staticmethod
    def _answers(server, client):
        try:
            while some := server.recv(65536):
                client.sendall(some)
        except OSError:
            pass
        client.close()

    def close(self):
        self.listener.close()
        for c in self.all:
            c.close()


def a_session_that_is_forgotten(t):
    host, port = t.zk.endpoints[0].split(":")
    x = Forgetful((host, int(port)))
    t.opened.append(x)
    p = t.probe(6000, [x.address])
    t.expect(p.cas(b"k", None, b"1"), "0")
    x.stick()
    t.expect(p.read(b"k"), "0")  # on another session, by the same call
    x.stick()
    t.expect(p.cas(b"k", b"1", b"2"), "0")  # it was forgotten before anything was written
    x.stick()
    t.expect(p.scan(b"k"), "0")
    x.stick(x.MULTI)
    t.expect(p.cas(b"k", b"2", b"3"), UNKNOWN)  # that was
    a = t.expect(p.read(b"k"), "0")  # but no later call meets that session
    t.expect(p.cas(b"k", a.value, b"4"), "0")


def names(t):
    """What an operator sees, and that nothing in it is bound to a session."""
    p = t.probe()
    for key in (b"slot/00012", b"meta", b"idem/a/b", b"_/x"):
        t.expect(p.cas(key, None, b"value of " + key), "0")
    p.close()
    with t.zk.client() as c:
        for key, path in ((b"slot/00012", "slot/00012"), (b"meta", "_/meta"), (b"idem/a/b", "idem/a%2Fb"),
                          (b"_/x", "%5F/x")):
            t.check(c.get(f"/{t.path}/{path}") == b"value of " + key, path)
            t.check(znode(t.path, key) == f"/{t.path}/{path}", "the engine knows the name of", key)
    t.check(t.zk.keys(t.path) == [b"_/x", b"idem/a/b", b"meta", b"slot/00012"], t.zk.keys(t.path))
    p = t.probe()
    t.check(p.read(b"meta").value == b"value of meta", "still there after its session")


def users(t):
    p = t.probe(user="firn:s%3Acret%40@")
    t.expect(p.opened, "0")
    t.expect(p.cas(b"slot/1", None, b"mine"), "0")
    t.expect(p.cas(b"slot/1", b"mine", b"mine 2"), "0")
    for user in ("", "firn:wrong@", "other:s%3Acret%40@"):
        q = t.probe(user=user)
        t.check(q.opened.result == EIO and "refuses access" in q.opened.text, user, q.opened)
        t.check("cret" not in q.opened.text, "no password in", q.opened)
    with t.zk.client(0) as c:
        for path in (f"/{t.path}", f"/{t.path}/slot", f"/{t.path}/slot/1"):
            try:
                c.get(path)
                t.check(False, "anybody may read", path)
            except Refused as e:
                t.check(e.code == NO_AUTH, e)
    with t.zk.client(0, auth="firn:s:cret@") as c:
        t.check(c.get(f"/{t.path}/slot/1") == b"mine 2", "the user may")
    t.expect(t.probe(user="firn:s%3Acret%40@").read(b"slot/1"), "0")


def an_expired_session(t):
    """The process stands still until the servers have given its session up; then it goes on as if nothing had been."""
    p = t.probe(3000, t.zk.endpoints[:1])
    t.expect(p.cas(b"k", None, b"1"), "0")
    t.until("one client", lambda: t.connections(0) == 1)
    for n in range(1, 4):
        p.process.send_signal(signal.SIGSTOP)
        t.until("its session is over", lambda: t.connections(0) == 0)
        p.process.send_signal(signal.SIGCONT)
        if n == 1:
            t.check(p.read(b"k").value == b"1", "read in the first call")
        # The client may notice that the connection was closed only after it has sent the request: then it cannot know.
        if t.expect(p.cas(b"k", b"%d" % n, b"%d" % (n + 1)), "0", UNKNOWN).result == UNKNOWN:
            t.expect(p.cas(b"k", b"%d" % n, b"%d" % (n + 1)), "0", CONFLICT)
        t.check(p.read(b"k").value == b"%d" % (n + 1), "and read back")


def the_server_in_use_is_killed(t):
    p = t.probe(2000)
    value = b"0"
    t.expect(p.cas(b"k", None, value), "0")
    for n in range(2):
        used = t.until("the server in use", lambda: [i for i in range(3) if t.connections(i) > 0])[0]
        t.zk.kill(used)
        doubt = False
        for i in range(5):
            new = b"%d.%d" % (n, i)

            def write():
                nonlocal doubt
                a = t.expect(p.cas(b"k", value, new), "0", UNKNOWN, EIO, CONFLICT)
                t.check(a.result != CONFLICT or doubt, "no other client writes", a)
                doubt = doubt or a.result == UNKNOWN
                return a.result in ("0", CONFLICT)
            t.until("a write after the fail-over", write)
            t.check(t.until("a read", lambda: p.read(b"k").value) == new, "what was acknowledged is there")
            value, doubt = new, False
        t.zk.restart(used)
        t.check(p.identity().ok, "the same store")


def a_write_that_lands_late(t):
    """The ensemble stands still with a write in its hands."""
    p = t.probe(20000)
    t.until("a value", lambda: p.read(b"k").value == b"old" or p.cas(b"k", None, b"old").ok)
    x = t.proxy(t.zk.leader())
    q = t.probe(2000, [x.address])
    t.until("the value read", lambda: q.read(b"k").value == b"old")
    x.arm("reply", 0, hold=True)
    q.send("cas", b"k", b"old", b"late")
    t.until("the value was read", lambda: x.cuts == 1)
    t.zk.pause()
    x.release()
    a = t.expect(q.answer(), UNKNOWN, EIO)
    t.check(a.ms < 20000, "in its time", a)
    t.zk.resume()
    found = t.until("an answer", lambda: p.read(b"k").value)
    t.check(a.result == UNKNOWN or found == b"old", "EIO means that nothing was written", a, found)
    if a.result == UNKNOWN:
        t.until("it lands, or is overtaken",
                lambda: p.read(b"k").value == b"late" or p.cas(b"k", b"old", b"mine").ok)
    found = t.until("an answer", lambda: p.read(b"k").value)
    t.check(found in (b"late", b"mine", b"old"), found)


def race(t, behind, new):
    """Rounds of: p reads for its write; meanwhile `behind` happens; p goes on. Returns p, its key and the answer of the
    first round where p's read came first."""
    x = t.proxy(0)
    p = t.probe(5000, [x.address])
    for n in range(20):
        key = b"k%d" % n
        t.expect(p.cas(key, None, b"first"), "0")
        t.check(p.read(key).value == b"first", "read")
        before = x.cuts
        x.arm("reply", 0, hold=True)
        p.send("cas", key, b"first", new)
        t.until("p has read", lambda: x.cuts > before)  # or a ping was answered, then the round shows nothing
        behind(key)
        x.release()
        a = p.answer()
        if new is None or a.result == ESTORE:
            return p, key, a
        t.expect(a, CONFLICT)
    raise Failure("twenty rounds without a race")


def deleted_and_created_again(t):
    """The version is the one that was read, the znode is another: the write lands, and must not be believed."""
    q = t.probe()
    t.expect(q.opened, "0")
    identity = q.identity().value

    def behind(key):
        with t.zk.client(0) as c:
            c.delete(znode(t.path, key))
            c.create(znode(t.path, key), b"second")

    p, key, a = race(t, behind, b"new")
    t.check("deleted and created" in a.text, a)
    t.expect(p.cas(b"other", None, b"x"), ESTORE)  # until somebody has looked at it
    a = t.expect(q.cas(b"other", None, b"x"), ESTORE)
    t.check("another firn" in a.text, "the others know", a)
    t.check(q.read(key).ok and p.read(key).ok, "reading is allowed")
    now = t.expect(p.identity(), "0").value
    t.check(now != identity, "another identity than", identity)
    t.check(q.identity().value == now and t.probe().identity().value == now, "for all of them", now)
    t.expect(p.cas(b"other", None, b"x"), "0")
    t.expect(q.cas(b"other", b"x", b"y"), "0")


def removed_and_created_again(t):
    """A removal of the first life must not end the second, although both have version 0."""
    q = t.probe()

    def behind(key):
        t.expect(q.cas(key, b"first", None), "0")
        t.expect(q.cas(key, None, b"second"), "0")

    p, key, a = race(t, behind, None)
    t.expect(a, CONFLICT)
    t.check(p.read(key).value == b"second", "the second life goes on")
    t.expect(p.cas(key, b"second", None), "0")


def fresh_needs_a_quorum(t):
    """A leader without its followers does not know what they may have decided; zoo_async() would be answered."""
    leader = t.zk.leader()
    p = t.probe(3000, [t.zk.endpoints[leader]])
    t.expect(p.cas(b"k", None, b"1"), "0")
    others = [i for i in range(3) if i != leader]
    for i in others:
        t.zk.pause(i)
    try:
        stale, fresh = p.read(b"k", fresh=False), p.read(b"k")
    finally:
        for i in others:
            t.zk.resume(i)
    t.check(stale.value == b"1", "an old answer can be had", stale)
    t.expect(fresh, EIO)
    t.until("healed", lambda: p.read(b"k").ok)


def wiped(t):
    p = t.probe()
    t.expect(p.cas(b"k", None, b"1"), "0")
    identity = p.identity().value
    with t.zk.client() as c:
        c.wipe(f"/{t.path}")
    t.expect(p.cas(b"k", b"1", b"2"), ESTORE)
    t.expect(p.cas(b"k", None, b"2"), ESTORE)
    t.expect(p.read(b"k"), "FIRN_ENOENT")
    t.check(t.expect(p.identity(), "0").value != identity, "a new store")
    t.expect(p.cas(b"k", None, b"2"), "0")


def restored(t):
    """Also a handle that is opened after the restore sees another identity, once somebody has noticed."""
    p, q = t.probe(), t.probe()
    t.expect(p.cas(b"k", None, b"1"), "0")
    identity = p.identity().value
    with tempfile.TemporaryDirectory(dir=t.zk.folder) as copy:
        t.zk.snapshot(copy)
        t.expect(p.cas(b"k", b"1", b"2"), "0")
        t.expect(q.cas(b"q", None, b"1"), "0")
        t.zk.restore(copy)
    t.until("an answer", lambda: t.probe(20000).opened.ok)
    answers = []
    t.until("p writes", lambda: answers.append(p.cas(b"k", b"1", b"3")) or answers[-1].result not in (EIO, UNKNOWN))
    t.expect(answers[-1], ESTORE)
    r = t.probe()
    now = t.expect(r.identity(), "0").value
    t.check(now != identity, "a later handle sees", now)
    t.until("q writes", lambda: answers.append(q.cas(b"k", b"1", b"3")) or answers[-1].result not in (EIO, UNKNOWN))
    t.expect(answers[-1], ESTORE)
    t.check(p.identity().value == now and q.identity().value == now and r.identity().value == now, "one mark is enough")
    t.expect(p.cas(b"k", b"1", b"3"), "0")
    t.expect(q.cas(b"k", b"3", b"4"), "0")
    t.expect(r.cas(b"k", b"4", b"5"), "0")


def bad_paths(t):
    for path in ("a//b", "a/", "/a", "./a", "a/..", "zookeeper/x", "a%01b"):
        t.path = path
        t.expect(t.probe().opened, "FIRN_EFORMAT")


CASES = [names, users, an_expired_session, a_session_that_is_forgotten, the_server_in_use_is_killed, a_write_that_lands_late,
         deleted_and_created_again, removed_and_created_again, fresh_needs_a_quorum, wiped, restored, bad_paths]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    binary = os.path.join(sys.argv[1], "..", "tests", "store_probe")
    missing = ZooKeeper.missing() or (None if os.access(binary, os.X_OK) else binary)
    if missing:
        print(f"FAIL  missing: {missing}\n0 passed, 1 failed")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = tempfile.mkdtemp(prefix="firn-zookeeper-")
    zk, passed, failed = ZooKeeper(folder), 0, 0
    try:
        zk.start()
        for number, case in enumerate(c for c in CASES if all(w in c.__name__ for w in sys.argv[2:])):
            t, start = Test(binary, zk, f"case{number}"), time.monotonic()
            try:
                case(t)
                t.close()
                passed += 1
                print(f"ok    {case.__name__:<32} {time.monotonic() - start:5.1f} s", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                wrong = str(e) if isinstance(e, Failure) else traceback.format_exc()
                print(f"FAIL  {case.__name__:<32} {wrong}", flush=True)
                for p in t.opened:
                    p.kill() if isinstance(p, Probe) else p.close()
                zk.restart()
    finally:
        zk.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
