"""
What the integration tests share: a firnd of their own, clients of both protocols, and a count of what held.

A test never sleeps to let something happen: it waits for the event, with a limit so generous that only a
real failure meets it. Everything is on loopback, in a folder that goes away; only processes that were
started here are ended, by their id.
"""
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 180.0  # seconds that anything may take before it counts as failed, on a machine with much else to do
SILENCE = 60.0  # seconds without a byte after which a connection is given up
BAD_WORDS = ("ThreadSanitizer", "AddressSanitizer", "LeakSanitizer", "runtime error:", "assert")


def take_descriptors(wanted=8192):
    """A test has hundreds of connections, and what it starts inherits the limit: often it is 1,024, whatever may be allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted if 0 <= hard < wanted else hard))
        except (ValueError, OSError):  # only root may raise the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


take_descriptors()


class Gone(Exception):
    """The connection ended, or could not be made."""


class NotThere(Exception):
    """What was waited for did not come."""


def wait_for(what, check, limit=LIMIT):
    """Ask until it is true; returns what it said."""
    end = time.monotonic() + limit
    while True:
        said = check()
        if said:
            return said
        if time.monotonic() > end:
            raise NotThere(f"waited {limit:.0f} s for: {what}")
        time.sleep(0.01)


# --- clients ---


class Stream:
    """A connection with a buffer. Ends and resets are Gone; silence is NotThere."""

    def __init__(self, address, limit=SILENCE):
        host, port = address.rsplit(":", 1)
        try:
            self.sock = socket.create_connection((host.strip("[]"), int(port)), timeout=limit)
        except ConnectionError as e:
            raise Gone(str(e)) from e
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def send(self, data):
        try:
            self.sock.sendall(data)
        except ConnectionError as e:
            raise Gone(str(e)) from e

    def more(self):
        try:
            some = self.sock.recv(65536)
        except ConnectionError as e:
            raise Gone(str(e)) from e
        except socket.timeout as e:
            raise NotThere("an answer: neither it nor the end of the connection came") from e
        if not some:
            raise Gone("closed")
        self.buf += some

    def line(self):
        while b"\r\n" not in self.buf:
            self.more()
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line

    def exactly(self, n):
        while len(self.buf) < n:
            self.more()
        data, self.buf = self.buf[:n], self.buf[n:]
        return data

    def close(self):
        self.sock.close()


class Http(Stream):
    """HTTP/1.1 with keep-alive."""

    def ask(self, path, method="GET", body=b"", fields=""):
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.send(head.encode() + b"\r\n" + body)

    def answer(self):
        status = int(self.line().split()[1])
        length = 0
        while True:
            field = self.line()
            if not field:
                break
            if field.lower().startswith(b"content-length:"):
                length = int(field.split(b":")[1])
        return status, self.exactly(length)

    def get(self, path):
        self.ask(path)
        return self.answer()

    def post(self, path, value):
        self.ask(path, "POST", json.dumps(value).encode())
        return self.answer()


class RespError(Exception):
    pass


class Resp(Stream):
    """The Redis protocol; ask() may be called several times before answer()."""

    def ask(self, *words):
        out = b"*%d\r\n" % len(words)
        for w in words:
            w = str(w).encode()
            out += b"$%d\r\n%s\r\n" % (len(w), w)
        self.send(out)

    def answer(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            n = int(rest)
            return None if n < 0 else self.exactly(n + 2)[:-2].decode()
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"-":
            raise RespError(rest.decode())
        raise RespError(f"not RESP: {line!r}")

    def do(self, *words):
        self.ask(*words)
        return self.answer()


def get(address, path):
    """One request on a connection of its own: (status, parsed JSON or text)."""
    c = Http(address)
    try:
        status, body = c.get(path)
    finally:
        c.close()
    try:
        return status, json.loads(body)
    except ValueError:
        return status, body.decode()


def minted(address, path="/generate"):
    """What a request for IDs or tickets gives, asked again while the server says that it cannot now (503): it may look for a
    leader, or have lost its window to a machine that stood still."""
    last = [None]

    def look():
        last[0] = get(address, path)
        if last[0][0] not in (200, 503):
            raise NotThere(f"{path} of {address}: {last[0]}")
        return last[0][0] == 200
    try:
        wait_for("", look)
    except NotThere:
        raise NotThere(f"{path} of {address}; it says {last[0]}") from None
    return last[0][1]


# --- the server ---


def make_gapless(home, name, there=False):
    """A sequence that begins with 1; `there`: it may be there already."""
    c = Http(home)
    status, body = c.post("/v1/sequences", {"name": name, "mode": "gapless", "start": "1"})
    c.close()
    if status != 201 and not (there and status == 200):
        raise NotThere(f"sequence {name}: {body}")


def next_number(server, name):
    """The first number of a sequence that was not taken yet."""
    c = Resp(server.ticket)
    said = int(c.do("GET", name))
    c.close()
    return said


def take_ids(server, n=50):
    """Snowflake IDs of one request after another; fewer where some are refused."""
    c = Http(server.snowflake)
    said = [c.get("/generate") for _ in range(n)]
    c.close()
    return [int(json.loads(body)["id"]) for status, body in said if status == 200]


class Firnd:
    """One process. Its log is kept in a file beside the state directory."""

    count = 0

    def __init__(self, test, state, *args, env=None, serve=True, config=None, listen=None):
        Firnd.count += 1
        self.log_path = os.path.join(test.dir, f"firnd-{Firnd.count}.log")
        self.state = state
        self.test = test
        cmd = [os.path.join(test.bin, "firnd"), "--state-dir", state]
        cmd += ["--config", config] if config else ["--no-config"]
        for port in ("home", "snowflake", "ticket"):
            cmd += [f"--listen-{port}", (listen or {}).get(port, "127.0.0.1:0")]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(cmd + list(args), stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(env or {})}, cwd=test.dir)
        self.pid = self.process.pid
        test.running.append(self)
        if serve:
            self.wait_serving()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def alive(self):
        return self.process.poll() is None

    def wait_serving(self):
        def look():
            if not self.alive():
                raise NotThere(f"firnd ended with {self.process.returncode}: {self.log()}")
            return re.search(r"serving home=(\S+) snowflake=(\S+) ticket=(\S+)", self.log())
        found = wait_for("firnd to serve", look)
        self.home, self.snowflake, self.ticket = found.groups()

    def wait_log(self, text):
        """Text, or a list of texts of which one is enough."""
        texts = [text] if isinstance(text, str) else text
        return wait_for(f"the log to say {text}", lambda: [t for t in texts if t in self.log()])

    def readyz(self):
        """(True or False, the reason)."""
        status, body = get(self.home, "/readyz")
        return status == 200, body.get("reason") or body.get("detail") or ""

    def wait_ready(self):
        wait_for("firnd to be ready", lambda: self.readyz()[0])
        return self

    def wait_reason(self, ready, part):
        """Until /readyz says so; returns the whole reason."""
        last = [None]

        def look():
            last[0] = self.readyz()
            return last[0][0] == ready and part in last[0][1]
        try:
            wait_for("", look)
        except NotThere:
            raise NotThere(f"/readyz to say {part!r}; it says {last[0]}") from None
        return last[0][1]

    def node(self):
        return get(self.home, "/v1/node")[1]

    def metric(self, name):
        text = get(self.home, "/metrics")[1]
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def signal(self, number):
        self.process.send_signal(number)  # does nothing when it has ended

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(LIMIT)
        self._look_back()

    def stop(self):
        """SIGTERM; returns the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.test.check(False, f"firnd ends: {self.log()[-500:]}")
            code = None
            self.process.kill()
            self.process.wait()
        self._look_back()
        return code

    def _look_back(self):
        if self in self.test.running:
            self.test.running.remove(self)
        text = self.log()
        for word in BAD_WORDS:
            if word in text:
                self.test.check(False, f"the log is free of '{word}': {text[:3000]}")


