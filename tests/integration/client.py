#!/usr/bin/env python3
"""
libfirn-client on three real firnds: every mode over both protocols, TLS and tokens, and then the servers are killed
and stopped, one at a time, while clients with several threads and forked children take IDs in every mode. Clients see
no error as long as two servers live, and no ID is there twice among all that were ever printed.
"""
import hashlib
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
from engines.ports import free_ports  # noqa: E402
from engines.raft import SANITIZED  # noqa: E402
from firnd import BAD_WORDS, LIMIT, Firnd, Http, Test, get, wait_for  # noqa: E402

SERVERS = 3
SANITIZER = {"TSAN_OPTIONS": f"suppressions={HERE}/clients/firn_client.tsan die_after_fork=0"}


class Client:
    """One run of the program in tests/integration/clients/firn_client.c; its lines go to a file."""

    count = 0

    def __init__(self, t, url, *args):
        Client.count += 1
        self.t, self.url = t, url
        self.out_path = os.path.join(t.dir, f"client-{Client.count}.out")
        self.err_path = os.path.join(t.dir, f"client-{Client.count}.err")
        program = os.path.join(os.path.dirname(t.bin), "tests", "client_firn")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([program, url, *map(str, args)], stdin=subprocess.PIPE, stdout=out,
                                            stderr=err, start_new_session=True, env={**os.environ, **SANITIZER})
        t.clients.append(self)

    def lines(self):
        with open(self.out_path, encoding="ascii") as f:
            text = f.read()
        return text[:text.rfind("\n") + 1].split()  # a client that was killed may leave half a line

    def errors(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def signal(self, number):
        os.killpg(self.process.pid, number)  # with its children

    def end(self):
        """Tell it that it is over, and wait. Returns its status."""
        if self.process.stdin:
            self.process.stdin.close()
        code = self.process.wait(LIMIT)
        self.forget()
        return code

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(LIMIT)
        self.forget()

    def forget(self):
        if self in self.t.clients:
            self.t.clients.remove(self)
        for word in BAD_WORDS:
            if word in self.errors():
                self.t.check(False, f"{self.url}: free of '{word}': {self.errors()[:3000]}")

    def stat(self, name):
        found = re.findall(rf"\b{name}=(\d+)", self.errors())
        return int(found[-1]) if found else None

    def stat_now(self, name):
        """A number as of now, of a client that goes on; None until it has said one."""
        self.process.stdin.write(b".")
        self.process.stdin.flush()
        return self.stat(name)


class Cluster:
    """Three firnds on one SQLite file, on ports that stay the same."""

    def __init__(self, t):
        self.t = t
        self.folder = t.state(f"cluster{Firnd.count}")
        self.server = []
        for i in range(SERVERS):
            self.server.append(self.start(i))
        for s in self.server:
            s.wait_ready()

    def args(self, i):
        return self.folder, ("--store", f"sqlite:{self.folder}/firn.db")

    def start(self, i, port=None):
        state, args = self.args(i)
        return Firnd(self.t, state, "--name", f"n{i}", "--loops", "1", *args,
                     listen={"snowflake": port} if port else None, env=SANITIZED)

    def restart(self, i):
        self.server[i] = self.start(i, self.server[i].snowflake)
        self.server[i].wait_ready()

    def url(self, options="", scheme="firn"):
        hosts = ",".join(s.snowflake for s in self.server)
        if "timeout=" not in options:  # a busy machine is no fault of the client's
            options += "&timeout=20s"
        return f"{scheme}://{hosts}/?{options}"

    def stop(self):
        for s in self.server:
            s.stop()


class Raft(Cluster):
    """The same as a cluster of their own (store raft:), which lives on while one of three is away."""

    def __init__(self, t):
        self.peer = [f"127.0.0.1:{port}" for port in free_ports(SERVERS)]
        super().__init__(t)
        wait_for("all to have a vote", lambda: self.voters() == SERVERS)

    def voters(self):
        status, answer = get(self.server[0].home, "/v1/cluster")
        return sum(m["role"] == "voter" for m in answer["members"]) if status == 200 else 0

    def args(self, i):
        first = ("--cluster-init", "--cluster-fresh")
        return (f"{self.folder}-{i}",
                ("--store", "raft:", "--cluster-listen", self.peer[i], "--cluster-election-ms", "1000",
                 *(("--cluster-join", self.peer[0]) if i else first)))


def run(t, url, *args):
    """A client that ends by itself: its status, lines and errors."""
    c = Client(t, url, *args)
    code = c.process.wait(LIMIT)
    c.forget()
    return code, c.lines(), c.errors()


def may_fork(t, options, n):
    """ThreadSanitizer cannot follow a process that had a thread of the library's, forked, and starts one again; and the
    child inherits the locks of AddressSanitizer's allocator as that thread held them. Release does it."""
    with open(os.path.join(t.bin, "firnd"), "rb") as f:
        words = f.read()
        return 0 if "background" in options and (b"__tsan_init" in words or b"__asan_init" in words) else n


def unique(t, lines, what):
    t.equal(len(lines) - len(set(lines)), 0, f"{what}: no ID twice among {len(lines)}")


def create(t, server, name, mode):
    http = Http(server.home)
    status, body = http.post("/v1/sequences", {"name": name, "mode": mode})
    t.check(status in (200, 201), f"{name} is created: {status} {body[:200]}")
    http.close()


# --- one thing at a time ---


def every_mode(t, cluster):
    everything = []
    for options in ("mode=remote", "mode=remote&proto=resp", "mode=prefetch", "mode=prefetch&proto=resp",
                    "mode=leased", "mode=prefetch&background=1", "mode=leased&background=1"):
        n = 300 if "remote" in options else 20000
        forks = may_fork(t, options, 2)
        code, lines, err = run(t, cluster.url(options), "--count", n, "--threads", 3, "--forks", forks)
        t.equal(code, 0, f"{options}: {err[:300]}")
        t.equal(len(lines), (forks + 1) * 3 * n + (forks > 0), f"{options}: as many as asked for")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", 5, "--batch", 2000)
        t.equal((code, len(lines)), (0, 10000), f"{options}: by the thousand: {err[:300]}")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", 1000, "--poll")
        t.equal((code, len(lines)), (0, 1000), f"{options}: in an event loop: {err[:300]}")
        everything += lines
    unique(t, everything, "all modes together")


def kinds_and_tickets(t, cluster):
    code, lines, err = run(t, cluster.url("kind=uuidv7"), "--text", "--count", 20)
    t.equal((code, {len(x) for x in lines}), (0, {36}), f"UUIDs: {err}")
    code, lines, err = run(t, cluster.url("kind=ulid&proto=resp"), "--text", "--count", 20)
    t.equal((code, {len(x) for x in lines}), (0, {26}), f"ULIDs: {err}")
    code, _, err = run(t, cluster.url("kind=ulid"), "--count", 1)
    t.check(code == 1 and "FIRN_ENOTSUP" in err and "firn_client_next_text" in err, f"a text is no number: {err}")
    create(t, cluster.server[0], "dense", "gapless")
    create(t, cluster.server[0], "wide", "range")
    for proto in ("http", "resp"):
        code, lines, err = run(t, cluster.url(f"seq=dense&proto={proto}"), "--count", 50, "--threads", 2)
        t.equal((code, len(set(lines))), (0, 100), f"gapless tickets over {proto}: {err}")
        one = run(t, cluster.url(f"seq=dense&proto={proto}"), "--key", "order", "--count", 20)[1]
        two = run(t, cluster.url(f"seq=dense&proto={proto}"), "--key", "order", "--count", 20)[1]
        t.check(len(set(one)) == 20 and one == two, f"a key stands for one number over {proto}: {one[:3]} {two[:3]}")
        code, lines, err = run(t, cluster.url(f"seq=wide&mode=prefetch&proto={proto}"), "--count", 50000, "--threads",
                               2)
        t.equal((code, len(set(lines))), (0, 100000), f"range tickets ahead over {proto}: {err}")
    code, _, err = run(t, cluster.url("seq=dense&mode=prefetch"), "--count", 1)
    t.check(code == 1 and "gapless" in err and "range" in err, f"a gapless sequence has no stock: {err}")
    code, _, err = run(t, cluster.url("seq=nowhere"), "--count", 1)
    t.check(code == 1 and "FIRN_ENOENT" in err and "nowhere" in err, f"no such sequence: {err}")


def stock_gets_old(t, cluster):
    """A client that takes an ID now and then never gets one from before the bound."""
    c = Client(t, cluster.url("mode=prefetch&fresh=100ms"), "--count", 12, "--pace", 150000, "--stats")
    t.equal(c.process.wait(LIMIT), 0, "it ends well")
    c.forget()
    t.check(c.stat("blocks") >= 12 and c.stat("stale") > 0, f"each time a fresh block: {c.errors()}")


def honest_errors(t, cluster):
    dead = "firn://127.0.0.1:1,127.0.0.1:2/?timeout=200ms&retries=1&retry_delay=10ms"
    code, _, err = run(t, dead, "--count", 1)
    t.check(code == 1 and "127.0.0.1:1: Connection refused" in err and "127.0.0.1:2: Connection refused" in err,
            f"both servers and what each said: {err}")
    for mode in ("prefetch", "leased"):
        code, _, err = run(t, dead + f"&mode={mode}", "--count", 1)
        t.check(code == 1 and "127.0.0.1:1: Connection refused" in err, f"{mode}: {err}")
    mixed = f"firn://127.0.0.1:1,{cluster.server[0].snowflake}/?retries=0"
    for _ in range(5):
        code, lines, err = run(t, mixed, "--count", 1)
        t.equal((code, len(lines)), (0, 1), f"a dead one beside a living one costs no retry: {err}")
    code, _, err = run(t, "firn://a?tokn=x")
    t.check(code == 1 and "did you mean token" in err, f"an option that there is not: {err}")
    code, _, err = run(t, cluster.url("proto=resp&token=x"), "--count", 1)
    t.check(code == 1 and "AUTH" in err, f"a token where there are none: {err}")
    # A gapless number whose answer is lost must not be asked for again behind the caller's back.
    cluster.server[0].signal(signal.SIGSTOP)
    one = f"firn://{cluster.server[0].snowflake}/?seq=dense&timeout=300ms&deadline=2s&retry_delay=10ms"
    code, _, err = run(t, one, "--count", 1)
    t.check(code == 1 and "no answer within 300 ms" in err, f"a server that is silent: {err}")
    cluster.server[0].signal(signal.SIGCONT)
    cluster.server[0].wait_ready()


def members_are_found(t, cluster):
    wait_for("all members in the list",
             lambda: all(s.snowflake in str(Http(cluster.server[0].home).get("/v1/nodes")[1]) for s in cluster.server))
    first = cluster.server[0].snowflake
    c = Client(t, f"firn://{first}/?discover=1&mode=prefetch&retry_delay=50ms&retries=10", "--count", 0, "--pace",
               1000, "--stats")
    # A client that has not met the other members yet cannot outlive the one that it knows.
    wait_for("IDs of every member", lambda: len({int(line) >> 12 & 0x3ff for line in c.lines()}) == SERVERS)
    cluster.server[0].kill()
    seen = len(c.lines())
    wait_for("IDs of servers that the URL does not name", lambda: len(c.lines()) > seen + 1000)
    t.equal(c.end(), 0, f"no error: {c.errors()[:300]}")
    t.equal(c.stat("servers"), SERVERS, "all are known")
    cluster.restart(0)


def slots_run_out(t, cluster):
    """Sixteen slots, three of them the servers' own: the next client is told."""
    url = cluster.url("mode=leased&background=1&retries=50&retry_delay=200ms")
    held = [Client(t, url, "--count", 0, "--pace", 50000) for _ in range(13)]
    wait_for("thirteen clients with a slot", lambda: all(c.lines() for c in held))
    code, _, err = run(t, cluster.url("mode=leased&retries=1&retry_delay=10ms"), "--count", 1)
    t.check(code == 1 and "FIRN_ENOSLOT" in err and "slot" in err, f"no slot is free: {err}")
    for c in held:
        t.equal(c.end(), 0, f"it ends well: {c.errors()[:300]}")
    code, lines, err = run(t, cluster.url("mode=leased&retries=50&retry_delay=200ms"), "--count", 1)
    t.equal((code, len(lines)), (0, 1), f"slots that were given back are lent again: {err}")
    sums = sum(s.metric("firn_leases_refused_total") for s in cluster.server)
    t.check(sums >= 1, f"refusals are counted: {sums}")


def openssl(t, *args):
    subprocess.run(["openssl", *args], cwd=t.dir, check=True, capture_output=True)


def tls_and_tokens(t):
    openssl(t, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "s.key", "-out",
            "s.pem")
    config = os.path.join(t.dir, "tls.yaml")
    digest = hashlib.sha256(b"s3cret").hexdigest()
    with open(config, "w", encoding="ascii") as f:
        f.write(f"tls:\n  cert: {t.dir}/s.pem\n  key: {t.dir}/s.key\nauth:\n  tokens:\n    - name: app\n"
                f"      token_sha256: {digest}\n      kinds: ['*']\n      sequences: ['*']\n")
    s = Firnd(t, t.state("tls"), config=config, serve=False)
    s.wait_serving()
    s.wait_log("state=active")
    with open(os.path.join(t.dir, "token"), "w", encoding="ascii") as f:
        f.write("s3cret\n")
    for options in ("mode=remote", "mode=remote&proto=resp", "mode=prefetch", "mode=leased"):
        url = f"firns://{s.snowflake}/?ca={t.dir}/s.pem&token=s3cret&{options}"
        code, lines, err = run(t, url, "--count", 200, "--threads", 2)
        t.equal((code, len(set(lines))), (0, 400), f"TLS and a token, {options}: {err[:300]}")
    url = f"firns://{s.snowflake}/?ca={t.dir}/s.pem&retries=0"
    code, lines, err = run(t, url + f"&token_file={t.dir}/token", "--count", 1, "--poll")
    t.equal((code, len(lines)), (0, 1), f"a token from a file: {err[:300]}")
    code, _, err = run(t, url, "--count", 1)
    t.check(code == 1 and "FIRN_EAUTH" in err, f"without a token: {err}")
    code, _, err = run(t, url + "&token=other&mode=leased", "--count", 1)
    t.check(code == 1 and "FIRN_EAUTH" in err, f"with a wrong one: {err}")
    code, _, err = run(t, f"firns://{s.snowflake}/?retries=0&token=s3cret", "--count", 1)
    t.check(code == 1 and "certificate" in err, f"an authority that is not trusted: {err}")
    code, _, err = run(t, f"firn://{s.snowflake}/?retries=0&token=s3cret", "--count", 1)
    t.equal(code, 1, f"plaintext where TLS is spoken: {err}")
    s.stop()


# --- everything at once ---


def servers_die(t, cluster):
    """One server at a time is killed, stopped, or told to end; every kind of client goes on."""
    create(t, cluster.server[0], "storm", "range")
    create(t, cluster.server[0], "keyed", "gapless")
    patient = "timeout=2s&retry_delay=100ms&retries=30"
    modes = ("mode=remote", "mode=remote&proto=resp", "mode=prefetch", "mode=leased", "mode=leased&background=1")
    clients = [Client(t, cluster.url(f"{m}&{patient}"), "--count", 0, "--threads", 2, "--forks", may_fork(t, m, 1),
                      "--pace", 5000, "--stats") for m in modes]
    loop = Client(t, cluster.url(f"mode=remote&{patient}"), "--count", 0, "--poll", "--pace", 1000)
    tickets = Client(t, cluster.url(f"mode=prefetch&seq=storm&{patient}"), "--count", 0, "--threads", 2, "--forks", 1,
                     "--pace", 5000, "--stats")
    keyed = Client(t, cluster.url(f"seq=keyed&proto=resp&{patient}"), "--key", "k", "--count", 0, "--pace", 5000)
    everybody = clients + [loop, tickets, keyed]
    wait_for("everybody to have begun", lambda: all(len(c.lines()) > 5 for c in everybody))

    def wait_progress():
        seen = [len(c.lines()) for c in everybody]
        wait_for("everybody to get more", lambda: all(len(c.lines()) > n + 20 for c, n in zip(everybody, seen)))

    for i, how in ((0, "kill"), (1, "stop"), (2, "term"), (1, "kill")):
        s = cluster.server[i]
        if how == "stop":
            s.signal(signal.SIGSTOP)
            wait_progress()
            time.sleep(3)  # longer than the clients' time-out: requests that wait for this server are retried
            s.signal(signal.SIGCONT)
            s.wait_ready()
        else:
            s.kill() if how == "kill" else s.stop()
            wait_progress()
            cluster.restart(i)
        wait_progress()
    for c in everybody:
        code = c.end()
        t.equal(code, 0, f"{c.url}: no error although servers died: {c.errors()[:600]}")
    t.check(sum(c.stat("retries") for c in clients) > 0, "somebody had to ask again")
    unique(t, [x for c in clients + [loop] for x in c.lines()], "all Snowflakes of the storm")
    unique(t, tickets.lines(), "range tickets of the storm")
    numbers = set(map(int, keyed.lines()))
    t.equal(len(numbers), len(keyed.lines()), "no keyed number comes twice")
    t.equal(max(numbers) - min(numbers) + 1, len(numbers), "keyed numbers have no hole")


def lenders_and_borrowers_die(t, cluster):
    """Leased clients and the servers that lent are killed in a loop; some clients sleep past their windows."""
    url = cluster.url("mode=leased&timeout=2s&retry_delay=100ms&retries=30")
    ended, running = [], [Client(t, url, "--count", 0, "--threads", 2, "--forks", 1, "--pace", 200) for _ in range(3)]
    for turn in range(3):
        wait_for("IDs", lambda: all(len(c.lines()) > 50 for c in running))
        running[0].signal(signal.SIGSTOP)
        cluster.server[turn % SERVERS].kill()
        running[1].kill()
        ended.append(running.pop(1))
        running.append(Client(t, url, "--count", 0, "--threads", 2, "--forks", 1, "--pace", 200))
        cluster.restart(turn % SERVERS)
        if turn == 1:
            time.sleep(3.5)  # longer than a window: the sleeper's is over, and its slot may be another's
        running[0].signal(signal.SIGCONT)
    for c in running:
        t.equal(c.end(), 0, f"no error: {c.errors()[:600]}")
    unique(t, [x for c in ended + running for x in c.lines()], "all that leased clients made")


AUDIT = "unused:1,time:41@1ms,shard:5,worker:5,seq:12;epoch=2021-01-01T00:00:00Z"
MODES = ("mode=remote", "mode=remote&proto=resp", "mode=prefetch", "mode=prefetch&proto=resp", "mode=leased",
         "mode=prefetch&background=1")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def shards_of(lines):
    return [int(line) >> 17 & 31 for line in lines]


def shards_travel(t, cluster):
    """Each ID carries the shard that was asked for, in every mode, from several threads and children; none comes twice."""
    everything = []
    for options in (f"{m}&retries=100&retry_delay=1s" for m in MODES):  # slots of a new store begin ahead of the clock
        n = 128 if "remote" in options else 3200
        code, lines, err = run(t, cluster.url(options), "--count", n, "--shards", 32)
        t.equal((code, shards_of(lines)), (0, [i % 32 for i in range(n)]), f"{options}: shard after shard: {err[:300]}")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", n, "--shards", 32, "--threads", 3, "--forks",
                               may_fork(t, options, 1))
        t.equal((code, set(shards_of(lines))), (0, set(range(32))), f"{options}: threads and a child: {err[:300]}")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", 3, "--batch", 2000, "--shard", 31)
        t.equal((code, len(lines), set(shards_of(lines))), (0, 6000, {31}), f"{options}: by the thousand: {err[:300]}")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", n, "--shard", 3, "--shards", 8, "--poll")
        t.equal((code, set(shards_of(lines))), (0, set(range(3, 11))), f"{options}: in an event loop: {err[:300]}")
        everything += lines
        code, lines, err = run(t, cluster.url(options), "--count", 20, "--shard", 9, "--text")
        t.equal((code, set(shards_of(lines))), (0, {9}), f"{options}: as texts: {err[:300]}")
        everything += lines
        code, _, err = run(t, cluster.url(options), "--count", 1, "--shard", 32)
        t.check(code == 1 and "FIRN_ERANGE" in err and "shard does not fit" in err, f"{options}: a sixth bit: {err[:300]}")
        code, lines, err = run(t, cluster.url(options), "--count", 10, "--shard", 7, "--key", f"k-{len(everything)}")
        again = run(t, cluster.url(options), "--count", 10, "--shard", 7, "--key", f"k-{len(everything)}")[1]
        t.equal((code, set(shards_of(lines)), again), (0, {7}, lines), f"{options}: with keys: {err[:300]}")
        everything += lines
    unique(t, everything, "all shards together")
    http = Http(cluster.server[0].home)
    for n in ("", "n=3&"):
        status, body = http.get(f"/v1/ids/snowflake?{n}shard=21")
        t.equal((status, set(shards_of(re.findall(r"\d{15,}", str(body))))), (200, {21}), f"over HTTP: {body}")
    http.close()


