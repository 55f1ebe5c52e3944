"""
A quorum of three (or five) stores of one kind, each a Paxos acceptor: SQLite files, Redis or PostgreSQL servers, lone
etcds, or firnds that are each a cluster of one; or one of each of three kinds. A node is one of them. A file that is paused
or killed is locked by another process.
"""
import os

from engines.etcd import Etcd
from engines.postgres import Postgres
from engines.raft import Raft
from engines.redis import Redis
from engines.sqlite import Sqlite


class Quorum:
    """Over engines of one class; the URL of each is joined with the others'."""

    inner = None
    options = ""

    def __init__(self, folder, nodes=3):
        self.folder = folder
        self.node = []
        for i in range(nodes):
            os.mkdir(os.path.join(folder, f"node{i}"))
            os.chmod(os.path.join(folder, f"node{i}"), 0o777)
            self.node.append(self.make(i, os.path.join(folder, f"node{i}")))

    def make(self, i, folder):
        del i
        return self.inner(folder)

    @classmethod
    def missing(cls):
        return cls.inner.missing()

    @property
    def endpoints(self):
        return [e for n in self.node for e in n.endpoints]

    def start(self):
        self._all(None, "start")

    def stop(self):
        self._all(None, "stop")

    def _all(self, i, what, *args):
        for n in self.node if i is None else [self.node[i]]:
            getattr(n, what)(*args)

    def url(self, path="firn", endpoints=None):
        """With some endpoints: those in place of the first ones. With one that is a node's own: all are named anyway."""
        mine = [list(n.endpoints) for n in self.node]
        for k, e in enumerate(endpoints or ()):
            if [e] not in mine and k < len(mine):
                mine[k] = [e]
        return "quorum:" + self.options + "|".join(n.url(path, e or None) for n, e in zip(self.node, mine))

    def pause(self, i=None):
        self._all(i, "pause")

    def resume(self, i=None):
        self._all(i, "resume")

    def kill(self, i=None):
        self._all(i, "kill")

    def restart(self, i=None):
        self._all(i, "restart")

    def wipe(self, i):
        """It runs, and has forgotten everything."""
        self.node[i].wipe()

    def leader(self):
        return 0

    def snapshot(self, to):
        os.mkdir(to)
        for i, n in enumerate(self.node):
            n.snapshot(os.path.join(to, str(i)))

    def restore(self, frm):
        for i, n in enumerate(self.node):
            n.restore(os.path.join(frm, str(i)))

    def delete(self, path, key):
        for n in self.node:
            n.delete(path, b"px/" + key)

    def keys(self, path):
        found = set()
        for n in self.node:
            for k in n.keys(path):
                k = k if isinstance(k, bytes) else k.encode()
                if k.startswith(b"px/"):
                    found.add(k[3:])
        return sorted(found)


class QuorumSqlite(Quorum):
    inner = Sqlite

    @property
    def endpoints(self):
        return [f"node{i}" for i in range(len(self.node))]  # names; a file has no address

    def url(self, path="firn", endpoints=None):
        del endpoints
        return super().url(path)

    def kill(self, i=None):
        self.pause(i)

    def restart(self, i=None):
        self.resume(i)


class QuorumRedis(Quorum):
    inner = Redis
    options = "restart_ok|"


class StrictRedis(QuorumRedis):
    """Without restart_ok: one that was restarted is refused until it is admitted."""

    options = ""


class QuorumPostgres(Quorum):
    """Of lone servers, with as little memory as they take."""

    inner = staticmethod(lambda folder: Postgres(folder, shared_buffers="1MB", autovacuum="off"))

    @classmethod
    def missing(cls):
        return Postgres.missing()


class LockedFile(Sqlite):
    """A file that can be killed, in the way that files can: no process can write to it until it is restarted."""

    def kill(self, i=None):
        self.pause(i)

    def restart(self, i=None):
        self.resume(i)


class QuorumMixed(Quorum):
    """A Redis, a PostgreSQL and a file."""

    options = "restart_ok|"
    kinds = (Redis, Postgres, LockedFile)

    @classmethod
    def missing(cls):
        return Redis.missing() or Postgres.missing()

    def make(self, i, folder):
        return self.kinds[i](folder)


class QuorumEtcd(Quorum):
    """Of lone etcds."""

    inner = staticmethod(lambda folder: Etcd(folder, nodes=1))

    @classmethod
    def missing(cls):
        return Etcd.missing()


class QuorumRaft(Quorum):
    """Of firnds: each is a Raft cluster of one member, and knows nothing of the others."""

    inner = staticmethod(lambda folder: Raft(folder, nodes=1))

    @classmethod
    def missing(cls):
        return Raft.missing()