# --- the count ---


class Test:
    """`with Test("crash") as t:` then t.check(...), t.section(...); prints the count and sets the exit status."""

    def __init__(self, name):
        if len(sys.argv) < 2 or not os.path.isfile(os.path.join(sys.argv[1], "firnd")):
            print(f"usage: {name}.py FOLDER-WITH-THE-BINARIES [SECTION...]")
            sys.exit(2)
        self.name = name
        self.bin = os.path.abspath(sys.argv[1])
        self.only = sys.argv[2:]
        self.passed = self.failed = 0
        self.running = []
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix=f"firn-{self.name}-")
        return self

    def check(self, good, what):
        with self.lock:
            self.passed += bool(good)
            self.failed += not good
        if not good:
            print(f"FAILED: {what}", flush=True)
        return good

    def equal(self, is_, should, what):
        return self.check(is_ == should, f"{what}: is {is_!r}, should be {should!r}")

    def say(self, text):
        print(f"  {text}", flush=True)

    def section(self, function, *args):
        """One part of the test; a part that breaks down is one failure, and the others still run."""
        name = function.__name__
        if self.only and name not in self.only:
            return
        began, failed = time.monotonic(), self.failed
        print(f"{self.name}: {name}", flush=True)
        try:
            function(self, *args)
        except (NotThere, Gone, RespError, OSError, subprocess.SubprocessError, KeyError, ValueError, TypeError,
                AttributeError) as e:
            self.check(False, f"{name}: {type(e).__name__}: {e}")
        if self.failed > failed:
            for f in self.running:
                print(f"--- log of firnd {f.pid}:\n{f.log()[-3000:]}---")
        for f in list(self.running):
            f.signal(signal.SIGCONT)
            f.kill()
        print(f"  {time.monotonic() - began:.1f} s", flush=True)

    def state(self, name):
        return os.path.join(self.dir, name)

    def steady(self, name):
        """A state directory whose store grants windows of a minute, not of 3 seconds as it does by itself: a machine that
        stands still for a while costs no IDs. For tests that are not about windows."""
        state = self.state(name)
        if not os.path.exists(state):
            os.mkdir(state)
            subprocess.run([os.path.join(self.bin, "firn"), "admin", "init", "--store", f"sqlite:{state}/firn.db", "--window", "60s",
                            "--fresh"], check=True, capture_output=True, timeout=LIMIT)
        return state

    def __exit__(self, kind, value, trace):
        for f in list(self.running):
            f.kill()
        if kind is None and self.failed == 0:
            shutil.rmtree(self.dir, ignore_errors=True)
        else:
            print(f"logs are kept in {self.dir}")
            self.failed += kind is not None
        if kind is not None:
            print(f"FAILED: {kind.__name__}: {value}")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        if kind is None:
            sys.exit(1 if self.failed else 0)


