#!/usr/bin/env python3
"""
Clients that do everything wrong. Each is refused politely (the right status or a RESP error, then the end
of the connection) or outlived; memory stays bounded; and a well-behaved client beside it is served all the
time. Memory is asserted in plain builds only: sanitizers keep freed memory for a while, by design.
"""
import os
import random
import re
import selectors
import socket
import sqlite3
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import smuggling as smuggled  # noqa: E402
from firnd import LIMIT, Firnd, Gone, Http, NotThere, Resp, Test, wait_for  # noqa: E402

RSS_MAX = 64 << 20  # bytes that a wave of bad clients may add
SEED = int(os.environ.get("FIRN_TEST_SEED", "") or time.time_ns() % 1_000_000_007)


def rss(f):
    with open(f"/proc/{f.pid}/status", encoding="ascii") as s:
        return int(re.search(r"VmRSS:\s+(\d+) kB", s.read())[1]) << 10


def sanitized(t):
    with open(os.path.join(t.bin, "firnd"), "rb") as f:
        binary = f.read()
    return b"__asan_init" in binary or b"__tsan_init" in binary


class Beside:
    """`with Beside(t, f, "what"):` good clients of both protocols work meanwhile, and memory is watched."""

    def __init__(self, t, f, what):
        self.t, self.f, self.what = t, f, what
        self.served, self.wrong, self.ended = [0, 0], [], False
        self.http, self.resp = Http(f.snowflake), Resp(f.ticket)
        self.highest = 0

    def _http(self):
        last = 0
        while not self.ended:
            status, body = self.http.get("/generate")
            this = int(body.split(b'"')[3]) if status == 200 else 0
            if this <= last:
                raise ValueError(f"{status} {body}")
            last = this
            self.served[0] += 1
            self.highest = max(self.highest, rss(self.f))
            time.sleep(0.002)

    def _resp(self):
        last = 0
        while not self.ended:
            this = self.resp.do("INCR", "beside")
            if this != last + 1:
                raise ValueError(f"INCR gave {this} after {last}")
            last = this
            self.served[1] += 1
            time.sleep(0.002)

    def _run(self, fn):
        try:
            fn()
        except Exception as e:  # pylint: disable=broad-except
            self.wrong.append(f"{type(e).__name__}: {e}")

    def __enter__(self):
        self.before = rss(self.f)
        self.threads = [threading.Thread(target=self._run, args=(fn,), daemon=True) for fn in (self._http, self._resp)]
        for thread in self.threads:
            thread.start()
        wait_for("the good clients to begin", lambda: min(self.served) > 0 or self.wrong)
        return self

    def more(self):
        """They are served now, too, not only at the beginning."""
        was = list(self.served)
        wait_for(f"the good clients to be served during {self.what}",
                 lambda: self.wrong or all(b > a for a, b in zip(was, self.served)))

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.more()
        self.ended = True
        for thread in self.threads:
            thread.join(LIMIT)
        self.t.equal(self.wrong, [], f"{self.what}: what the good clients met")
        grown = self.highest - self.before
        self.t.say(f"{self.served[0]} and {self.served[1]} good answers meanwhile; memory grew by {grown >> 10} KiB")
        if not sanitized(self.t):
            self.t.check(grown < RSS_MAX, f"{self.what}: memory grew by {grown >> 10} KiB")
        self.http.close()
        self.resp.close()


def connect(address, buffer=0):
    host, port = address.rsplit(":", 1)
    s = socket.socket()
    s.settimeout(LIMIT)
    if buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    s.connect((host, int(port)))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def read_all(s):
    """Everything until the end; a reset counts as one, noted. Silence is an error."""
    got = b""
    try:
        while True:
            some = s.recv(65536)
            if not some:
                return got
            got += some
    except ConnectionError:
        return got + b"<reset>"
    except socket.timeout as e:
        raise NotThere(f"neither an answer nor the end of the connection came after {got[:100]!r}") from e


def tell(address, data, shut=False):
    """Send everything, read everything. The server may refuse before it has read all."""
    s = connect(address)
    try:
        s.sendall(data)
        if shut:
            s.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass
    try:
        return read_all(s)
    finally:
        s.close()


def statuses(answer):
    return [int(s) for s in re.findall(rb"(?:^|\n)HTTP/1\.1 (\d\d\d) ", answer)]


