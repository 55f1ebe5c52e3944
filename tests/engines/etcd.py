"""
An etcd cluster of our own: members on free loopback ports, in one folder, ended by their ids.

    e = Etcd(folder, nodes=3)
    e.start() ... e.stop()
`tls` makes the members speak it: {"ca": FILE, "cert": FILE, "key": FILE, "client_cert": FILE, "client_key": FILE}.
"""
import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from engines.ports import free_ports

LIMIT = 180  # seconds in which a cluster serves, or never will
HEARTBEAT_MS, ELECTION_MS = 50, 1000  # the second is etcd's own: a busy machine must not make it look for another leader


class EtcdError(Exception):
    """A member that does not start, or an answer that is not one."""


def b64(text):
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


class Etcd:
    @staticmethod
    def missing():
        for program, package in (("etcd", "etcd-server"), ("etcdctl", "etcd-client")):
            if not shutil.which(program):
                return f"{program} is not there: install {package}"
        return None

    def __init__(self, folder, nodes=3, tls=None):
        self.folder, self.nodes, self.tls = folder, nodes, tls
        ports = free_ports(2 * nodes)
        self.endpoints = [f"127.0.0.1:{p}" for p in ports[:nodes]]
        self.peers = [f"http://127.0.0.1:{p}" for p in ports[nodes:]]
        self.scheme = "https" if tls else "http"
        self.process = [None] * nodes
        self.life = 0  # each restored snapshot begins another, with data folders of its own
        self.context = None
        if tls:
            self.context = ssl.create_default_context(cafile=tls["ca"])
            self.context.load_cert_chain(tls["client_cert"], tls["client_key"])

    # ---- the whole ----
    def start(self):
        for i in range(self.nodes):
            self._spawn(i)
        self._await(range(self.nodes))

    def stop(self):
        """Not politely: handing over the lead takes seconds, and the data are thrown away or replaced."""
        self.kill()

    def url(self, path="firn", endpoints=None):
        text = f"etcd://{','.join(endpoints or self.endpoints)}/{path}"
        if self.tls:
            files = {"ca": self.tls["ca"], "cert": self.tls["client_cert"], "key": self.tls["client_key"]}
            text += "?tls=yes&" + "&".join(f"{k}={urllib.parse.quote(v)}" for k, v in files.items())
        return text

    # ---- single members ----
    def pause(self, i=None):
        self._signal(i, signal.SIGSTOP)
        end = time.monotonic() + LIMIT
        for n in self._which(i):
            while self.process[n] and not self._stands(self.process[n].pid):
                if time.monotonic() > end:
                    raise EtcdError(f"member {n} does not stop")
                time.sleep(0.001)

    def resume(self, i=None):
        self._signal(i, signal.SIGCONT)

    def kill(self, i=None):
        for n in self._which(i):
            if self.process[n]:
                self.process[n].kill()  # also one that is stopped
                self.process[n].wait()
                self.process[n] = None

    def restart(self, i=None):
        for n in self._which(i):
            self._spawn(n)
        self._await(self._which(i))

    def leader(self):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for i in range(self.nodes):
                if self.process[i]:
                    status, said = self._post(i, "/v3/maintenance/status", {})
                    if status == 200 and said["header"]["member_id"] == said.get("leader"):
                        return i
            time.sleep(0.05)
        raise EtcdError("no member leads\n" + self._logs())

    # ---- the data ----
    def snapshot(self, to):
        self.ctl("snapshot", "save", to, endpoint=self.leader())

    def restore(self, frm):
        """As etcd's disaster recovery says: every member from the same snapshot, into a new folder."""
        self.stop()
        self.life += 1
        for i in range(self.nodes):
            self._run("snapshot", "restore", frm, "--name", f"n{i}", "--data-dir", self._data(i),
                      "--initial-cluster", self._cluster(), "--initial-cluster-token", "firn-test",
                      "--initial-advertise-peer-urls", self.peers[i])
        self.start()

    def delete(self, path, key):
        key = key.encode() if isinstance(key, str) else key
        self._ask("/v3/kv/deleterange", {"key": b64(f"/{path}/".encode() + key)})

    def keys(self, path):
        prefix = f"/{path}/"
        said = self._ask("/v3/kv/range", {"key": b64(prefix), "range_end": b64(prefix[:-1] + "0"), "keys_only": True})
        return [base64.b64decode(kv["key"]).decode()[len(prefix):] for kv in said.get("kvs", [])]

    def ctl(self, *args, endpoint=None):
        """etcdctl against one member, or all."""
        which = self.endpoints if endpoint is None else [self.endpoints[endpoint]]
        more = ["--endpoints", ",".join(f"{self.scheme}://{e}" for e in which)]
        if self.tls:
            more += ["--cacert", self.tls["ca"], "--cert", self.tls["client_cert"], "--key", self.tls["client_key"]]
        return self._run(*more, *args)

    # ---- inside ----
    def _which(self, i):
        return range(self.nodes) if i is None else [i]

    def _signal(self, i, number):
        for n in self._which(i):
            if self.process[n] and self.process[n].poll() is None:
                self.process[n].send_signal(number)

    @staticmethod
    def _stands(pid):
        """Every thread has stopped, or is gone: the signal alone lets them finish what they are at."""
        folder = f"/proc/{pid}/task"
        for task in os.listdir(folder):
            try:
                with open(f"{folder}/{task}/stat", encoding="ascii", errors="replace") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] not in "TtZX":
                        return False
            except OSError:
                pass  # a thread that has just ended
        return True

    def _data(self, i):
        return os.path.join(self.folder, f"n{i}-{self.life}.etcd")

    def _cluster(self):
        return ",".join(f"n{i}={p}" for i, p in enumerate(self.peers))

    def _spawn(self, i):
        if self.process[i]:
            raise EtcdError(f"member {i} runs already")
        client = f"{self.scheme}://{self.endpoints[i]}"
        args = ["etcd", "--name", f"n{i}", "--data-dir", self._data(i),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", self.peers[i], "--initial-advertise-peer-urls", self.peers[i],
                "--initial-cluster", self._cluster(), "--initial-cluster-token", "firn-test",
                "--initial-cluster-state", "new",
                "--heartbeat-interval", str(HEARTBEAT_MS), "--election-timeout", str(ELECTION_MS)]
        if self.tls:
            args += ["--cert-file", self.tls["cert"], "--key-file", self.tls["key"],
                     "--trusted-ca-file", self.tls["ca"], "--client-cert-auth"]
        with open(os.path.join(self.folder, f"n{i}.log"), "ab") as log:
            self.process[i] = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env())

    @staticmethod
    def _env():
        return {k: v for k, v in os.environ.items() if not k.startswith(("ETCD", "http", "HTTP"))} | {"ETCDCTL_API": "3"}

    def _run(self, *args):
        p = subprocess.run(["etcdctl", *args], capture_output=True, timeout=LIMIT, check=False, env=self._env())
        if p.returncode != 0:
            raise EtcdError(f"etcdctl {' '.join(args)}: {(p.stdout + p.stderr).decode(errors='replace')[-600:]}")
        return p.stdout.decode()

    def _await(self, which):
        end = time.monotonic() + LIMIT
        for i in which:
            while not self._healthy(i):
                if self.process[i].poll() is not None:
                    raise EtcdError(f"member {i} ended with {self.process[i].returncode}\n{self._logs()}")
                if time.monotonic() > end:
                    raise EtcdError(f"member {i} does not serve\n{self._logs()}")
                time.sleep(0.05)

    def _healthy(self, i):
        """It answers, and a majority with it."""
        status, said = self._http(i, "/health", None)
        return status == 200 and said.get("health") == "true"

    def _post(self, i, path, body):
        return self._http(i, path, json.dumps(body).encode())

    def _http(self, i, path, body):
        """Status and answer; 0 where there is none."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=self.context))
        try:
            with opener.open(f"{self.scheme}://{self.endpoints[i]}{path}", data=body, timeout=10) as r:
                return r.status, json.load(r)
        except urllib.error.HTTPError as e:
            with e:
                return e.code, {"text": e.read().decode(errors="replace")}
        except (OSError, ValueError):
            return 0, {}

    def _ask(self, path, body):
        said = {}
        for i in range(self.nodes):
            if self.process[i]:
                status, said = self._post(i, path, body)
                if status == 200:
                    return said
        raise EtcdError(f"{path}: {said}")

    def _logs(self):
        text = ""
        for i in range(self.nodes):
            try:
                with open(os.path.join(self.folder, f"n{i}.log"), encoding="utf-8", errors="replace") as f:
                    text += f"--- member {i}\n{f.read()[-1500:]}\n"
            except OSError:
                pass
        return text
