"""
A cluster of firnds that a test knows, and clients that use it and note everything.
"""
import json
import os
import subprocess
import threading
import time

import firnd as f
from engines import raft

SEQ = "invoice"


class Cluster(raft.Raft):
    """
    A cluster whose processes the test knows, ended also when it breaks down. On a busy machine members hear late of
    their leader: elections begin after a second, not after the usual 150 ms, unless the test says when.
    """

    def __init__(self, t, name, nodes, *options, tls=None, env=None):
        if not any(o.startswith("--cluster-election-ms") for o in options):
            options += ("--cluster-election-ms=1000",)
        os.environ["FIRN_BIN_DIR"] = t.bin
        folder = t.state(name)
        os.mkdir(folder)
        super().__init__(folder, nodes, options, tls)
        self.env = env or {}
        self.t = t

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.resume()
        self.stop()
        said = self.logs()
        for i in range(self.nodes):
            path = os.path.join(self.folder, f"n{i}.log")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as log:
                    whole = log.read()
                for word in f.BAD_WORDS:
                    self.t.check(word not in whole, f"the log of member {i} is free of '{word}': {whole[:3000]}")
        if kind:
            print(said)
        if kind is raft.RaftError:
            raise f.NotThere(str(value)) from value

    def firn(self, i, *args):
        """What is to be tried again, as it says, is tried again: a lead that could not be handed over in time, a change of the
        members beside another one."""
        end = time.monotonic() + f.LIMIT
        while True:
            p = subprocess.run([os.path.join(self.t.bin, "firn"), "cluster", *args, "--url", "http://" + self.home[i]],
                               capture_output=True, text=True, timeout=90, check=False)
            if "try again" not in p.stderr or time.monotonic() > end:
                return p.returncode, p.stdout + p.stderr
            time.sleep(0.05)

    def id_of(self, i):
        end = time.monotonic() + f.LIMIT
        while time.monotonic() < end:
            for k in range(self.nodes):
                for m in (self.glance(k) or {}).get("members", []):
                    if m["address"] == self.endpoints[i]:
                        return m["id"]
            time.sleep(0.05)
        raise f.NotThere(f"member {i} is not in the status")

    def fill(self, registers):
        """So that a snapshot takes a while."""
        named = self._ask(raft.IDENTITY)
        for k in range(registers):
            self._ask(raft.CAS, bytes(8) + named + bytes(25) + b"\0\0\0\1" + raft.text(b"fill\0%d" % k) + raft.text(None) +
                      raft.text(bytes(1800)))

    def own(self, i):
        """The status as that member itself sees it, at once."""
        end = time.monotonic() + f.LIMIT
        while True:
            try:
                with raft.Link(self.endpoints[i]) as link:
                    return link.status(1)
            except (OSError, raft.RaftError) as e:
                if time.monotonic() > end:
                    raise f.NotThere(f"the status of member {i}: {e}") from e
                time.sleep(0.02)

    def sequence(self):
        end = time.monotonic() + f.LIMIT
        while True:
            try:
                c = f.Http(self.home[0])
                status, body = c.post("/v1/sequences", {"name": SEQ, "mode": "gapless", "start": "1"})
                c.close()
                if status in (200, 201):
                    return
            except f.Gone as e:
                body = e
            if time.monotonic() > end:
                raise f.NotThere(f"the sequence: {body}")
            time.sleep(0.05)


class Load:
    """Clients that take tickets and IDs from any member that answers, and note everything."""

    def __init__(self, cluster, clients=4):
        self.c, self.lock, self.ended = cluster, threading.Lock(), False
        self.tickets, self.ids, self.lost, self.refused = [], [], 0, 0
        self.last = time.monotonic()  # when a ticket last came
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, i):
        at = i
        while not self.ended:
            try:
                self._use(at % self.c.nodes)
            except (f.Gone, f.NotThere, OSError):
                time.sleep(0.002)
            at += 1

    def _use(self, node):
        """One member, until it does not answer well."""
        tickets = f.Http(self.c.ticket[node], 30)
        ids = f.Http(self.c.snowflake[node], 30)
        try:
            while not self.ended:
                try:
                    status, body = tickets.get(f"/generate?seq={SEQ}")
                except (f.Gone, f.NotThere, OSError):
                    with self.lock:
                        self.lost += 1
                    return
                with self.lock:
                    if status == 200:
                        self.tickets.append(int(json.loads(body)["id"]))
                        self.last = time.monotonic()
                    else:
                        self.refused += 1
                if status != 200:
                    return
                status, body = ids.get("/generate?n=3")
                if status == 200:
                    with self.lock:
                        self.ids.extend(int(n) for n in json.loads(body)["ids"])
        finally:
            tickets.close()
            ids.close()

    def wait(self, more):
        begin = len(self.tickets)
        f.wait_for(f"{more} more tickets", lambda: len(self.tickets) - begin >= more)

    def end(self):
        f.wait_for("IDs", lambda: len(self.ids) > 100)
        self.ended = True
        for t in self.threads:
            t.join(f.LIMIT)

    def _next(self):
        """The number after the last; what is refused may have been given all the same."""
        c = f.Resp(self.c.ticket[0])
        try:
            return int(c.do("INCR", SEQ))
        except f.RespError:
            self.refused += 1
            return None
        finally:
            c.close()

    def check(self, t):
        """No number twice, and holes only where an answer was lost on its way to a client."""
        numbers, end = self.tickets, f.wait_for("the next number", self._next)
        t.equal(len(set(numbers)), len(numbers), "tickets are distinct; how many")
        t.check(numbers and min(numbers) >= 1 and max(numbers) < end, "tickets are within bounds")
        holes = end - 1 - len(set(numbers))
        t.check(holes <= self.lost + self.refused,
                f"{holes} holes, but only {self.lost} answers lost and {self.refused} refused")
        t.equal(len(set(self.ids)), len(self.ids), "IDs are distinct; how many")
        t.say(f"{len(numbers)} tickets, {len(self.ids)} IDs, {self.lost} answers lost, {self.refused} refused, "
              f"{holes} holes")
