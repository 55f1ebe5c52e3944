"""
An ensemble of ZooKeeper servers from Debian's packages, and as much of its protocol as is needed to look
at znodes behind firn's back.
"""
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from engines.ports import free_ports
from engines.stopped import wait_stopped

JAVA = "/usr/bin/java"
JARS = ("/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar")
START_S = 120
TICK_MS = 200  # sessions last at least two ticks
NO_NODE = -101


class ZooKeeper:
    def __init__(self, folder, nodes=3):
        self.folder = folder
        self.processes = [None] * nodes
        ports = free_ports(3 * nodes)
        self.endpoints = [f"127.0.0.1:{p}" for p in ports[:nodes]]
        quorum = "".join(f"server.{i + 1}=127.0.0.1:{ports[nodes + 2 * i]}:{ports[nodes + 2 * i + 1]}\n"
                         for i in range(nodes)) if nodes > 1 else ""
        for i in range(nodes):
            os.makedirs(self.data(i))
            self.write_id(i)
            with open(os.path.join(folder, f"{i}.cfg"), "w", encoding="ascii") as f:
                f.write(f"tickTime={TICK_MS}\ninitLimit=100\nsyncLimit=25\ndataDir={self.data(i)}\n"
                        f"clientPort={ports[i]}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nmaxSessionTimeout=60000\n"
                        f"admin.enableServer=false\n4lw.commands.whitelist=srvr\npreAllocSize=64\n{quorum}")

    @staticmethod
    def missing():
        if not os.path.exists(JAVA) or not os.path.exists(JARS[0]):
            return "package zookeeper"
        return None if os.path.exists(JARS[1]) else "package libslf4j-java"

    # ---- processes ----
    def data(self, i):
        return os.path.join(self.folder, f"data{i}")

    def write_id(self, i):
        with open(os.path.join(self.data(i), "myid"), "w", encoding="ascii") as f:
            f.write(f"{i + 1}\n")

    def log(self, i):
        return os.path.join(self.folder, f"{i}.log")

    def each(self, i):
        return range(len(self.processes)) if i is None else [i]

    def launch(self, i):
        with open(self.log(i), "ab") as log:
            self.processes[i] = subprocess.Popen(  # pylint: disable=consider-using-with
                [JAVA, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                 "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.jmx.log4j.disable=true",
                 "-cp", ":".join(JARS), "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 os.path.join(self.folder, f"{i}.cfg")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)

    def start(self):
        for i in self.each(None):
            self.launch(i)
        for i in self.each(None):
            self.serves(i)

    def serves(self, i):
        """Wait until node i answers as a part of the ensemble."""
        end = time.monotonic() + START_S
        while not self.mode(i):
            if time.monotonic() > end or self.processes[i].poll() is not None:
                with open(self.log(i), encoding="utf-8", errors="replace") as f:
                    raise RuntimeError(f"ZooKeeper {i} does not serve: {f.read()[-2000:]}")
            time.sleep(0.05)

    def stop(self):
        self.kill()

    def pause(self, i=None):
        for k in self.each(i):
            self.processes[k].send_signal(signal.SIGSTOP)
        wait_stopped(self.processes[k].pid for k in self.each(i))

    def resume(self, i=None):
        for k in self.each(i):
            self.processes[k].send_signal(signal.SIGCONT)

    def kill(self, i=None):
        for k in self.each(i):
            if self.processes[k]:
                self.processes[k].kill()
        for k in self.each(i):
            if self.processes[k]:
                self.processes[k].wait()
                self.processes[k] = None

    def restart(self, i=None):
        self.kill(i)
        for k in self.each(i):
            self.launch(k)
        for k in self.each(i):
            self.serves(k)

    def mode(self, i):
        """'leader', 'follower', 'standalone', or None while it does not serve."""
        host, port = self.endpoints[i].split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=5) as s:
                s.sendall(b"srvr")
                text = b""
                while part := s.recv(4096):
                    text += part
        except OSError:
            return None
        found = re.search(rb"^Mode: (\w+)", text, re.M)
        return found[1].decode() if found else None

    def leader(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            for i, process in enumerate(self.processes):
                if process and self.mode(i) in ("leader", "standalone"):
                    return i
            time.sleep(0.05)
        raise RuntimeError("ZooKeeper has no leader")

    # ---- data ----
    def url(self, path="firn", endpoints=None, user=""):
        return f"zookeeper://{user}{',' .join(endpoints or self.endpoints)}/{path}"

    def snapshot(self, to):
        """What is acknowledged is in the files: a copy of them while all stand still is as after a loss of power."""
        self.pause()
        try:
            for i in self.each(None):
                shutil.copytree(self.data(i), os.path.join(to, str(i)))
        finally:
            self.resume()

    def restore(self, frm):
        self.stop()
        for i in self.each(None):
            shutil.rmtree(self.data(i))
            shutil.copytree(os.path.join(frm, str(i)), self.data(i))
            for pid in glob.glob(os.path.join(self.data(i), "*.pid")):
                os.unlink(pid)
        self.start()

    def client(self, i=None, auth=None):
        return Client(self.endpoints[self.leader() if i is None else i], auth)

    def delete(self, path, key):
        with self.client() as c:
            c.delete(znode(path, key))

    def keys(self, path):
        found = []
        with self.client() as c:
            for folder in c.children(f"/{path}"):
                if folder.startswith("%guards"):
                    continue
                first = b"" if folder == "_" else unescape(folder) + b"/"
                found += [first + unescape(name) for name in c.children(f"/{path}/{folder}")]
        return sorted(found)


# ---- the names of src/store/zookeeper.c ----
def escape(part, folder=False):
    if part == b"":
        return "%-"
    if folder and part == b"_":
        return "%5F"
    return "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() or b in b"-:_" or b == 46 and i > 0 else f"%{b:02X}"
                   for i, b in enumerate(part))


def unescape(name):
    if name == "%-":
        return b""
    return re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), name.encode())