def refused(t, answer, status, what):
    """One answer with this status (or one of several), as a problem, on a connection that ends after it."""
    want = status if isinstance(status, tuple) else (status,)
    got = statuses(answer)
    return t.check(len(got) == 1 and got[0] in want and b"problem+json" in answer and b"Connection: close" in answer
                   and not answer.endswith(b"<reset>"), f"{what}: expected {want}, got {got} {answer[-300:]!r}")


def start(t, name, *args):
    return Firnd(t, t.steady(name), *args).wait_ready()


def end(t, f):
    t.equal(f.stop(), 0, "exit status after SIGTERM")


GOOD = b"GET /generate HTTP/1.1\r\nHost: a\r\n\r\n"


# --- slow ---


def slow_loris(t):
    """Hundreds of connections that send a byte now and then: the deadline counts from the first byte."""
    f = start(t, "slow", "--limits-header-ms=700")
    http = b"GET /generate?" + b"a" * 4000
    post = b"POST /v1/sequences HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 60
    resp = b"*2\r\n$4\r\nINCR\r\n$60\r\n" + b"a" * 50
    with Beside(t, f, "slow loris") as beside:
        clients = []
        pick = selectors.DefaultSelector()
        for i in range(300):
            text = (http, post, resp)[i % 3]
            s = connect(f.snowflake)
            s.sendall(text[:8])  # enough to know the protocol by: who is slow before it is closed without a word
            s.setblocking(False)
            clients.append([s, text, 8, b"", False])
            pick.register(s, selectors.EVENT_READ, clients[-1])
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and not all(c[4] for c in clients):
            for c in clients:
                if not c[4] and c[2] < len(c[1]):
                    try:
                        c[2] += c[0].send(c[1][c[2]:c[2] + 1])
                    except OSError:
                        c[2] = len(c[1])
            for key, _ in pick.select(timeout=0.05):
                c = key.data
                try:
                    some = c[0].recv(65536)
                except ConnectionError:
                    some = b""
                c[3] += some
                if not some:
                    c[4] = True
                    pick.unregister(c[0])
        beside.more()
        t.equal(sum(not c[4] for c in clients), 0, "connections that are left open")
        for c in clients:
            if c[1] is resp:  # Redis has no word for it
                t.equal(c[3], b"", "a slow RESP client is closed")
            else:
                t.equal(statuses(c[3]), [408], "a slow HTTP client is told")
            c[0].close()
    end(t, f)


def half_open(t):
    """Connections that say nothing, say half, or only half close."""
    f = start(t, "half", "--limits-idle-ms=8000", "--limits-header-ms=8000")
    with Beside(t, f, "half-open connections") as beside:
        silent = [connect(f.snowflake) for _ in range(300)]
        beside.more()
        t.equal([read_all(s) for s in silent], [b""] * 300, "silent connections are closed")
        for s in silent:
            s.close()

        # A client that has said all it wants to say still gets its answers.
        for _ in range(20):
            t.equal(statuses(tell(f.snowflake, GOOD * 3, shut=True)), [200] * 3, "answers after a half-close")
            t.equal(statuses(tell(f.ticket, GOOD * 3, shut=True)), [200] * 3, "tickets after a half-close")
            t.equal(tell(f.ticket, b"*1\r\n$4\r\nPING\r\n" * 3, shut=True), b"+PONG\r\n" * 3, "RESP after a half-close")

        # One that resets while its tickets are under way leaves nothing behind.
        for i in range(200):
            s = connect(f.ticket)
            s.sendall(GOOD * (i % 5) + b"GET /gen")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        wait_for("reset connections to be gone", lambda: f.metric("firn_connections") <= 3)
        # The one beside may have a request under way, so not at every moment.
        wait_for("no request to be left waiting", lambda: f.metric("firn_requests_waiting") == 0)
    end(t, f)


# --- much ---


def stream(address, data, enough):
    """Sends from a thread of its own, reads until `enough` says so."""
    s = connect(address)
    sender = threading.Thread(target=s.sendall, args=(data,), daemon=True)
    sender.start()
    got, parts = 0, []
    while not enough(parts):
        some = s.recv(1 << 20)
        if not some:
            raise Gone(f"closed after {got} bytes")
        parts.append(some)
        got += len(some)
    sender.join(LIMIT)
    s.close()
    return b"".join(parts)