def attempts_are_shown(t, cluster):
    """The mission's retries: 2 s, 3 more a second apart, another server each time, under one deadline; each is shown."""
    for s in cluster.server:
        s.signal(signal.SIGSTOP)
    hosts = ",".join(s.snowflake for s in cluster.server)
    began = time.monotonic()
    c = Client(t, f"firn://{hosts}/?deadline=60s", "--count", 1, "--shard", 4, "--trace", TRACE, "--attempts")
    c.process.wait(LIMIT)
    took = time.monotonic() - began
    c.forget()
    found = re.findall(r"attempt what=id number=(\d+) server=(\S+) shard=4 parent=(\S+) sent=(\S+) took_us=(\d+) "
                       r"error=(\S+)", c.errors())
    t.equal([f[0] for f in found], ["1", "2", "3", "4"], f"four attempts: {c.errors()}")
    t.equal({f[1] for f in found[:3]}, {s.snowflake for s in cluster.server}, "each on another server")
    t.check(found[3][1] != found[2][1], "the fourth not on that of the third")
    t.equal([(f[2], f[3]) for f in found],
            [(TRACE, f"{TRACE[:36]}{i:016x}-01") for i in range(1, 5)], "one span each, which the server is told")
    t.equal({f[5] for f in found}, {"FIRN_EIO"}, "none was answered")
    t.check(all(int(f[4]) >= 1990000 for f in found) and took >= 10.9, f"2 s each, a second between: {found} {took}")
    for s in cluster.server:
        s.signal(signal.SIGCONT)
    for s in cluster.server:
        s.wait_ready()
    # A block is fetched for the call that finds it missing; the two servers that are away are seen to be asked.
    cluster.server[0].kill()
    cluster.server[1].kill()
    c = Client(t, cluster.url("mode=prefetch&retry_delay=50ms"), "--count", 40, "--shards", 20, "--trace", TRACE,
               "--attempts")
    t.equal(c.process.wait(LIMIT), 0, f"it goes on: {c.errors()[:500]}")
    c.forget()
    blocks = re.findall(r"attempt what=block number=(\d+) server=(\S+) shard=(\d+) parent=(\S*) sent=(\S*) .* "
                        r"error=(\S+)", c.errors())
    fine = [b for b in blocks if b[5] == "0"]
    t.equal({b[2] for b in fine}, {str(i) for i in range(20)}, "a block of each shard")
    t.check({b[1] for b in fine} == {cluster.server[2].snowflake} and
            any(b[5] == "FIRN_EIO" for b in blocks), f"the dead are tried, the living answers: {c.errors()[:500]}")
    t.equal({b[3] for b in fine}, {TRACE}, "in the trace of the call that needed it")
    cluster.restart(0)
    cluster.restart(1)


