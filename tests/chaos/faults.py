"""
Faults at random, one thread per node and one for the store; the same seed makes the same choices. Each kind of fault has a
name, and each that is promised happens at least once: every node begins at another place of the list, and a fault that no
node reached follows at the end.
"""
import collections
import functools
import os
import random
import signal
import threading
import time

import acceptors
import changes
import members
from common import WINDOW_S
from world import wait_for

NODE_REST_S = (0.5, 2.5)  # between two faults of a node
STORE_REST_S = (3, 6)
KINDS_REST_S = (1, 3)  # of a quorum or a cluster, which have more kinds of them
# A Redis that starts again may have forgotten, so each time all slots are raised above what it may have granted; more often
# than time makes up for that, IDs would run further and further ahead.
REDIS_REST_S = (15, 25)

Fault = collections.namedtuple("Fault", "what do")  # do(node, rng) leaves the node whole again; of the store: do(rng)


class Chaos:
    def __init__(self, seed, nodes, net, engine, count, firn=None):
        self.seed, self.nodes, self.net, self.engine, self.count = seed, nodes, net, engine, count
        self.injected = collections.Counter()
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.cluster = isinstance(engine, members.Members)
        quorum = acceptors.Acceptors(engine, firn, self.over) if hasattr(engine, "node") else None
        self.of_node = {n.i: self.node_faults(n) for n in nodes}
        of_members = changes.Changes(engine, firn, self.over).faults() if self.cluster else []
        self.of_store = [Fault(what, do) for what, do in quorum.faults()] if quorum else self.store_faults()
        self.of_store += [Fault(what, do) for what, do in of_members]
        self.rest_s = KINDS_REST_S if quorum or self.cluster else REDIS_REST_S if type(engine).__name__ == "Redis" else STORE_REST_S
        self.promised = {f.what for faults in (*self.of_node.values(), self.of_store) for f in faults}

    def note(self, what, node=None):
        with self.lock:
            self.injected[what] += 1
        if os.environ.get("FIRN_TEST_KEEP"):
            print(f"  {time.monotonic():.1f} {'store' if node is None else f'node {node.i}'}: {what}", flush=True)

    def missing(self):
        """What was promised and did not come yet."""
        with self.lock:
            return sorted(self.promised - set(self.injected))

    # --- faults of a node ---
    def kill(self, node, rng):
        node.kill()
        self.over.wait(rng.choice((0, 0, 0.3, 2)))
        node.start()

    def pause(self, node, rng, long=False):
        node.signal(signal.SIGSTOP)
        self.hold(rng.uniform(0.1, 2), WINDOW_S + 1 if long else None)
        node.signal(signal.SIGCONT)

    def cut(self, node, rng, long=False):
        self.net.cut(node.i)
        self.hold(rng.uniform(0.2, 2), WINDOW_S + 2 if long else None)
        self.net.heal(node.i)

    def cut_some(self, node, rng):
        """From one of the stores of a quorum."""
        self.net.cut(node.i, [rng.randrange(len(self.net.ports) or 1)])
        self.over.wait(rng.uniform(0.5, 4))
        self.net.heal(node.i)

    def part(self, node, rng, way="both", pair=False, long=False):
        """From the other members, or from one of them."""
        others = [n.i for n in self.nodes if n is not node]
        self.net.part(node.i, [rng.choice(others)] if pair else others, way)
        self.hold(rng.uniform(0.3, 3), WINDOW_S + 2 if long else None)
        self.net.heal(node.i)

    def hold(self, seconds, long):
        """For so long, or until the time is over; a long one in full."""
        if long:
            time.sleep(long)
        else:
            self.over.wait(seconds)

    def fill(self, node, rng):
        """Its disk is full; it lives on, and is whole again after what docs/cluster.md says: room, and a restart."""
        self.engine.fill(node)
        time.sleep(rng.uniform(2, 5))
        self.count.check(node.alive(), f"node {node.i} lives on when its disk is full")
        if rng.random() < 0.5:  # and a crash does not make it worse: it starts, or says why not
            node.kill()
            node.start()
            time.sleep(1)
        self.engine.empty(node)
        if node.alive():
            node.kill()
        node.start()

    def step(self, node, rng):
        # Files and quorums have no clock to compare with, so a node follows an hour: a crash then costs one of the file's 16
        # slots that hour, and no outage is longer than such a window. A year is not believed.
        clockless = self.engine and (not self.engine.endpoints or hasattr(self.engine, "node"))
        node.clock.set(rng.choice((-3600, -30, -2, -0.5, 0.7, *((365 * 86400,) if clockless else (30, 3600)))))
        self.over.wait(rng.uniform(0.5, 3))
        node.clock.set(0)

    def freeze(self, node, rng):
        node.clock.freeze()
        self.over.wait(rng.uniform(0.5, 2))
        node.clock.set(0)

    def step_and_kill(self, node, rng):
        """What a plain Snowflake cannot bear: seconds that come again, and no record of them."""
        back = rng.choice((1.5, 4))
        node.clock.set(-back)
        node.kill()
        node.start()
        self.over.wait(back)
        node.clock.set(0)

    def node_faults(self, node):
        """In the order in which a node is given them; the next one begins further on."""
        far = {"long": True}
        faults = [("clock back, kill -9", self.step_and_kill), ("SIGSTOP past the window", self.pause, far),
                  ("clock step", self.step), ("kill -9 and restart", self.kill), ("clock stands", self.freeze),
                  ("SIGSTOP", self.pause)]
        if self.cluster and self.net.separate:
            faults[1:1] = [("member parted", self.part), ("member parted, does not hear", self.part, {"way": "in"})]
            faults[4:4] = [("member parted, past the window", self.part, far),
                           ("two members parted", self.part, {"pair": True})]
            faults[8:8] = [("member parted, is not heard", self.part, {"way": "out"})]
        elif not self.cluster and self.engine and self.engine.endpoints:
            faults[1:1] = [("partition", self.cut)]
            faults[4:4] = [("partition past the window", self.cut, far)]
            if hasattr(self.engine, "node") and self.net.separate:
                faults[3:3] = [("partition from one store", self.cut_some)]
        begin = node.i * len(faults) // len(self.nodes)
        faults = faults[begin:] + faults[:begin]
        if not self.engine:  # the control is short: soon and twice what it is about, when there are seconds to come again
            worst = next(f for f in faults if f[1] == self.step_and_kill)
            faults = sorted((f for f in faults if f is not worst), key=lambda f: far in f)
            faults[1:1] = [worst]
            faults[3:3] = [worst]
        if self.cluster and node is self.nodes[-1]:
            faults.insert(0, ("disk full", self.fill))  # only this node has one that can be filled
        return [Fault(what, functools.partial(do, **(how[0] if how else {}))) for what, do, *how in faults]

    def torment(self, node):
        rng = random.Random(f"{self.seed}/{node.i}")
        turn = list(self.of_node[node.i])
        while not self.over.is_set():
            self.inflict(turn.pop(0) if turn else rng.choice(self.of_node[node.i]), node, rng)
            self.over.wait(rng.uniform(*NODE_REST_S))
        for fault in self.of_node[node.i]:
            if fault.what in self.missing():
                self.inflict(fault, node, rng)

    def inflict(self, fault, node, rng):
        with node.lock:
            self.note(fault.what, node)
            fault.do(node, rng)

    # --- faults of the store ---
    def store_faults(self):
        if self.cluster:
            return [Fault("leader killed", self.kill_leader)]
        if self.engine and self.engine.endpoints:
            return [Fault("store: leader killed", self.kill_store)]
        return []

    def kill_store(self, rng):
        which = self.engine.leader()
        self.engine.kill(which)
        self.over.wait(rng.uniform(0.2, 1.5))
        self.engine.restart(which)

    def kill_leader(self, rng):
        """Of the cluster: the leader, as soon as there is one that no other fault holds."""
        leader = wait_for("a leader to kill", self.take_leader)
        try:
            leader.kill()
            self.over.wait(rng.uniform(0, 1))
            leader.start()
        finally:
            leader.lock.release()

    def take_leader(self):
        leader = self.engine.leader()
        if not leader or not leader.lock.acquire(timeout=0.5):
            return None
        if leader.alive() and not leader.stopped:
            return leader
        leader.lock.release()
        return None

    def torment_store(self):
        rng = random.Random(f"{self.seed}/store")
        turn = rng.sample(self.of_store, len(self.of_store))
        while turn or not self.over.is_set():
            self.over.wait(rng.uniform(*self.rest_s))
            if turn or not self.over.is_set():
                fault = turn.pop() if turn else rng.choice(self.of_store)
                fault.do(rng)
                self.note(fault.what)

    # --- all of it ---
    def _guard(self, function, *args):
        try:
            function(*args)
        except Exception as e:  # pylint: disable=broad-except
            self.count.check(False, f"{function.__name__}: {type(e).__name__}: {e}")

    def go(self, seconds):
        threads = [threading.Thread(target=self._guard, args=(self.torment, n)) for n in self.nodes]
        if self.of_store:
            threads.append(threading.Thread(target=self._guard, args=(self.torment_store,)))
        for t in threads:
            t.start()
        time.sleep(seconds)
        self.over.set()
        for t in threads:
            t.join()
        missing = self.missing()
        self.count.check(not missing, f"every promised kind of fault came: all but {', '.join(missing)}")