def counting(mark, n):
    """Stops when `mark` has come n times; a mark may lie across two reads."""
    state = {"at": 0, "count": 0, "tail": b""}

    def enough(parts):
        while state["at"] < len(parts):
            text = state["tail"] + parts[state["at"]]
            state["count"] += text.count(mark)
            keep = text.rfind(mark)
            rest = text[keep + len(mark):] if keep >= 0 else text
            state["tail"] = rest[-(len(mark) - 1):] if len(mark) > 1 else b""
            state["at"] += 1
        return state["count"] >= n
    return enough


def pipelines(t):
    n = 100_000
    f = start(t, "pipelines")
    with Beside(t, f, "100,000 requests in one go"):
        out = stream(f.snowflake, GOOD * n, counting(b'"}\n', n))
        ids = [int(i) for i in re.findall(rb'\{"id":"(\d+)"\}', out)]
        t.check(len(ids) == n and all(a < b for a, b in zip(ids, ids[1:])), f"{len(ids)} Snowflake IDs, rising")
        t.equal(out.count(b"HTTP/1.1 200 OK\r\n"), n, "answers")

        out = stream(f.ticket, GOOD * n, counting(b'"}\n', n))
        ids = [int(i) for i in re.findall(rb'\{"id":"(\d+)"\}', out)]
        t.check(ids == list(range(100001, 100001 + n)), f"{len(ids)} tickets in order from {ids[:1]}")

        def word(*words):
            return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        incr = word(b"INCR", b"default") + word(b"INCR", b"range")
        data = b"".join(word(b"ECHO", b"%d" % i) + incr for i in range(n))
        out = stream(f.home, data, counting(b"\r\n:", 2 * n)).split(b"\r\n")
        while len(out) < 4 * n + 1:
            out.append(b"?")
        t.check(all(out[4 * i + 1] == b"%d" % i for i in range(n)), "100,000 echoes in order")
        t.check(all(out[4 * i + 2] == b":%d" % (200001 + i) for i in range(n)), "100,000 gapless tickets in order")
        t.check(all(out[4 * i + 3] == b":%d" % (1 + i) for i in range(n - 1)), "100,000 numbers of a range in order")
    end(t, f)