class Audit(Cluster):
    """The same, with a layout that has a shard beside the node."""

    def args(self, i):
        state, args = super().args(i)
        return state, (*args, "--layout", AUDIT)


class Small(Cluster):
    """The same, with a layout of sixteen slots in all. Its slots are not shared with other firnds of this machine."""

    def args(self, i):
        state, args = super().args(i)
        return state, (*args, "--layout", "unused:1,time:41@1ms,node:4,seq:18;epoch=2021-01-01T00:00:00Z")


def on(what, *parts):
    """A section that runs these parts on servers of its own."""
    def section(t):
        cluster = what(t)
        for part in parts:
            began = time.monotonic()
            part(t, cluster)
            print(f"  {part.__name__} {time.monotonic() - began:.1f} s", flush=True)
        cluster.stop()
    section.__name__ = parts[0].__name__
    return section


def two_on_one_slot(t):
    """Two servers of the list, each with a store of its own, use one slot: the client notices, and uses one of them."""
    servers = [Firnd(t, t.state(f"own{i}"), "--worker", "7", "--name", f"own{i}", env={"FIRN_TEST_MACHINE": f"m{i}"})
               for i in range(2)]
    for s in servers:
        s.wait_ready()
    for mode in ("remote", "prefetch&block=16"):
        c = Client(t, "firn://" + ",".join(s.snowflake for s in servers) + f"/?mode={mode}&timeout=20s", "--count", 0, "--pace",
                   2000, "--stats")

        def made():
            return [s.metric('firn_ids_total{kind="snowflake"}') for s in servers]

        def one_of_them():
            before, lines = made(), len(c.lines())
            wait_for("300 more IDs", lambda: len(c.lines()) > lines + 300)
            return sum(x != y for x, y in zip(before, made())) == 1
        wait_for("the client to notice", lambda: c.stat_now("clashes") == 1)
        wait_for("one of them to be used alone", one_of_them)
        t.equal(c.end(), 0, "it ends")
        t.equal((c.stat("clashes"), c.stat("out")), (1, 1), f"{mode}: what the statistics say: {c.errors()}")
    for s in servers:
        s.stop()


def main():
    with Test("client") as t:
        t.clients = []
        try:
            t.section(on(Raft, every_mode, kinds_and_tickets, stock_gets_old, honest_errors, members_are_found,
                         servers_die))
            t.section(tls_and_tokens)
            t.section(two_on_one_slot)
            t.section(on(Small, slots_run_out))
            t.section(on(Audit, shards_travel, attempts_are_shown))
            t.section(on(Cluster, lenders_and_borrowers_die))
        finally:
            for c in list(t.clients):
                c.kill()


main()
