#!/usr/bin/env python3
"""
firnd at its edges: full of connections, short of descriptors, watched by systemd, with clients that never say who they are.
"""
import hashlib
import os
import re
import resource
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from firnd import LIMIT, Firnd, Gone, Http, Resp, RespError, Test, get, wait_for  # noqa: E402


class Raw(Firnd):
    """A firnd whose process the test prepares itself: limits, environment, flags without defaults."""

    def __init__(self, test, state, *args, env=None, prepare=None, ports=True):  # pylint: disable=super-init-not-called
        Firnd.count += 1
        self.log_path = os.path.join(test.dir, f"firnd-{Firnd.count}.log")
        self.state, self.test = state, test
        listen = [f"--listen-{p}=127.0.0.1:0" for p in ("home", "snowflake", "ticket")] if ports else []
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
                [os.path.join(test.bin, "firnd"), "--no-config", "--state-dir", state, *listen, *args], stderr=log,
                stdout=log, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, cwd=test.dir, preexec_fn=prepare)
        self.pid = self.process.pid
        test.running.append(self)


def said(address, path):
    """The status, or None where the connection was closed: there are places for some above the limit, not for all."""
    try:
        return get(address, path)[0]
    except Gone:
        return None


def full(t):
    """Every place is taken: health and metrics still answer, once for each connection; nothing else does."""
    f = Firnd(t, t.state("full"), "--limits-connections=4").wait_ready()
    crowd = [Http(f.snowflake) for _ in range(4)]

    wait_for("the server to be full",
             lambda: all(c.get("/healthz")[0] == 200 for c in crowd) and said(f.home, "/v1/node") == 503)
    for path in ("/healthz", "/readyz", "/metrics"):
        c = Http(f.home)
        c.ask(path)
        c.ask(path)
        t.equal(c.answer()[0], 200, f"{path} of a full server")
        try:
            t.check(False, f"{path}: a second answer: {c.answer()}")
        except Gone:
            t.check(True, f"{path}: the place is free again after one answer")
    for path in ("/generate", "/v1/node", "/healthzz", "/"):
        status, body = get(f.home, path)
        t.equal(status, 503, f"{path} of a full server")
        t.check("limits.connections" in body["detail"], f"the cure: {body}")
    try:
        t.check(False, f"RESP of a full server: {Resp(f.home).do('PING')}")
    except RespError as e:
        t.equal(str(e), "ERR max number of clients reached", "RESP of a full server")
    t.equal(crowd[0].get("/generate")[0], 200, "those inside are served")
    for c in crowd:
        c.close()
    wait_for("room again", lambda: said(f.snowflake, "/generate") == 200)
    f.stop()


def few_descriptors(t):
    """A process that may open few files takes fewer connections, says so, and says what to do."""
    f = Raw(t, t.state("few"), "--loops=1", prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)))
    f.wait_serving()
    lowered = re.search(r"connections_lowered wanted=10000 now=(\d+) descriptors=512 cure=(.*)", f.log())
    t.check(lowered and "LimitNOFILE=" in lowered[2], f"the log: {f.log()}")
    places = int(lowered[1])
    t.check(100 < places < 512, f"{places} places")
    crowd = []
    for _ in range(700):
        try:
            crowd.append(Http(f.snowflake))
        except (Gone, OSError):
            pass
    wait_for("the server to be full", lambda: said(f.home, "/readyz") == 200 and said(f.home, "/v1/node") == 503)
    t.check("EMFILE" not in f.log(), "no descriptor was missing")
    for c in crowd:
        c.close()
    wait_for("room again", lambda: said(f.snowflake, "/generate") == 200)
    f.stop()
    f = Firnd(t, t.state("enough"), "--limits-connections=50")
    t.check("connections_lowered" not in f.log(), "nothing to say where there are enough")
    f.stop()