# --- load ---


class Load:
    """
    Clients in threads that take numbers from whichever firnd is the present one, and note everything:
    every number, by connection, and every request that was sent and not answered.
    """

    def __init__(self, test):
        self.test = test
        self.lock = threading.Lock()
        self.target = None  # (generation, firnd)
        self.ended = False
        self.answers = 0  # of this generation, all clients
        self.ids = []  # one list for each connection: Snowflake IDs in the order of their coming
        self.tickets = {}  # sequence -> list of (generation, number)
        self.lost = {}  # sequence -> {generation: numbers asked for and not answered}
        self.refused = []  # (what, error) answers that were errors
        self.threads = []

    def aim(self, generation, firnd):
        with self.lock:
            self.answers = 0
            self.target = (generation, firnd)

    def rest(self):
        self.aim(0, None)

    def start(self, function, *args):
        t = threading.Thread(target=self._run, args=(function, args), daemon=True)
        t.start()
        self.threads.append(t)

    def _run(self, function, args):
        while not self.ended:
            target = self.target
            if target is None or target[1] is None:
                time.sleep(0.002)
                continue
            try:
                function(self, target, *args)
            except Gone:
                time.sleep(0.002)
            except Exception as e:  # pylint: disable=broad-except
                self.test.check(False, f"client: {type(e).__name__}: {e}")
                return

    def end(self):
        self.ended = True
        for t in self.threads:
            t.join(LIMIT * 2)
            self.test.check(not t.is_alive(), "every client gets an answer or the end of its connection")

    def counts(self, target):
        return not self.ended and self.target is target

    def took(self, n=1):
        with self.lock:
            self.answers += n

    def refuse(self, what, why):
        with self.lock:
            self.refused.append((what, why))
        time.sleep(0.01)

    def wait_answers(self, n):
        begin = self.answers
        wait_for(f"{n} answers", lambda: self.answers - begin >= n)

    def note_ticket(self, seq, generation, numbers):
        with self.lock:
            self.tickets.setdefault(seq, []).extend((generation, n) for n in numbers)
            self.answers += 1

    def note_lost(self, seq, generation, n):
        with self.lock:
            of = self.lost.setdefault(seq, {})
            of[generation] = of.get(generation, 0) + n

    # what is asked of the numbers in the end

    def check_ids(self, at_least):
        every = [i for c in self.ids for i in c]
        t = self.test
        t.check(len(every) >= at_least, f"at least {at_least} Snowflake IDs were received: {len(every)}")
        t.equal(len(set(every)), len(every), "Snowflake IDs are distinct; how many")
        falling = sum(1 for c in self.ids for a, b in zip(c, c[1:]) if b <= a)
        t.equal(falling, 0, "Snowflake IDs rise on each connection; falls")
        return every

    def check_gapless(self, seq, first, end):
        """Numbers first..end-1 were allocated: each received once, but for those lost on their way."""
        t = self.test
        numbers = [n for _, n in self.tickets.get(seq, [])]
        lost = self.lost.get(seq, {})
        t.equal(len(set(numbers)), len(numbers), f"tickets of {seq} are distinct; how many")
        t.check(not numbers or (min(numbers) >= first and max(numbers) < end), f"tickets of {seq} are within bounds")
        holes = sorted(set(range(first, end)) - set(numbers))
        t.check(len(holes) <= sum(lost.values()),
                f"{seq} has {len(holes)} holes, but only {sum(lost.values())} answers were lost: {holes[:20]}")
        # Each generation's numbers lie above those of the one before, and its holes are its own losses. A hole
        # below a generation's first number may be the end of the last generation or the beginning of this one.
        low, high = {}, {}
        for g, n in self.tickets.get(seq, []):
            low[g], high[g] = min(n, low.get(g, n)), max(n, high.get(g, n))
        order = sorted(low)
        t.check(all(high[a] < low[b] for a, b in zip(order, order[1:])), f"{seq} rises from one start to the next")
        for g in order:
            below = sum(1 for h in holes if h < high[g])
            may = sum(n for k, n in lost.items() if k <= g)
            t.check(below <= may, f"{seq}: {below} holes up to generation {g}, {may} answers lost until then")
        return len(holes), sum(lost.values())


