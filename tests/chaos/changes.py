"""
Changes of the members of a cluster while everything else goes wrong, one at a time: the lead is handed over, a member is
removed and joins again, another loses its folder, a standby gets a vote, the operator adds a process that asks to join as well. Each waits until all are voters again, because a
cluster of three survives the loss of one folder, not of two.
"""
import os
import re
import shutil
import subprocess
import time

from world import LIMIT, wait_for


class Changes:
    def __init__(self, cluster, firn, over):
        self.cluster, self.firn, self.over = cluster, firn, over

    def faults(self):
        """(name, function of the dice)"""
        return [("lead handed over", self.transfer), ("member removed, joins again", self.remove),
                ("member's folder lost", self.wipe), ("member removed, standby promoted", self.promote),
                ("member removed, added by the operator", self.add)]

    def transfer(self, rng):
        del rng
        wait_for("the lead to be handed over", lambda: self.ask("transfer"))

    def remove(self, rng, **how):
        """The others may be away meanwhile, and a change that would leave no majority is refused: it can be asked again."""
        node = rng.choice(self.cluster.nodes)
        with node.lock:
            gone = wait_for("the member's id", lambda: self.member(node))["id"]
            wait_for(f"node {node.i} to be removed", lambda: self.ask("remove", gone, besides=node))
            self.over.wait(rng.uniform(0, 1))
            self.renew(node, **how)
        self.back(node, gone)

    def wipe(self, rng):
        node = rng.choice(self.cluster.nodes)
        with node.lock:
            lost = wait_for("the member's id", lambda: self.member(node))["id"]
            self.renew(node)
        self.back(node, lost)

    def promote(self, rng):
        self.remove(rng, standby=True)

    def add(self, rng):
        """From the other side, as for a process that reaches no member; it asks by itself as well, and both are one request."""
        self.remove(rng, standby=True, added=True)

    # --- steps ---

    def renew(self, node, standby=False, added=False):
        """The same machine with an empty disk."""
        node.kill()
        before = len(self.began(node))
        for name in os.listdir(node.state):
            path = os.path.join(node.state, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        node.standby = standby
        node.start()
        node.standby = False
        if added:
            wait_for(f"node {node.i} to say who it is", lambda: len(self.began(node)) > before)
            wait_for(f"node {node.i} to be added", lambda: self.ask("add", *self.began(node)[-1], besides=node))

    @staticmethod
    def began(node):
        """(id, address) of each start of its process."""
        return re.findall(r"\bmember id=([0-9a-f]{16}) address=(\S+)", node.log())

    def back(self, node, old):
        def voter():
            m = self.member(node)
            if not m or m["id"] == old:
                return False
            if m["role"] == "standby":  # which stays one until it is promoted
                self.ask("promote", m["id"])
            return m["role"] == "voter" and m["lag"] == 0
        wait_for(f"node {node.i} to vote again", voter)

    def statuses(self):
        for n in self.cluster.nodes:
            said = self.cluster.status(n) if n.alive() and not n.stopped else None
            if said and said.get("leader"):
                yield said

    def member(self, node):
        """As the leader has it: only its list has how far each is behind."""
        address = self.cluster.endpoints[node.i]
        for said in self.statuses():
            leads = any(m["id"] == said["leader"] and m.get("seen") for m in said["members"])
            found = [m for m in said["members"] if m["address"] == address]
            if leads and found and "lag" in found[0]:
                return found[0]
        return None

    def ask(self, *words, besides=None):
        """Of each member in turn, from its own machine, until one does it."""
        for n in self.cluster.nodes:
            if n is besides or not n.alive() or n.stopped:
                continue
            done = subprocess.run([*self.cluster.net.enter(n.i), self.firn, "cluster", *words, "--url", self.cluster.own(n)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT,
                                  check=False)
            if done.returncode == 0:
                return True
        time.sleep(0.2)
        return False