def files(t):
    """What firnd writes is for its user alone, whatever the shell's umask is."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        peers = s.getsockname()[1]
    member = ("--store=raft:", "--cluster-init", "--cluster-fresh", f"--cluster-listen=127.0.0.1:{peers}")
    for name, args in (("sqlite", ()), ("raft", member)):
        f = Raw(t, t.state("files-" + name), *args, prepare=lambda: os.umask(0))
        f.wait_serving()
        f.wait_ready()
        seen = 0
        for folder, _, names in os.walk(f.state):
            t.equal(os.stat(folder).st_mode & 0o077, 0, f"{name}: the mode of {folder}")
            for n in names:
                try:
                    mode = os.stat(os.path.join(folder, n)).st_mode
                except FileNotFoundError:  # the log of a member turns over
                    continue
                seen += 1
                t.equal(mode & 0o177, 0, f"{name}: the mode of {n} is {mode:o}")
        t.check(seen > 0, f"{name}: {seen} files")
        f.stop()


def unknown_clients(t):
    """Where there are tokens, a Redis connection that shows none does not stay for ever; one with a token does."""
    path = os.path.join(t.dir, "idle.yaml")
    with open(path, "w", encoding="ascii") as out:
        out.write("limits: { idle_ms: 300 }\nauth:\n  tokens:\n    - name: web\n      sequences: ['*']\n"
                  f"      token_sha256: {hashlib.sha256(b'secret').hexdigest()}\n")
    f = Firnd(t, t.state("idle"), config=path).wait_ready()
    known = Resp(f.home)
    t.equal(known.do("AUTH", "secret"), "OK", "AUTH")
    unknown = Resp(f.home)
    t.equal(unknown.do("PING"), "PONG", "before AUTH")
    try:
        unknown.more()
        t.check(False, "something came")
    except Gone:
        t.check(True, "the one without a token is closed")
    t.equal(known.do("INCR", "still"), 1, "the one with a token, which waited longer")
    busy, pings = Resp(f.home), 0
    try:
        while pings < 20 * LIMIT:
            busy.do("PING")
            pings += 1
            time.sleep(0.05)  # far below idle_ms: only the connection's age can end it
        t.check(False, f"one without a token stays while it asks: {pings} times")
    except Gone:
        t.check(pings > 0, "one without a token that never idles is closed, too")
    t.equal(known.do("INCR", "still"), 2, "the one with a token stays")
    f.stop()
    f = Firnd(t, t.state("open"), "--limits-idle-ms=300").wait_ready()
    redis, web = Resp(f.home), Http(f.home)
    t.equal(redis.do("PING"), "PONG", "without tokens")
    t.equal(web.get("/healthz")[0], 200, "HTTP beside it")
    try:
        web.more()
    except Gone:
        pass
    t.equal(redis.do("PING"), "PONG", "where there are no tokens, Redis connections may idle")
    f.stop()



def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing
            return s.getsockname()[0]
        except OSError:
            return None


def crowded(t):
    """One address with more connections than its share: the next one is told why, health checks still answer, and other addresses
    are served. Loopback has no such limit."""
    host = own_address()
    if not host:
        print("*** NO ADDRESS but loopback: a crowded address was NOT TESTED")
        return
    f = Raw(t, t.state("crowded"), *(f"--listen-{p}={host}:0" for p in ("home", "snowflake", "ticket")),
            "--limits-connections-per-address=5", ports=False)
    f.wait_serving()
    f.wait_ready()
    crowd = [Http(f.snowflake) for _ in range(5)]
    wait_for("the address to be crowded",
             lambda: all(c.get("/healthz")[0] == 200 for c in crowd) and said(f.home, "/v1/node") == 503)
    status, body = get(f.home, "/generate")
    t.check(status == 503 and "limits.connections_per_address" in body["detail"], f"the cause and the cure: {status} {body}")
    t.equal(said(f.home, "/readyz"), 200, "a health check from the same address")
    try:
        t.check(False, f"RESP of a crowded address: {Resp(f.home).do('PING')}")
    except RespError as e:
        t.check("of this address" in str(e), f"RESP of a crowded address: {e}")
    t.check(f.metric("firn_connections_crowded_total") >= 3, "the metric")
    with socket.create_connection((host, int(f.home.rsplit(":", 1)[1])), timeout=LIMIT, source_address=("127.0.0.1", 0)) as other:
        other.sendall(b"GET /generate HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        t.check(b" 200 " in other.recv(200), "another address is served")
    for c in crowd:
        c.close()
    wait_for("a place for it", lambda: said(f.snowflake, "/generate") == 200)
    f.stop()


def watchdog(t):
    """systemd is told twice in the time that it gives, not once per second."""
    path = os.path.join(t.dir, "notify")
    for usec, more in (("20000000", False), (None, False), ("400000", True)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(60)
            env = {"NOTIFY_SOCKET": path, **({"WATCHDOG_USEC": usec} if usec else {})}
            f = Firnd(t, t.state(f"watchdog-{usec}"), env=env).wait_ready()
            fed = status = 0
            while status < 4 or (usec and fed < 1):
                told = s.recv(4096).decode()
                fed += "WATCHDOG=1" in told
                status += "STATUS=" in told and "READY=1" not in told
            t.check(fed > 0 if usec else fed == 0, f"WATCHDOG_USEC={usec}: fed {fed} times")
            t.check(more or fed < status, f"WATCHDOG_USEC={usec}: fed {fed} times, looked {status} times")
            f.stop()
        os.unlink(path)


def ports(t):
    """A port has one to five digits."""
    for bad in ("127.0.0.1:0000000", "127.0.0.1:009000"):
        f = Raw(t, t.state("ports"), "--listen-home", bad, ports=False)
        t.check(f.process.wait(60) != 0 and "no port from 0 to 65535" in f.log(), f"{bad}: {f.log()}")
        t.running.remove(f)


def main():
    with Test("edges") as t:
        for part in (full, few_descriptors, files, unknown_clients, crowded, watchdog, ports):
            t.section(part)


main()
