"""
Redis for tests: one server on a free loopback port that keeps what it confirms (appendfsync always), with its data in
the folder given. `Server` alone also makes replicas and servers with other settings.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from engines.ports import free_port
from engines.stopped import wait_stopped

LIMIT = 180.0  # seconds that anything may take before it counts as failed


class Refused(Exception):
    """The server answered with an error."""


class Client:
    """The protocol, as much of it as tests need; answers are bytes, int, None and lists."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        self.file = self.sock.makefile("rb")

    def do(self, *words):
        out = b"*%d\r\n" % len(words)
        for w in words:
            w = w if isinstance(w, bytes) else str(w).encode()
            out += b"$%d\r\n%s\r\n" % (len(w), w)
        self.sock.sendall(out)
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def close(self):
        self.file.close()
        self.sock.close()


class Server:
    """One data directory and the server on it."""

    def __init__(self, folder, **settings):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.log, self.port = folder, os.path.join(folder, "log"), free_port()
        self.settings = {"appendonly": "yes", "appendfsync": "always", "save": "", **settings}
        self.process = None

    def start(self):
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "repl-diskless-sync-delay": 0,
                   **self.settings}
        command = ["redis-server"]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), *str(value).split(" ")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + LIMIT
        while True:
            try:
                return self.do("PING")
            except (OSError, Refused) as e:
                if isinstance(e, Refused) and "NOAUTH" in str(e):
                    return None
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"Redis did not start: {e}\n{self.log_end()}") from e
                time.sleep(0.02)

    def log_end(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def do(self, *words):
        c = Client(self.port)
        try:
            return c.do(*words)
        finally:
            c.close()

    def info(self, section):
        lines = self.do("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def tell(self, what):
        if self.process:
            self.process.send_signal(what)

    def end(self, how):
        if self.process is None:
            return
        for _ in range(int(LIMIT)):
            self.tell(how)
            self.tell(signal.SIGCONT)
            try:
                self.process.wait(1)
                break
            except subprocess.TimeoutExpired:
                continue  # it does not end while it writes its first log, and forgets that it was asked
        else:
            self.process.kill()
            self.process.wait()
        self.process = None

    def stop(self):
        self.end(signal.SIGTERM)


class Redis:
    def __init__(self, folder, nodes=1, **settings):
        del nodes
        self.server = Server(os.path.join(folder, "redis"), **settings)
        self.endpoints = [f"127.0.0.1:{self.server.port}"]

    @staticmethod
    def missing():
        return None if shutil.which("redis-server") else "Redis is missing: install redis-server"

    @staticmethod
    def prefix(path):
        return re.sub(r"[^\w./-]", "_", path)

    def start(self):
        self.server.start()

    def stop(self):
        self.server.stop()

    def url(self, path="firn", endpoints=None):
        return f"redis://{','.join(endpoints or self.endpoints)}/0?unsafe_ok=yes&prefix={self.prefix(path)}"

    def pause(self, i=None):
        del i
        self.server.tell(signal.SIGSTOP)
        wait_stopped([self.server.process.pid])

    def resume(self, i=None):
        del i
        self.server.tell(signal.SIGCONT)

    def kill(self, i=None):
        del i
        self.server.end(signal.SIGKILL)

    def restart(self, i=None):
        del i
        self.server.stop()
        self.server.start()

    def wipe(self):
        self.kill()
        shutil.rmtree(os.path.join(self.server.folder, "appendonlydir"))
        self.server.start()

    def leader(self):
        return 0

    def snapshot(self, to):
        """As the documentation says: no rewrite while the files of the log are copied."""
        percent = self.server.do("CONFIG", "GET", "auto-aof-rewrite-percentage")[1]
        self.server.do("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
        end = time.monotonic() + LIMIT
        while self.server.info("persistence")["aof_rewrite_in_progress"] != "0":
            if time.monotonic() > end:
                raise RuntimeError("Redis does not end its rewrite")
            time.sleep(0.02)
        shutil.copytree(os.path.join(self.server.folder, "appendonlydir"), os.path.join(to, "appendonlydir"))
        self.server.do("CONFIG", "SET", "auto-aof-rewrite-percentage", percent)

    def restore(self, frm):
        self.server.stop()
        log = os.path.join(self.server.folder, "appendonlydir")
        shutil.rmtree(log)
        shutil.copytree(os.path.join(frm, "appendonlydir"), log)
        self.server.start()

    def delete(self, path, key):
        self.server.do("DEL", self.prefix(path).encode() + b":" + key)

    def keys(self, path):
        front = self.prefix(path).encode() + b":"
        return sorted(k[len(front):] for k in self.server.do("KEYS", front + b"*"))