def http_ids(load, target, n):
    """Snowflake IDs over HTTP, n at a time."""
    _, firnd = target
    c = Http(firnd.snowflake)
    mine = []
    with load.lock:
        load.ids.append(mine)
    try:
        while load.counts(target):
            status, body = c.get(f"/generate?n={n}" if n > 1 else "/generate")
            if status != 200:
                load.refuse("ids", body.decode())
                continue
            said = json.loads(body)
            mine.extend(int(i) for i in (said["ids"] if n > 1 else [said["id"]]))
            load.took()
    finally:
        c.close()


def resp_ids(load, target):
    """Snowflake IDs by FIRN.NEXT."""
    _, firnd = target
    c = Resp(firnd.home)
    mine = []
    with load.lock:
        load.ids.append(mine)
    try:
        while load.counts(target):
            try:
                said = c.do("FIRN.NEXT", "snowflake")
            except RespError as e:
                load.refuse("ids", str(e))
                continue
            mine.append(int(said[0] if isinstance(said, list) else said))
            load.took()
    finally:
        c.close()


def http_tickets(load, target, seq, n=1):
    """Tickets over HTTP, n at a time."""
    generation, firnd = target
    c = Http(firnd.ticket)
    try:
        while load.counts(target):
            try:
                status, body = c.get(f"/generate?seq={seq}&n={n}")
            except Gone:
                load.note_lost(seq, generation, n)
                raise
            if status != 200:
                load.refuse(seq, body.decode())
                continue
            load.note_ticket(seq, generation, [int(i) for i in json.loads(body)["ids"]])
    finally:
        c.close()


def resp_tickets(load, target, seq, depth):
    """INCR, `depth` of them under way at a time."""
    generation, firnd = target
    c = Resp(firnd.ticket)
    try:
        while load.counts(target):
            left = depth
            try:
                for _ in range(depth):
                    c.ask("INCR", seq)
                while left:
                    try:
                        said = c.answer()
                        load.note_ticket(seq, generation, [said])
                    except RespError as e:
                        load.refuse(seq, str(e))
                    left -= 1
            except Gone:
                load.note_lost(seq, generation, left)
                raise
    finally:
        c.close()
