"""
Three firnds and a load balancer made of the very files in deploy/, for tests/deploy/run and bench/soak.

The files name fixed addresses, 127.0.0.1:9000 to 9032; here they are moved to a stretch of free ports: HAProxy's by its
variables, nginx's in a copy in which nothing else is changed but where nginx keeps its files. Processes are ended by their id.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration", "lib"), os.path.join(ROOT, "tests")]
from engines.ports import free_stretch  # noqa: E402
from firnd import LIMIT, Gone, NotThere, get, wait_for  # noqa: E402

NODES = (1, 2, 3)
NOTICE_MS = 8000  # three checks of deploy/haproxy/firn.cfg are 1.5 s; a busy machine needs time to look at it


def free_base():
    """A port P so that P to P + 39 are ours."""
    return free_stretch(40)


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Process:
    """Something that runs, with a log."""

    def __init__(self, name, command, log, stdout=None, env=None):
        self.name, self.log_path = name, log
        with open(log, "ab") as f:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout or f, stderr=f,
                                          env={**os.environ, **(env or {})}, preexec_fn=end_with_parent)

    def alive(self):
        return self.popen.poll() is None

    def send(self, number):
        if self.alive():
            self.popen.send_signal(number)

    def wait(self, limit=LIMIT):
        return self.popen.wait(limit)

    def end(self, number=signal.SIGKILL):
        self.send(number)
        self.send(signal.SIGCONT)
        return self.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()


class World:
    """`store` is "sqlite" or "raft"; `balancer` "haproxy", "nginx" or None."""

    def __init__(self, folder, binaries, balancer, store="sqlite"):
        self.dir, self.bin, self.kind, self.store = folder, binaries, balancer, store
        self.base = free_base()
        self.node = {}
        self.loads = []
        self.balancer = None

    def at(self, offset):
        return f"127.0.0.1:{self.base + offset}"

    # --- firnd ---

    def start_node(self, n):
        command = [os.path.join(self.bin, "firnd"), "--no-config", "--name", f"node{n}",
                   "--state-dir", os.path.join(self.dir, f"node{n}"),
                   "--limits-notice-ms", str(NOTICE_MS)]
        for i, port in enumerate(("home", "snowflake", "ticket")):
            command += [f"--listen-{port}", self.at(10 * n + i)]
        if self.store == "sqlite":
            command += ["--store", "sqlite:" + os.path.join(self.dir, "firn.db"), "--store-init"]
        else:
            command += ["--store", "raft:", "--cluster-listen", self.at(10 * n + 3)]
            command += ["--cluster-init"] if n == 1 else ["--cluster-join", self.at(13)]
            if n == 1 and not os.path.exists(os.path.join(self.dir, "node1", "raft", "member")):
                command += ["--cluster-fresh"]
        self.node[n] = Process(f"node{n}", command, os.path.join(self.dir, f"node{n}.log"))

    def ready(self, n):
        """(whether, what it says); (None, why) when it cannot be asked."""
        try:
            status, body = get(self.at(10 * n), "/readyz")
        except (Gone, NotThere, OSError) as e:
            return None, str(e)
        return status == 200, body.get("reason") or body.get("detail") or ""

    def wait_ready(self, n):
        def look():
            if not self.node[n].alive():
                raise NotThere(f"node{n} ended: {self.node[n].log()[-2000:]}")
            return self.ready(n)[0]
        wait_for(f"node{n} to be ready", look)

    def start_nodes(self):
        if self.store == "sqlite":  # windows of a minute, not of 3 seconds: a machine that stands still costs no IDs
            subprocess.run([os.path.join(self.bin, "firn"), "admin", "init", "--store", "sqlite:" + os.path.join(self.dir, "firn.db"),
                            "--window", "60s", "--fresh"], check=True, capture_output=True, timeout=LIMIT)
        self.start_node(1)
        self.wait_ready(1)  # it makes the cluster; the others find it
        for n in NODES[1:]:
            self.start_node(n)
        for n in NODES[1:]:
            self.wait_ready(n)

    # --- the balancer ---

    @staticmethod
    def missing(kind):
        """None, or which package is to be installed."""
        if shutil.which(kind, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            return None
        return f"{kind} is not there: apt-get install {'haproxy' if kind == 'haproxy' else 'nginx-light libnginx-mod-stream'}"

    def start_balancer(self):
        source = os.path.join(ROOT, "deploy", {"haproxy": "haproxy/firn.cfg", "nginx": "nginx/firn.conf"}[self.kind])
        with open(source, encoding="utf-8") as f:
            text = f.read()
        env = {}
        program = shutil.which(self.kind, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if self.kind == "haproxy":
            command = [program, "-db", "-f", source]
            env = {m[1]: self.at(int(m[2])) for m in re.finditer(r"presetenv (\w+) 127\.0\.0\.1:90(\d\d)", text)}
        else:
            temporary = "".join(f"    {k}_temp_path {self.dir}/nginx-{k};\n"
                                for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
            text = re.sub(r"127\.0\.0\.1:90(\d\d)\b", lambda m: self.at(int(m[1])), text)
            path = os.path.join(self.dir, "nginx.conf")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace("http {\n", "http {\n" + temporary, 1))
            log = os.path.join(self.dir, "nginx-error.log")
            command = [program, "-c", path, "-e", log, "-g", f"daemon off; pid {self.dir}/nginx.pid; error_log {log} error;"]
        self.balancer = Process(self.kind, command, os.path.join(self.dir, f"{self.kind}.log"), env=env)

        def look():
            if not self.balancer.alive():
                raise NotThere(f"{self.kind} ended: {self.balancer.log()[-2000:]}")
            try:
                return all(get(self.at(p), "/readyz")[0] == 200 for p in (0, 1, 2))
            except (Gone, NotThere, OSError):
                return False
        wait_for(f"{self.kind} to serve", look)

    # --- clients ---

    def start_load(self, protocol, port, what, rate, seconds, connections, timeout_ms=2000, attempts=2):
        """Through the balancer. self.results() has what came of it."""
        i = len(self.loads)
        base = os.path.join(self.dir, f"load{i}")
        out = open(base + ".json", "wb")
        process = Process(f"load{i}", [os.path.join(self.bin, "..", "bench", "soak_load"), self.at(port), protocol,
                                       what, str(rate), str(seconds), str(connections), base + ".ids", str(timeout_ms),
                                       str(attempts)],
                          base + ".log", stdout=out)
        out.close()
        process.what, process.base = f"{protocol} {what}", base
        self.loads.append(process)
        return process

    @staticmethod
    def result(load):
        """Its last line: totals so far, percentiles when it has ended."""
        with open(load.base + ".json", encoding="utf-8") as f:
            lines = f.read().splitlines()
        try:
            return json.loads(lines[-1])
        except (ValueError, IndexError):
            return json.loads(lines[-2]) if len(lines) > 1 else {"answered": 0}

    def wait_answers(self, n):
        """Until every load has got n more answers."""
        before = [self.result(load)["answered"] for load in self.loads]

        def look():
            for load in self.loads:
                if not load.alive():
                    raise NotThere(f"{load.what} ended: {load.log()} {self.result(load)}")
            return all(self.result(load)["answered"] >= b + n for load, b in zip(self.loads, before))
        wait_for(f"{n} answers of each load", look)

    def end_loads(self):
        for load in self.loads:
            load.send(signal.SIGTERM)
        for load in self.loads:
            load.wait()

    def stop(self):
        for p in self.loads + [self.balancer] + list(self.node.values()):
            if p:
                # nginx's workers end with their master only when it is asked to end
                p.end(signal.SIGTERM if p is self.balancer and p.alive() else signal.SIGKILL)
