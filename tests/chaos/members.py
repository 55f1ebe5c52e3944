"""
The embedded cluster for the chaos tests: the nodes are the store. What is an outage of the store elsewhere is here that
no member reaches another one; what is its leader is one of the nodes.
"""
import os
import resource

import common
import world
from common import WINDOW_S, lib

PEER = 9003
DISK_MB = 64  # the log has 24 ready, and writes its next 8 when some are used up


class Members:
    def __init__(self, net, folder, bin_dir, count):
        self.net, self.nodes, self.disks = net, [], []
        self.endpoints = [f"{net.host(i)}:{PEER if net.separate else world.free_port()}" for i in range(count)]
        for i in range(count):
            self.nodes.append(self._member(i, folder, bin_dir))

    def _member(self, i, folder, bin_dir):
        state = os.path.join(folder, f"state-{i}")
        os.mkdir(state)
        others = ",".join(e for e in self.endpoints if e != self.endpoints[i])

        def command(node):
            first = i == 0 and len(node.logs) == 1  # afterwards it joins, as docs/cluster.md advises
            how = ["--cluster-init", "--cluster-fresh"] if first else ["--cluster-join", others]
            how += ["--cluster-standby"] if node.standby else []
            return [os.path.join(bin_dir, "firnd"), "--no-config", "--state-dir", state, "--store", "raft:",
                    "--store-timeout-ms", "1000", "--name", f"node-{i}", "--loops", "2", "--log-level", "debug",
                    "--cluster-listen", self.endpoints[i], "--cluster-plain", *how,
                    "--cluster-window-ms", f"{WINDOW_S * 1000:.0f}", "--cluster-snapshot-every", "500",
                    "--cluster-snapshot-keep", "100", "--listen-home",
                    node.address(0) + (f",127.0.0.1:{node.ports[0]}" if self.net.separate else ""),
                    "--listen-snowflake", node.address(1), "--listen-ticket", node.address(2)]
        node = world.Node(self.net, i, folder, command, common.is_ready)
        node.state, node.standby = state, False
        return node

    @staticmethod
    def missing():
        return None

    def start(self):
        """The last one's disk is small, so that it can be filled; the kernel takes it away with the namespace."""
        if self.net.separate:
            world.run("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "firn-chaos", self.nodes[-1].state)
            self.disks.append(self.nodes[-1].state)
        for n in self.nodes:
            n.start()
            world.wait_for(f"node {n.i} to be a member",
                           lambda n=n: len((self.status(n) or {}).get("members", [])) == n.i + 1)

    @staticmethod
    def own(node):
        """Where a program on the member's own machine reaches it."""
        return f"http://127.0.0.1:{node.ports[0]}"

    def stop(self):
        for disk in self.disks:
            world.run("umount", "-l", disk)
        self.disks = []

    # ---- as a store ----
    def pause(self):
        for n in self.nodes:
            self.net.part(n.i, range(len(self.nodes)))

    def resume(self):
        for n in self.nodes:
            self.net.heal(n.i)

    @staticmethod
    def status(node):
        try:
            code, said = lib.get(node.address(0), "/v1/cluster")
            return said if code == 200 else None
        except (lib.Gone, lib.NotThere, OSError, ValueError, IndexError):
            return None

    def leader(self):
        """The node that leads, or None: none does, or it cannot be asked."""
        for n in self.nodes:
            for m in (self.status(n) or {}).get("members", []) if n.alive() and not n.stopped else ():
                if m["leader"] and m["address"] in self.endpoints:
                    return self.nodes[self.endpoints.index(m["address"])]
        return None

    # ---- its disk ----
    def fill(self, node):
        """Not one byte more."""
        if node.state not in self.disks:
            resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with open(os.path.join(node.state, "filler"), "wb", buffering=0) as f:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        f.write(bytes(size))
                except OSError:
                    pass

    def empty(self, node):
        if node.state in self.disks:
            os.unlink(os.path.join(node.state, "filler"))
        elif node.alive():
            resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
