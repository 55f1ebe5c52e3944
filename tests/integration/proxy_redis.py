#!/usr/bin/env python3
"""The gateway's Redis client and shared limits on a real Redis: tests/integration/proxy_redis.py BINDIR

Two processes with the client (clients/proxy_redis.c) stand for two gateways. The script's decisions are compared with
those of the table in a process over random traffic; Redis is paused, killed, restarted and made to forget its scripts.
"""
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from engines.redis import Client, Server  # noqa: E402
from engines.stopped import wait_stopped  # noqa: E402

LIMIT = 180.0
NOW = 1800000000 * 1000000
passed = failed = 0


class Gateway:
    def __init__(self, address, call_ms=60000, password=None):
        probe = os.path.join(os.path.dirname(os.path.realpath(sys.argv[1])), "tests", "proxy_redis")
        self.process = subprocess.Popen([probe, address, str(call_ms), *([password] if password else [])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.states, self.changed = [], threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stderr:
            with self.changed:
                self.states.append(line.strip())
                self.changed.notify_all()

    def wait(self, state, count=1):
        """Until it has said so often that it is in that state."""
        with self.changed:
            ok = self.changed.wait_for(lambda: sum(s.startswith(state) for s in self.states) >= count, LIMIT)
        assert ok, f"not {state} (x{count}): {self.states}"
        return self.states[-1]

    def ask(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()
        return [self.process.stdout.readline().strip() for _ in lines]

    def one(self, line):
        return self.ask(line)[0]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(LIMIT) == 0


def check(name, run, server):
    global passed, failed
    gateways = []

    def gateway(**options):
        gateways.append(Gateway(options.pop("address", f"127.0.0.1:{server.port}"), **options))
        return gateways[-1]
    try:
        server.do("FLUSHALL")
        run(server, gateway)
        for g in gateways:
            g.close()
        passed += 1
        print(f"ok   {name}", flush=True)
    except Exception as e:  # pylint: disable=broad-except
        failed += 1
        print(f"FAIL {name}: {type(e).__name__}: {e}", flush=True)
        for g in gateways:
            g.process.kill()
            g.process.wait()


def counted_together(server, gateway):
    """100 per minute over two gateways: 100 pass in all, by the clock of Redis."""
    a, b = gateway(), gateway()
    answers = []
    for _ in range(60):
        answers += a.ask(*["limit window 100 3600000000 0 10.0.0.1 0"]) + b.ask("limit window 100 3600000000 0 10.0.0.1 0")
    kinds = [x.split()[0] for x in answers]
    assert kinds == ["pass"] * 100 + ["refused"] * 20, kinds
    assert server.do("PTTL", "limit:window:10.0.0.1") > 0
    assert a.one("limit window 100 3600000000 0 10.0.0.2 0").startswith("pass 99 ")


def one_decision(_server, gateway):
    """Random traffic of both kinds: script and table give the same answer, to the microsecond."""
    seed = random.randrange(1 << 32)
    rng, g, now = random.Random(seed), gateway(), NOW
    rules = [f"{kind} {rng.randint(1, 12)} {rng.randint(5 * 10**6, 60 * 10**6)} {rng.randint(1, 6)}"
             for kind in ("window", "smooth") for _ in range(6)]
    lines = []
    for _ in range(4000):
        now += rng.choice([0, 1, 1000, rng.randint(0, 3 * 10**6)])
        rule = rng.randrange(len(rules))
        lines.append(f"{rules[rule]} client-{rule} {now}")
    for line in lines:
        shared, own = g.one("limit " + line), g.one("step " + line)
        assert shared == own, f"seed {seed}: {line}: script {shared}, table {own}"


def pipelined(_server, gateway):
    g = gateway()
    g.wait("ready")
    assert g.one("many 4000") == "many value 4000"


def cache_values(server, gateway):
    g = gateway()
    assert g.one("get cache:products:123") == "null"
    assert g.one("set cache:products:123 abc 300") == "ok"
    assert g.one("get cache:products:123") == "value abc"
    assert 0 < server.do("TTL", "cache:products:123") <= 300
    server.do("SET", "large", b"x" * 500000)
    assert g.one("get large") == "value " + "x" * 500000
    assert g.one("set cache:products:123 abc 0").startswith("error ERR")


def forgotten_script(server, gateway):
    """SCRIPT FLUSH: one call fails, and the script is there again."""
    g = gateway()
    g.wait("ready")
    server.do("SCRIPT", "FLUSH")
    assert g.one("limit window 5 60000000 0 a 0").startswith("error NOSCRIPT")
    assert g.one("limit window 5 60000000 0 a 0").startswith("pass 4 ")


def foreign_value(server, gateway):
    """A key that holds something else: begun anew if it is text, an error if it is none."""
    server.do("SET", "limit:window:a", "not ours")
    server.do("RPUSH", "limit:window:b", "x")
    g = gateway()
    assert g.one("limit window 5 60000000 0 a 0").startswith("pass 4 ")
    assert g.one("limit window 5 60000000 0 b 0").startswith("error ")


def paused(server, gateway):
    """A Redis that stands still: the call times out, later ones are refused at once, then it is back."""
    g = gateway(call_ms=200)
    g.wait("ready")
    server.tell(19)  # SIGSTOP
    wait_stopped([server.process.pid])
    try:
        assert g.one("get a") == "timeout"
        assert g.one("get a") == "refused-call"
        g.wait("away")
    finally:
        server.tell(18)  # SIGCONT
    g.wait("ready", 2)
    end = time.monotonic() + LIMIT
    while g.one("get a") != "null":
        assert time.monotonic() < end


def killed(server, gateway):
    g = gateway()
    g.wait("ready")
    server.end(9)
    try:
        g.wait("away")
        assert g.one("get a") == "refused-call"
        assert g.one("state") == "away"
    finally:
        server.start()
    g.wait("ready", 2)
    assert g.one("set a b 100") == "ok"
    assert g.one("limit window 5 60000000 0 a 0").startswith("pass 4 ")


def password(server, gateway):
    server.do("CONFIG", "SET", "requirepass", "secret")
    admin = Client(server.port)
    try:
        good, bad, none = gateway(password="secret"), gateway(password="wrong"), gateway()
        good.wait("ready")
        assert "WRONGPASS" in bad.wait("away")
        assert "NOAUTH" in none.wait("away")
        assert good.one("get a") == "null"
        # It restarts and wants a password from now on: that is the reason, not the end of the connection before.
        admin.do("AUTH", "secret")
        admin.do("CONFIG", "SET", "requirepass", "")
        late = gateway()
        late.wait("ready")
        admin.do("CONFIG", "SET", "requirepass", "secret")
        admin.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        late.wait("away", 2)
        assert any("NOAUTH" in s for s in late.states), late.states
    finally:
        admin.do("AUTH", "secret")
        admin.do("CONFIG", "SET", "requirepass", "")
        admin.close()


def unix_socket(server, gateway):
    g = gateway(address="unix:" + os.path.join(server.folder, "sock"))
    g.wait("ready")
    assert g.one("set a b 100") == "ok"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="firn-redis-") as folder:
        server = Server(folder, appendfsync="no", unixsocket=os.path.join(folder, "sock"))
        server.start()
        try:
            for test in (counted_together, one_decision, pipelined, cache_values, forgotten_script, foreign_value, paused,
                         killed, password, unix_socket):
                check(test.__name__.replace("_", " "), test, server)
        finally:
            server.stop()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