def giants(t):
    f = start(t, "giants")
    head = b"GET /generate HTTP/1.1\r\nHost: a\r\n"
    post = b"POST /v1/sequences HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    cases = [
        ("a header of 1 MB", head + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", 431),
        ("a header's name of 1 MB", head + b"a" * 1_000_000 + b": x\r\n\r\n", 431),
        ("a header without end", head + b"X: " + b"a" * 20_000, 431),
        ("a target of 1 MB", b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("a method of 1 MB", b"A" * 1_000_000, (400, 431, 501)),
        ("101 headers", head + b"X: y\r\n" * 100 + b"\r\n", 431),
        ("100,000 headers", head + b"X: y\r\n" * 100_000 + b"\r\n", 431),
        ("a body of 10 MB", post + b"Content-Length: 10000000\r\n\r\n" + b"a" * 10_000_000, 413),
        ("a body of 1 EB", post + b"Content-Length: 1152921504606846976\r\n\r\n" + b"a" * 100_000, 413),
        ("a length of 100 digits", post + b"Content-Length: " + b"9" * 100 + b"\r\n\r\n", 413),
        ("a chunk of 1 GB", post + b"Transfer-Encoding: chunked\r\n\r\n40000000\r\n" + b"a" * 100_000, 413),
        ("100,000 chunks", post + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000, 413),
        ("a trailer of 1 MB", post + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 1_000_000, (413, 431)),
        ("a chunk extension of 1 MB", post + b"Transfer-Encoding: chunked\r\n\r\n1;x=" + b"a" * 1_000_000, 400),
    ]
    with Beside(t, f, "giants") as beside:
        for what, data, status in cases:
            refused(t, tell(f.snowflake, data), status, what)
        # A whole crowd, each with the longest request that is not refused yet.
        crowd = [connect(f.snowflake) for _ in range(200)]
        for s in crowd:
            s.sendall(post + b"Content-Length: 65536\r\n\r\n" + b" " * 60_000)
        beside.more()
        for s in crowd:
            s.close()
        ok = tell(f.snowflake, head + b"X: y\r\n" * 98 + b"Connection: close\r\n\r\n")
        t.equal(statuses(ok), [200], "100 headers are allowed")
    end(t, f)


# --- wrong ---


def garbage(t):
    f = start(t, "garbage")
    rng = random.Random(SEED)
    t.say(f"seed {SEED}: FIRN_TEST_SEED={SEED} repeats it")
    hello = bytes.fromhex("16030100750100007103035c1c0d2b" + "00" * 28 + "000004c02bc02f0100000000")
    known = [
        ("TLS", hello), ("SSH", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), ("SMTP", b"EHLO mail.example\r\n"),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"), ("memcached", b"stats\r\n"),
        ("zeros", bytes(1000)), ("RDP", b"\3\0\0\x13\x0e\xe0\0\0\0\0\0\1\0\x08\0\3\0\0\0"),
        ("PostgreSQL", struct.pack(">II", 8, 80877103)), ("SOCKS", b"\5\1\0"), ("text", b"good morning\r\n\r\n"),
        ("newlines", b"\n" * 100), ("UTF-16", "GET / HTTP/1.1\r\n\r\n".encode("utf-16")),
    ]
    with Beside(t, f, "garbage"):
        for what, data in known:
            for address in (f.snowflake, f.ticket):
                got = tell(address, data, shut=True)
                t.check(not got.endswith(b"<reset>") and len(statuses(got)) <= 1 and
                        (got == b"" or 400 <= (statuses(got) or [0])[0] < 600), f"{what}: {got[:200]!r}")
        for what, data in known[:3]:  # these know at once that something is wrong
            refused(t, tell(f.snowflake, data), (400, 501, 505), what)
        for i in range(300):
            data = rng.randbytes(rng.randrange(1, 3000))
            if i % 3 == 1:
                data = b"*" + data
            elif i % 3 == 2:  # a good request with some bytes changed
                good = bytearray(GOOD + b"POST /v1/ids/ulid HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}" + GOOD)
                for _ in range(rng.randrange(1, 4)):
                    good[rng.randrange(len(good))] = rng.randrange(256)
                data = bytes(good)
            got = tell(f.ticket, data, shut=True)
            t.check(not got.endswith(b"<reset>") and (got == b"" or got[:9] in (b"HTTP/1.1 ",) or got[:1] in b"-+:$*%"),
                    f"random bytes {i}: {got[:100]!r}")
    end(t, f)


def resp_bombs(t):
    f = start(t, "bombs")
    multibulk = b"-ERR Protocol error: invalid multibulk length\r\n"
    bulk = b"-ERR Protocol error: invalid bulk length\r\n"
    crlf = b"-ERR Protocol error: expected CRLF after a bulk string\r\n"
    long = b"$65000\r\n" + b"a" * 65000 + b"\r\n"
    ping = b"*1\r\n$4\r\nPING\r\n"
    cases = [
        ("an array of a billion", b"*1000000000\r\n", multibulk),
        ("an array of 2^64", b"*18446744073709551616\r\n", multibulk),
        ("an array of 1025", b"*1025\r\n", multibulk),
        ("an array of nothing", b"*\r\n", multibulk),
        ("an array of letters", b"*abc\r\n", multibulk),
        ("a length without end", b"*" + b"1" * 100_000, multibulk),
        ("a bulk of 1 GB", b"*1\r\n$1073741824\r\n", bulk),
        ("a bulk of 1 GB that comes", b"*2\r\n$4\r\nECHO\r\n$1073741824\r\n" + b"a" * 4_000_000, bulk),
        ("a bulk of 2^64", b"*1\r\n$18446744073709551616\r\n", bulk),
        ("a bulk of -1", b"*1\r\n$-1\r\n", bulk),
        ("a bulk of -2^63", b"*1\r\n$-9223372036854775808\r\n", bulk),
        ("a null in the middle", b"*2\r\n$4\r\nECHO\r\n$-1\r\n", bulk),
        ("a request of 200 KB", b"*4\r\n$4\r\nECHO\r\n" + long * 3, b"-ERR Protocol error: too big request\r\n"),
        ("a nested array", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"-ERR Protocol error: expected '$', got '*'\r\n"),
        ("a tower of arrays", b"*1\r\n" * 100_000, b"-ERR Protocol error: expected '$', got '*'\r\n"),
        ("an integer for a bulk", b"*2\r\n$4\r\nECHO\r\n:5\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n"),
        ("a bulk longer than it says", b"*1\r\n$4\r\nPINGS\r\n", crlf),
        ("HTTP inside RESP", b"*1\r\n" + GOOD, b"-ERR Protocol error: expected '$', got 'G'\r\n"),
        ("a line of 100 KB", b"PING " + b"a" * 100_000, b"-ERR Protocol error: too big inline request\r\n"),
        ("an open quote", b'PING "a\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    ]
    with Beside(t, f, "RESP bombs") as beside:
        for what, data, answer in cases:
            t.equal(tell(f.ticket, data), answer, what)
            t.equal(tell(f.ticket, ping + data), b"+PONG\r\n" + answer, f"{what}, after a PING")
        for what, data in (("an empty array", b"*0\r\n"), ("a null array", b"*-1\r\n"), ("an array of -5", b"*-5\r\n"),
                           ("100,000 empty arrays", b"*0\r\n" * 100_000)):
            t.equal(tell(f.ticket, data + ping, shut=True), b"+PONG\r\n", f"{what} is no request")
        # The longest requests that are allowed, unfinished, from a crowd.
        crowd = [connect(f.ticket) for _ in range(200)]
        for s in crowd:
            s.sendall(b"*3\r\n$4\r\nECHO\r\n$60000\r\n" + b"a" * 60_000 + b"\r\n$60000\r\n" + b"a" * 30_000)
        beside.more()
        for s in crowd:
            s.close()
        # Arguments that are far too much for a command are its error, not the connection's.
        many = b"*1024\r\n" + b"$4\r\nINCR\r\n" * 1024
        long = b"*2\r\n$4\r\nINCR\r\n$60000\r\n" + b"a" * 60_000 + b"\r\n"
        unknown = b"*2\r\n$60000\r\n" + b"b\n" * 30_000 + b"\r\n$1\r\na\r\n"
        got = tell(f.ticket, many + long + unknown + ping, shut=True).split(b"\r\n")
        t.equal([g[:4] for g in got], [b"-ERR"] * 3 + [b"+PON", b""], "errors of commands")
        wait_for("the crowd to be gone", lambda: f.metric("firn_connections") <= 3)
    end(t, f)


def truncated(t):
    """Every request is cut at every byte: then nothing is done; and put together again: then it is."""
    f = start(t, "truncated")
    create = (b"POST /v1/sequences HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
              b"Content-Type: application/json\r\n")
    make, again = b'{"name":"cut2","start":"1"}', b'{"name":"cut3","start":"1"}'
    requests = [
        b"GET /generate?seq=default HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"POST /generate HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
        create + b"Content-Length: %d\r\n\r\n" % len(make) + make,
        create + b"Transfer-Encoding: chunked\r\n\r\n"
        b"5\r\n" + again[:5] + b"\r\n%x;a=b\r\n" % (len(again) - 5) + again[5:] + b"\r\n0\r\nX: y\r\n\r\n",
        b"*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n",
        b"*4\r\n$9\r\nFIRN.NEXT\r\n$6\r\nticket\r\n$5\r\nCOUNT\r\n$1\r\n1\r\n",
        b"PING hello\r\n",
    ]
    look = Resp(f.ticket)
    look.do("INCR", "default")
    with Beside(t, f, "truncated input"):
        for n, request in enumerate(requests):
            wrong, before = [], look.do("GET", "default")
            for cut in range(1, len(request)):
                got = tell(f.ticket, request[:cut], shut=True)
                if got != b"":
                    wrong.append((cut, got[:80]))
            t.equal(wrong, [], f"request {n}: answers to half of it")
            t.equal(look.do("GET", "default"), before, f"request {n}: numbers that halves took")

            good = None
            for cut in range(1, len(request)):
                s = connect(f.ticket)
                s.sendall(request[:cut])
                if cut % 8 == 0:
                    time.sleep(0.001)  # more often than not the two come in two reads
                s.sendall(request[cut:])
                s.shutdown(socket.SHUT_WR)
                got = read_all(s)
                s.close()
                shape = re.sub(rb"Date: [^\r]*|\d+", b"#", got)
                if n in (2, 3) and cut == 1:
                    t.equal(statuses(got), [201], f"request {n} makes a sequence")
                    continue  # after that there is one of that name
                good = good or shape
                if shape != good or not got:
                    wrong.append((cut, got[:200]))
            t.equal(wrong, [], f"request {n}: in two pieces")
    look.close()
    end(t, f)


def smuggling(t):
    """Whatever two parsers could read in two ways is refused, and what follows is not taken for a request."""
    f = start(t, "smuggling")
    with Beside(t, f, "smuggling"):
        for what, data, status in smuggled.refused(b"/generate"):
            refused(t, tell(f.snowflake, data + GOOD), status, what)
            refused(t, tell(f.snowflake, data + GOOD, shut=True), status, f"{what}, half-closed")
        two = [[200, 200], [415, 200]]  # a body that is not JSON is the route's to refuse; the framing is right
        others = [
            ("another method", b"BREW /generate HTTP/1.1\r\nHost: a\r\n\r\n", [[400], [501], [405, 200]]),
            ("a method that is not allowed", b"DELETE /generate HTTP/1.1\r\nHost: a\r\n\r\n", [[405, 200]]),
        ]
        good = [(what, data, two) for what, data, _ in smuggled.taken(b"/generate", GOOD)] + others
        for what, data, want in good:
            got = statuses(tell(f.snowflake, data + GOOD, shut=True))
            t.check(got in want, f"{what}: {got}")
    end(t, f)


# --- rude ---


def deaf(t):
    """Clients that ask and never read: they are not read from any more, and cost a bounded amount."""
    f = start(t, "deaf", "--limits-write-ms=600000")
    asks = {  # kinds without a rate of their own: a Snowflake layout has so many IDs per second and no more
        "HTTP": (f.snowflake, b"GET /generate?kind=uuidv4&n=1000 HTTP/1.1\r\nHost: a\r\n\r\n"),
        "tickets": (f.ticket, b"GET /generate?n=1000 HTTP/1.1\r\nHost: a\r\n\r\n"),
        "RESP": (f.ticket, b"*4\r\n$9\r\nFIRN.NEXT\r\n$6\r\nuuidv7\r\n$5\r\nCOUNT\r\n$4\r\n1000\r\n"),
        "RESP tickets": (f.ticket, b"*4\r\n$9\r\nFIRN.NEXT\r\n$6\r\nticket\r\n$5\r\nCOUNT\r\n$4\r\n1000\r\n"),
    }
    with Beside(t, f, "deaf clients") as beside:
        crowd = []
        for what, (address, ask) in asks.items():
            data = memoryview(ask * (16_000_000 // len(ask)))  # more than all the buffers on the way hold
            for _ in range(12):
                s = connect(address, buffer=32768)
                s.setblocking(False)
                crowd.append([what, s, data, 0])
        last = time.monotonic()
        while time.monotonic() - last < 1:  # until no send gets through for a second
            for c in crowd:
                try:
                    c[3] += c[1].send(c[2][c[3]:c[3] + 262144])
                    last = time.monotonic()
                except BlockingIOError:
                    pass
            time.sleep(0.01)
        beside.more()
        t.equal(sum(c[3] == len(c[2]) for c in crowd), 0, "deaf clients whose every request was taken in")
        t.check(f.metric("firn_connections") >= len(crowd), "they are still connected")
        # One of each wakes up and gets answers, whole and in order.
        for what, s, _, sent in crowd[::12]:
            s.settimeout(LIMIT)
            whole = min(sent // len(asks[what][1]), 2000)
            enough, parts = counting(b"*1000\r\n" if "RESP" in what else b"]}\n", whole), []
            while not enough(parts):
                some = s.recv(1 << 20)
                if not some:
                    break
                parts.append(some)
            t.check(enough(parts), f"{what}: {whole} answers came when it woke up")
            if "tickets" in what:
                text = b"".join(parts)
                found = re.findall(rb"\r\n(\d+)\r\n\$" if "RESP" in what else rb'"(\d+)"[,\]]', text)
                numbers = [int(n) for n in found]
                t.check(len(numbers) > 100_000 and all(a < b for a, b in zip(numbers, numbers[1:])), f"{what}: rising")
        for c in crowd:
            c[1].close()
        wait_for("deaf connections to be gone", lambda: f.metric("firn_connections") <= 3)
    end(t, f)


def deaf_for_long(t):
    """One that reads no answer for limits.write_ms is closed."""
    f = start(t, "deaf-for-long", "--limits-write-ms=500")
    s = connect(f.snowflake, buffer=32768)
    s.setblocking(False)
    data = b"GET /generate?kind=uuidv4&n=1000 HTTP/1.1\r\nHost: a\r\n\r\n" * 1000

    def closed():
        try:
            s.send(data)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        return False
    wait_for("the deaf client to be closed", closed)
    s.close()
    end(t, f)


def flood(t):
    """More connections than the limit: the next are told, the far too many are closed, then all is well."""
    f = start(t, "flood", "--limits-connections=300")
    with Beside(t, f, "a flood of connections") as beside:
        crowd = [connect(f.snowflake) for _ in range(298)]
        wait_for("the server to be full", lambda: statuses(tell(f.snowflake, GOOD, shut=True)) == [503])
        for _ in range(20):
            refused(t, tell(f.snowflake, GOOD), 503, "one too many over HTTP")
            t.equal(tell(f.ticket, b"*1\r\n$4\r\nPING\r\n"), b"-ERR max number of clients reached\r\n",
                    "one too many over RESP")
        more = []
        for _ in range(1000):  # far beyond: answered or closed, never served
            try:
                more.append(connect(f.snowflake))
            except OSError:
                pass
        beside.more()
        served = 0
        for s in more:
            try:
                s.sendall(GOOD)
            except OSError:
                pass
        for s in more:
            served += 200 in statuses(read_all(s))
            s.close()
        t.equal(served, 0, "connections served beyond the limit")
        t.equal(statuses(tell_on(crowd[0], GOOD)), [200], "those within the limit are served")
        for s in crowd:
            s.close()
        wait_for("room again", lambda: statuses(tell(f.snowflake, GOOD, shut=True)) == [200])
        t.check(f.metric("firn_connections_refused_total") >= 40, "refusals are counted")
        # Connections that come and go as fast as they can.
        for i in range(2000):
            try:
                s = connect(f.snowflake)
                if i % 2:
                    s.sendall(b"GET /gene")
                s.close()
            except ConnectionError:  # turned away before it could close
                pass

        def over():
            try:
                return f.metric("firn_connections") <= 3
            except Gone:  # a slow server still has more of them than it takes
                return False
        wait_for("the churn to be over", over)
    end(t, f)


def locked_store(t):
    """A neighbour that holds the database's lock: IDs end with the window, and /readyz says so before."""
    f = Firnd(t, t.state("locked")).wait_ready()  # with its window of 3 seconds
    db = sqlite3.connect(os.path.join(f.state, "firn.db"), timeout=LIMIT, isolation_level=None)
    home, ids = Http(f.home), Http(f.snowflake)
    t.equal(ids.get("/generate")[0], 200, "an ID while all is well")
    db.execute("BEGIN IMMEDIATE")

    def dry():
        status, body = ids.get("/generate")
        return status != 200 and (body, home.get("/readyz"))
    body, ready = wait_for("the window to end", dry)
    t.equal(ready[0], 503, f"/readyz when no ID is made any more: {ready[1]}")
    t.check(b"store does not" in body, f"the reason: {body}")
    t.equal(home.get("/healthz")[0], 200, "/healthz meanwhile")
    db.execute("ROLLBACK")
    db.close()
    wait_for("IDs again", lambda: ids.get("/generate")[0] == 200 and f.readyz()[0])
    home.close()
    ids.close()
    end(t, f)


def tell_on(s, data):
    s.sendall(data)
    return s.recv(65536)


def main():
    if os.access("/dev/shm", os.W_OK):  # other people's disk traffic is not what is tested here
        tempfile.tempdir = "/dev/shm"
    with Test("misbehave") as t:
        if sanitized(t):
            t.say("a sanitizer is built in: memory is not asserted")
        for part in (slow_loris, half_open, pipelines, giants, garbage, resp_bombs, truncated, smuggling, deaf, deaf_for_long,
                     flood, locked_store):
            t.section(part)


main()
