#!/usr/bin/env python3
"""
Shares: clients that ask for as many Snowflake IDs as the layout has, and more, do not keep others from theirs. Small requests
are answered at once, health checks too; of two clients that both want everything, neither gets it all; a client that is alone
gets everything. Requests wait for their numbers, they are not refused.
"""
import hashlib
import json
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

EACH = 100000
ROUNDS = 20  # of small requests, at least
WINDOWS = 10
TOKENS = {"one": "token-of-the-first-client", "two": "token-of-the-second-client"}


class Greedy:
    """So many connections, each of which asks for EACH numbers again and again."""

    def __init__(self, server, connections, token=None):
        self.server, self.fields = server, "Accept: application/vnd.firn.runs\r\n"
        if token:
            self.fields += f"Authorization: Bearer {token}\r\n"
        self.stop, self.answers, self.refused = False, 0, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(connections)]
        for t in self.threads:
            t.start()

    def run(self):
        c = f.Http(self.server.snowflake)
        while not self.stop:
            c.ask(f"/generate?n={EACH}", fields=self.fields)
            status, body = c.answer()
            with self.lock:
                self.answers += status == 200
                if status != 200:
                    self.refused.append((status, body))
        c.close()

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()

    def wait(self, n):
        f.wait_for(f"{n} answers", lambda: self.answers + len(self.refused) >= n)


def small_requests(t):
    """260 x n=100000 are more than 6 s of the layout's numbers. A small request that gets none in time is refused."""
    server = f.Firnd(t, t.steady("small"), "--loops", "2").wait_ready()
    greedy = Greedy(server, 8)
    greedy.wait(150)  # by now everything that may be borrowed is used up
    http, resp, health = f.Http(server.snowflake), f.Resp(server.home), f.Http(server.home)
    last, asked = 0, 0
    while (greedy.answers < 260 or asked < ROUNDS) and not greedy.refused:
        for body in (http.get("/generate"), http.get("/v1/ids/snowflake?n=100")):
            if not t.check(body[0] == 200, f"a small request is answered: {body}"):
                break
            said = json.loads(body[1])
            ids = [int(i) for i in said.get("ids", [said.get("id")])]
            t.check(ids[0] > last and ids == sorted(ids), "IDs rise")
            last = ids[-1]
        number = int(resp.do("FIRN.NEXT", "snowflake"))
        t.check(number > last, "IDs rise over both protocols")
        last = number
        t.equal(health.get("/healthz")[0], 200, "a health check")
        asked += 1
    greedy.end()
    t.check(not greedy.refused, f"large requests wait, they are not refused: {greedy.refused[:2]}")
    t.say(f"{greedy.answers} large answers, {asked} rounds of small ones")
    t.equal(server.stop(), 0, "it ends")


def two_clients(t):
    config = os.path.join(t.dir, "two.yaml")
    with open(config, "w", encoding="utf-8") as out:
        out.write("auth:\n  tokens:\n")
        for name, token in TOKENS.items():
            digest = hashlib.sha256(token.encode()).hexdigest()
            out.write(f"    - name: {name}\n      token_sha256: {digest}\n      kinds: ['*']\n")
    server = f.Firnd(t, t.steady("two"), "--loops", "2", config=config).wait_ready()
    one = Greedy(server, 12, TOKENS["one"])
    one.wait(120)  # by now large requests have borrowed all that they may
    # Six requests of it always wait, so that it asks all the time, however late its threads run.
    two = Greedy(server, 6, TOKENS["two"])
    two.wait(5)
    # On a busy machine the second one's threads may not run, so that it does not ask: then the next window counts. Without
    # the rule, 12 connections get twice as much as 6 in each.
    for _ in range(WINDOWS):
        before, start = one.answers, two.answers
        two.wait(start + 40)  # in less than the 5 s that a request waits: a client's own are not served in their order
        took, gave = one.answers - before, two.answers - start
        # Half, within a few percent, and as many answers as the count of one may lag behind the count of two.
        if took <= gave * 55 / 45 + 6:
            break
        t.say(f"{took} against {gave}")
    one.end()
    two.end()
    t.check(not one.refused and not two.refused, f"none is refused: {one.refused[:1]} {two.refused[:1]}")
    t.check(took <= gave * 55 / 45 + 6, f"12 connections of one client got {took} answers, 6 of another one {gave}: more than half")
    t.say(f"{took} against {gave}")
    t.equal(server.stop(), 0, "it ends")


with f.Test("shares") as test:
    test.section(small_requests)
    test.section(two_clients)
