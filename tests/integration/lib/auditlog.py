"""
What tests of firn-auditlog share: databases, a firnd that makes its IDs, the process, and a client that notes what was
acknowledged.
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import firnd as f
from engines import postgres


class Databases:
    """PostgreSQL servers on free loopback ports, each with its data in a folder of its own."""

    def __init__(self, t, n, **settings):
        self.t = t
        self.servers = [postgres.Server(os.path.join(t.dir, f"pg{i}"), **settings) for i in range(n)]

    def __enter__(self):
        os.chmod(self.t.dir, 0o711)
        threads = [threading.Thread(target=lambda s=s: (s.create(), s.start())) for s in self.servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self

    def __exit__(self, kind, value, trace):
        for s in self.servers:
            s.end(signal.SIGKILL)

    def urls(self):
        return [f"postgres://{postgres.USER}@127.0.0.1:{s.port}/postgres" for s in self.servers]

    def rows(self, table="log"):
        """Every row of every database: (server, id, user, detail)."""
        found = []
        for i, s in enumerate(self.servers):
            for line in s.sql(f"SELECT id, tenant, user_id, detail, map_version FROM firn_audit.{table} ORDER BY id").splitlines():
                number, tenant, user, rest = line.split("|", 3)
                detail, version = rest.rsplit("|", 1)
                found.append((i, int(number), tenant, user, json.loads(detail), int(version)))
        return found


class Relay:
    """Stands before a database. `cut` "before": a transaction that would commit is not passed on, and the connection ends;
    "after": it is, and its answer is not."""

    def __init__(self, port):
        self.port, self.cut, self.cuts = port, None, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgres://{postgres.USER}@127.0.0.1:{self.listener.getsockname()[1]}/postgres?sslmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            state = {"silent": False}
            threading.Thread(target=self._pump, args=(client, server, state, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, state, False), daemon=True).start()

    def _pump(self, frm, to, state, up):
        try:
            while True:
                data = frm.recv(1 << 20)
                if not data:
                    break
                if up and self.cut and b"COMMIT" in data:
                    how, self.cut = self.cut, None
                    self.cuts += 1
                    if how == "before":
                        break
                    state["silent"] = True
                elif not up and state["silent"]:
                    if b"COMMIT" in data:  # it is done there, and nobody hears of it
                        break
                    continue
                to.sendall(data)
        except OSError:
            pass
        for sock in (frm, to):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Auditlog:
    """One process; its log is kept in a file beside its configuration."""

    count = 0

    def __init__(self, t, databases, generators, *args, config="", more="", serve=True):
        Auditlog.count += 1
        self.t = t
        self.config = t.state(f"auditlog-{Auditlog.count}.yaml")
        self.log_path = t.state(f"auditlog-{Auditlog.count}.log")
        urls = databases if isinstance(databases, list) else databases.urls()
        with open(self.config, "w", encoding="utf-8") as out:
            out.write("listen: { http: ['127.0.0.1:0'], admin: ['127.0.0.1:0'] }\n" +
                      f"shards: {json.dumps(urls)}\n" +
                      f"limits: {{ wait_ms: {f.LIMIT * 1000:.0f} }}\n" +  # of a request: no deadline but where a part says so
                      f"generators: 'firn://{','.join(generators)}/?retry_delay=100ms{more}'\n" + config)
        self.args = list(args)
        self.process = None
        if serve:
            self.start()

    def command(self, name, *args):
        p = subprocess.run([os.path.join(self.t.bin, "firn-auditlog"), *([name] if name else []), "--config", self.config, *args],
                           capture_output=True, text=True, timeout=f.LIMIT, check=False)
        return p.returncode, p.stdout + p.stderr

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            log.write(b"--- start\n")
            log.flush()
            self.process = subprocess.Popen([os.path.join(self.t.bin, "firn-auditlog"), "--config", self.config, *self.args],
                                            stderr=log, stdout=log, stdin=subprocess.DEVNULL, cwd=self.t.dir)
        self.pid = self.process.pid
        self.t.running.append(self)

        def look():
            if self.process.poll() is not None:
                raise f.NotThere(f"firn-auditlog ended with {self.process.returncode}: {self.log()}")
            return re.search(r"serving http=(\S+) admin=(\S+)", self.log().rsplit("--- start", 1)[1])
        self.http, self.admin = f.wait_for("firn-auditlog to serve", look).groups()
        if wait:
            self.wait_up()
        return self

    def wait_up(self, shards=None):
        """Until it reaches its databases."""
        def look():
            up = self.metrics("firn_auditlog_up")
            return all(up.get(f'shard="{i}"') == 1 for i in (shards or range(len(up)))) and up
        f.wait_for("the databases to be there", look)

    def metrics(self, name):
        text = f.get(self.admin, "/metrics")[1]
        return {m.group(1): float(m.group(2))
                for m in re.finditer(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.M)}

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(f.LIMIT)
        self._look_back()

    def stop(self):
        self.signal(signal.SIGTERM)
        code = self.process.wait(f.LIMIT)
        self._look_back()
        return code

    def _look_back(self):
        if self in self.t.running:
            self.t.running.remove(self)
        for word in f.BAD_WORDS:
            self.t.check(word not in self.log(), f"the log is free of '{word}': {self.log()[:4000]}")

    def ask(self, method, path, body=None, **fields):
        """(status, fields, JSON or text) on a connection of its own."""
        with Connection(self.http) as c:
            return c.ask(method, path, body, **fields)

    def post(self, user, body, **fields):
        return self.ask("POST", f"/v1/users/{user}/logs", body, **fields)


class Connection:
    def __init__(self, address, timeout=f.SILENCE):
        self.c = http.client.HTTPConnection(address, timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.c.close()

    def ask(self, method, path, body=None, **fields):
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        names = {k.replace("_", "-"): v for k, v in fields.items()}
        if body is not None and "content-type" not in {k.lower() for k in names}:
            names["Content-Type"] = "application/json"
        self.c.request(method, path, body, names)
        r = self.c.getresponse()
        data = r.read()
        try:
            return r.status, r.headers, json.loads(data)
        except ValueError:
            return r.status, r.headers, data.decode()


def entry(n, **more):
    return {"actor": "a", "action": "x", "detail": {"n": n, **more}}


class Load:
    """Clients that write entries, each with a number of its own, to whichever service is the present one; a request without an
    answer is sent again with its Idempotency-Key until there is one. Notes what was acknowledged."""

    count = 0

    def __init__(self, at, clients=4, users=40, keys=True):
        """`at()`: the address now, or None."""
        Load.count += 1
        self.name = f"load{Load.count}"  # what it wrote, among what others did
        self.at, self.users, self.keys = at, users, keys
        self.lock, self.ended, self.next = threading.Lock(), False, 0
        self.acknowledged, self.refused, self.lost, self.other = {}, 0, 0, []
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _number(self):
        with self.lock:
            self.next += 1
            return self.next

    def _run(self):
        n, connection, address = None, None, None
        while not self.ended or n is not None:
            n = n or self._number()
            now = self.at()
            if now != address or connection is None:
                address, connection = now, now and Connection(now)
            if connection is None:
                time.sleep(0.01)
                continue
            fields = {"Idempotency_Key": f"{self.name}-{n}"} if self.keys else {}
            try:
                status, _, body = connection.ask("POST", f"/v1/users/u{n % self.users}/logs", entry(n, by=self.name), **fields)
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.lost += 1
                connection = None
                n = n if self.keys else None
                continue
            with self.lock:
                if status == 201:
                    self.acknowledged[n] = int(body["id"])
                elif status == 503:
                    self.refused += 1
                else:
                    self.other.append((n, status, body))
            if status == 503:
                time.sleep(0.02)
                n = n if self.keys else None
            else:
                n = None

    def wait(self, more):
        begin = len(self.acknowledged)
        f.wait_for(f"{more} more entries", lambda: len(self.acknowledged) - begin >= more)

    def end(self):
        self.ended = True
        for thread in self.threads:
            thread.join(f.LIMIT)

    def check(self, t, rows):
        """No acknowledged entry missing, none twice, none altered."""
        found = {}
        for _, number, _, user, detail, _ in rows:
            if detail.get("by") == self.name:
                found.setdefault(detail["n"], []).append((number, user))
        missing = [n for n, i in self.acknowledged.items() if (i, f"u{n % self.users}") not in found.get(n, [])]
        twice = [n for n, at in found.items() if len(at) > 1]
        t.equal(missing, [], "acknowledged entries that are missing or altered")
        if self.keys:
            t.equal(twice, [], "entries that are there twice")
        t.equal(self.other, [], "other answers")
        t.equal(len(set(self.acknowledged.values())), len(self.acknowledged), "IDs are distinct; how many")
        t.say(f"{len(self.acknowledged)} acknowledged, {len(found)} there, {self.lost} answers lost, {self.refused} refused")