def znode(path, key):
    folder, slash, name = key.partition(b"/")
    return f"/{path}/" + (f"{escape(folder, True)}/{escape(name)}" if slash else f"_/{escape(key)}")


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code):
        super().__init__(f"ZooKeeper answered {code}")
        self.code = code


class Client:
    """One session. Numbers are big-endian; texts and buffers have their length in front."""

    def __init__(self, endpoint, auth=None):
        host, port = endpoint.split(":")
        self.sock = socket.create_connection((host, int(port)), timeout=60)
        self.xid = 0
        self.send(struct.pack(">iqiq", 0, 0, 30000, 0) + buffer(b"\0" * 16))
        self.receive()
        if auth:
            self.send(struct.pack(">iii", -4, 100, 0) + text("digest") + buffer(auth.encode()))
            self.receive()

    def send(self, data):
        self.sock.sendall(struct.pack(">i", len(data)) + data)

    def exactly(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise ConnectionError("ZooKeeper closed the connection")
            data += part
        return data

    def receive(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def call(self, kind, body):
        self.xid += 1
        self.send(struct.pack(">ii", self.xid, kind) + body)
        answer = self.receive()
        xid, _, error = struct.unpack(">iqi", answer[:16])
        if xid != self.xid:
            raise RuntimeError(f"answer {xid} to request {self.xid}")
        if error:
            raise Refused(error)
        return answer[16:]

    def create(self, path, value):
        acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
        self.call(1, text(path) + buffer(value) + acl + struct.pack(">i", 0))

    def delete(self, path, version=-1):
        self.call(2, text(path) + struct.pack(">i", version))

    def get(self, path):
        answer = self.call(4, text(path) + b"\0")
        n = struct.unpack(">i", answer[:4])[0]
        return answer[4:4 + max(0, n)]

    def set(self, path, value, version=-1):
        self.call(5, text(path) + buffer(value) + struct.pack(">i", version))

    def acl(self, path):
        return self.call(6, text(path))

    def children(self, path):
        try:
            answer = self.call(8, text(path) + b"\0")
        except Refused as e:
            if e.code == NO_NODE:
                return []
            raise
        names, at = [], 4
        for _ in range(struct.unpack(">i", answer[:4])[0]):
            n = struct.unpack(">i", answer[at:at + 4])[0]
            names.append(answer[at + 4:at + 4 + n].decode())
            at += 4 + n
        return names

    def wipe(self, path):
        """A znode and all below it."""
        for name in self.children(path):
            self.wipe(f"{path}/{name}")
        self.delete(path)

    def close(self):
        try:
            self.send(struct.pack(">ii", self.xid + 1, -11))
            self.receive()
        except OSError:
            pass
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def buffer(data):
    return struct.pack(">i", len(data)) + data


def text(data):
    return buffer(data.encode())
