"""
PostgreSQL for tests: one server on a free loopback port, with its data in the folder given. `Server` alone also
makes standbys. The server refuses to be root, so root runs it as the user postgres.
"""
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import time

from engines.ports import free_port
from engines.stopped import wait_stopped

LIMIT = 180.0  # seconds that anything may take before it counts as failed
USER = "firn"
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


def tool(name):
    """The newest of Debian's versions, or what is on the PATH; None: not installed."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda p: int(p.split("/")[4]))
    return found[-1] if found else shutil.which(name)


def children(pid):
    """All descendants. A backend has a process group of its own, so the group does not name them."""
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(task, encoding="ascii") as f:
                for child in map(int, f.read().split()):
                    found += [child] + children(child)
        except OSError:
            pass
    return found


def tell(pids, what):
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            pass


def as_postgres():
    return [] if os.geteuid() else ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def give(path):
    """Let the user postgres have this directory and come to it."""
    if os.geteuid():
        return
    user = pwd.getpwnam("postgres")
    shutil.chown(path, user.pw_uid, user.pw_gid)
    for base, folders, files in os.walk(path):
        for name in folders + files:
            os.chown(os.path.join(base, name), user.pw_uid, user.pw_gid, follow_symlinks=False)
    above = os.path.dirname(os.path.abspath(path))
    while above != "/":
        mode = os.stat(above).st_mode
        if not mode & 0o001:
            os.chmod(above, mode & 0o7777 | 0o001)
        above = os.path.dirname(above)


def run(*command):
    done = subprocess.run([*as_postgres(), *command], cwd="/", check=False, timeout=LIMIT, **QUIET)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.decode(errors='replace')[-2000:]}")
    return done.stdout.decode()


class Server:
    """One data directory and the server on it."""

    def __init__(self, folder, **settings):
        os.makedirs(folder, exist_ok=True)
        give(folder)
        self.data, self.log, self.port = os.path.join(folder, "data"), os.path.join(folder, "log"), free_port()
        self.settings, self.process = settings, None

    def create(self):
        run(tool("initdb"), "-D", self.data, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync")

    def clone(self, primary, name):
        """A standby of `primary`, which knows it as `name`."""
        primary.backup(self.data, name, "-R")

    def backup(self, to, name="backup", *options):
        run(tool("pg_basebackup"), "-D", to, "-c", "fast", "--no-sync", *options, "-d",
            f"host=127.0.0.1 port={self.port} user={USER} application_name={name}")

    def start(self):
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
                   "max_connections": 60, **self.settings}
        command = [tool("postgres"), "-D", self.data]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*as_postgres(), *command], cwd="/", stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        end = time.monotonic() + LIMIT
        while True:
            try:
                return self.sql("SELECT 1")
            except RuntimeError as e:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"PostgreSQL did not start: {e}\n{self.log_end()}") from e
                time.sleep(0.05)

    def log_end(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def sql(self, text):
        return run(tool("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
                   str(self.port), "-U", USER, "-d", "postgres", "-c", text).strip()

    def all_pids(self):
        return [self.process.pid] + children(self.process.pid) if self.process else []

    def pause(self):
        tell(self.all_pids(), signal.SIGSTOP)
        tell(self.all_pids(), signal.SIGSTOP)  # those that were born meanwhile
        wait_stopped(self.all_pids())

    def resume(self):
        tell(self.all_pids(), signal.SIGCONT)

    def end(self, how):
        """SIGINT ends it politely and at once, SIGKILL does not ask."""
        if self.process is None:
            return
        pids = self.all_pids()
        tell(pids if how == signal.SIGKILL else pids[:1], how)
        tell(pids, signal.SIGCONT)
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            tell(self.all_pids(), signal.SIGKILL)
            self.process.wait()
        self.process = None
        end = time.monotonic() + LIMIT  # its children have no one to wait for them but init
        while how == signal.SIGKILL and any(os.path.exists(f"/proc/{p}/root") for p in pids[1:]):
            if time.monotonic() > end:
                raise RuntimeError("a child of PostgreSQL does not end")
            time.sleep(0.01)

    def stop(self):
        self.end(signal.SIGINT)


class Postgres:
    def __init__(self, folder, nodes=1, **settings):
        del nodes
        self.server = Server(os.path.join(folder, "postgres"), **settings)
        self.endpoints = [f"127.0.0.1:{self.server.port}"]

    @staticmethod
    def missing():
        if not tool("postgres") or not tool("psql"):
            return "PostgreSQL is missing: install postgresql"
        return None

    @staticmethod
    def table(path):
        return re.sub(r"\W", "_", path)

    def start(self):
        self.server.create()
        self.server.start()

    def stop(self):
        self.server.stop()

    def url(self, path="firn", endpoints=None):
        return f"postgres://{USER}@{','.join(endpoints or self.endpoints)}/postgres?table={self.table(path)}"

    def pause(self, i=None):
        del i
        self.server.pause()

    def resume(self, i=None):
        del i
        self.server.resume()

    def kill(self, i=None):
        del i
        self.server.end(signal.SIGKILL)

    def restart(self, i=None):
        del i
        self.server.stop()
        self.server.start()

    def leader(self):
        return 0

    def snapshot(self, to):
        """A base backup with the log it needs: it can be taken from a running server, and started as it is."""
        os.makedirs(os.path.join(to, "data"))
        give(os.path.join(to, "data"))
        self.server.backup(os.path.join(to, "data"))

    def restore(self, frm):
        self.server.stop()
        shutil.rmtree(self.server.data)
        shutil.copytree(os.path.join(frm, "data"), self.server.data, symlinks=True)
        os.chmod(self.server.data, 0o700)
        give(os.path.dirname(self.server.data))
        self.server.start()

    def delete(self, path, key):
        self.server.sql(f"DELETE FROM \"{self.table(path)}\" WHERE key = convert_from('\\x{key.hex()}', 'UTF8')")

    def keys(self, path):
        found = self.server.sql(f"SELECT encode(convert_to(key, 'UTF8'), 'hex') FROM \"{self.table(path)}\" ORDER BY key")
        return [bytes.fromhex(line) for line in found.split()]
