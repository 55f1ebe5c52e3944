#!/usr/bin/env python3
"""
Several servers take numbers of one gapless sequence at the same time: members of a cluster, two processes on one file.
Plain and keyed, many in flight on each connection. No number comes twice, none is missing, each connection's rise, and
no server is left out.
"""
import os
import sys
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position

SEQ, ROUNDS, DEPTH = "shared", 40, 16
PATIENT = "--store-timeout-ms=20000"  # a disk that takes its time is no error here


class Client(threading.Thread):
    """Asks for DEPTH numbers at a time, ROUNDS times over; every fourth with a key, if it may."""

    def __init__(self, address, name, keyed):
        super().__init__(daemon=True)
        self.address, self.name_, self.keyed, self.got, self.wrong = address, name, keyed, [], None
        self.start()

    def run(self):
        try:
            c = f.Resp(self.address)
            for n in range(ROUNDS):
                for k in range(DEPTH):
                    key = ("KEY", f"{self.name_}-{n}-{k}") if self.keyed and k % 4 == 0 else ()
                    c.ask("FIRN.NEXT", "ticket", "SEQ", SEQ, *key)
                self.got.append([int(c.answer()) for _ in range(DEPTH)])
            c.close()
        except (f.Gone, f.RespError, OSError, ValueError) as e:
            self.wrong = repr(e)


def take_and_check(t, ticket, keyed):
    clients = [Client(a, f"{i}-{k}", keyed) for k in range(2) for i, a in enumerate(ticket)]
    for c in clients:
        c.join(f.LIMIT * 4)
    t.equal([c.wrong for c in clients if c.wrong or c.is_alive()], [], "every request is answered")
    for c in clients:
        # Within a round keys come behind those without; a round begins when all of the one before are answered.
        plain = [[n for k, n in enumerate(r) if not keyed or k % 4] for r in c.got]
        t.check(all(r == sorted(r) for r in plain), f"they rise on a connection: {plain[:3]}")
        t.check(all(max(a) < min(b) for a, b in zip(c.got, c.got[1:])), "who asks later gets a higher one")
    numbers = sorted(n for c in clients for r in c.got for n in r)
    t.equal(len(set(numbers)), len(clients) * ROUNDS * DEPTH, "none comes twice")
    return numbers


def none_is_missing(t, numbers):
    all_ = range(1, len(numbers) + 1)
    t.check(numbers == list(all_), f"none is missing: {sorted(set(all_) - set(numbers))[:10]}")


def metric(home, name):
    return sum(float(line.split()[1]) for line in f.get(home, "/metrics")[1].splitlines() if line.startswith(name + " "))


def members_of_a_cluster(t):
    os.environ["FIRN_BIN_DIR"] = t.bin
    folder = t.state("cluster")
    os.mkdir(folder)
    c = raft.Raft(folder, options=(PATIENT, "--cluster-election-ms=1000"))
    try:
        c.start()
        f.wait_for("members that are ready", lambda: all(f.get(h, "/readyz")[0] == 200 for h in c.home))
        f.make_gapless(c.home[0], SEQ)
        numbers = take_and_check(t, c.ticket, False)
        numbers += take_and_check(t, c.ticket, True)
        none_is_missing(t, numbers)
        lost = [metric(h, "firn_commit_conflicts_total") for h in c.home]
        t.check(sum(lost) > 0, f"they were in each other's way: {lost}")
    except raft.RaftError as e:
        raise f.NotThere(str(e)) from e
    finally:
        c.stop()


def processes_on_one_file(t):
    state = t.steady("file")
    servers = [f.Firnd(t, state, PATIENT).wait_ready() for _ in range(2)]
    f.make_gapless(servers[0].home, SEQ)
    numbers = take_and_check(t, [s.ticket for s in servers], False)
    numbers += take_and_check(t, [s.ticket for s in servers], True)
    none_is_missing(t, numbers)
    for s in servers:
        t.equal(s.stop(), 0, "it ends cleanly")


with f.Test("shared") as test:
    for part in (members_of_a_cluster, processes_on_one_file):
        test.section(part)
