"""
What the gateway's tests share: an upstream that does what a test wants, byte by byte, and a firn-proxy process.
"""
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading

import firnd as f

PIECE = bytes(range(256)) * 256  # 64 KiB


def pattern(n):
    """n bytes that say where they are wrong if one is lost."""
    return (PIECE * (n // len(PIECE) + 1))[:n]


def parts(n):
    """The pattern in pieces, for bodies that need not be in memory."""
    while n > 0:
        yield PIECE if n >= len(PIECE) else PIECE[:n]
        n -= len(PIECE)


class Request:
    def __init__(self, line, fields, body_len, digest, trailers):
        self.line, self.fields, self.body_len, self.digest, self.trailers = line, fields, body_len, digest, trailers
        self.method, self.target, _ = line.split(" ", 2)

    def values(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]


class Peer:
    """One connection of an upstream: reads requests strictly and keeps them."""

    def __init__(self, sock):
        self.sock, self.buf = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self.buf += data

    def line(self):
        while b"\r\n" not in self.buf:
            self.more()
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line.decode("latin-1")

    def take(self, n, digest):
        done = 0
        while done < n:
            if not self.buf:
                self.more()
            part, self.buf = self.buf[:n - done], self.buf[n - done:]
            digest.update(part)
            done += len(part)

    def head(self):
        line, fields = self.line(), []
        while True:
            text = self.line()
            if not text:
                return line, fields
            name, value = text.split(":", 1)
            fields.append((name, value.strip()))

    def body(self, line, fields):
        digest, length, trailers = hashlib.sha256(), 0, []
        low = {n.lower(): v for n, v in fields}
        if low.get("transfer-encoding") == "chunked":
            assert "content-length" not in low
            while True:
                n = int(self.line(), 16)
                if n == 0:
                    break
                self.take(n, digest)
                length += n
                assert self.line() == ""
            while True:
                text = self.line()
                if not text:
                    break
                trailers.append(text)
        elif "content-length" in low:
            length = int(low["content-length"])
            self.take(length, digest)
        return Request(line, fields, length, digest.hexdigest(), trailers)


class Upstream:
    """`answer(upstream, peer, line, fields)` answers one request; False ends the connection."""

    def __init__(self, answer, port=0, host="127.0.0.1", path=None):
        """`path`: a Unix socket."""
        self.answer = answer
        if path:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.bind(path)
            self.sock.listen(512)
            self.address = "unix:" + path
        else:
            self.sock = socket.create_server((host, port), backlog=512, family=socket.AF_INET6 if ":" in host else socket.AF_INET)
            self.port = self.sock.getsockname()[1]
            self.address = ("[%s]:%d" if ":" in host else "%s:%d") % (host, self.port)
        self.requests, self.connections, self.open = [], 0, set()
        self.lock = threading.Lock()
        self.ended = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.ended:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open.add(sock)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        peer = Peer(sock)
        try:
            while True:
                line, fields = peer.head()
                if self.answer(self, peer, line, fields) is False:
                    break
        except (EOFError, OSError):
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def keep(self, request):
        with self.lock:
            self.requests.append(request)
        return request

    def drop_all(self):
        """Every connection ends, as with a server that restarts."""
        with self.lock:
            socks = list(self.open)
        for s in socks:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.ended = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)  # ends accept(), which would keep the port open
        except OSError:
            pass
        self.sock.close()
        self.drop_all()


def reply(peer, status, body=b"", fields=""):
    peer.sock.sendall(f"HTTP/1.1 {status} Text\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body)


class Gateway:
    """One firn-proxy process; its access log and its log are files."""

    count = 0

    def __init__(self, test, config, *args, serve=True, access=None, before=(), env=None):
        Gateway.count += 1
        self.test = test
        self.config_path = os.path.join(test.dir, f"gateway-{Gateway.count}.yaml")
        self.log_path = os.path.join(test.dir, f"gateway-{Gateway.count}.log")
        self.access_path = os.path.join(test.dir, f"gateway-{Gateway.count}.access")
        self.write(config)
        cmd = [*before, os.path.join(test.bin, "firn-proxy"), "-c", self.config_path, "--listen-http=127.0.0.1:0",
               "--listen-admin=127.0.0.1:0", *args]
        with open(self.log_path, "wb") as log, open(self.access_path, "wb") as lines:
            self.process = subprocess.Popen(cmd, stderr=log, stdout=access or lines, stdin=subprocess.DEVNULL, cwd=test.dir,
                                            env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        test.running.append(self)
        if serve:
            self.http, self.https, self.admin = f.wait_for("firn-proxy to serve", self.look).groups()

    def write(self, config):
        temporary = self.config_path + ".new"
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(config)
        os.rename(temporary, self.config_path)

    def look(self):
        if self.process.poll() is not None:
            raise f.NotThere(f"firn-proxy ended with {self.process.returncode}: {self.log()}")
        return re.search(r'serving http=(\S+) https=(\S+) admin=(\S+)', self.log())

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def wait_log(self, text):
        return f.wait_for(f"the log to say {text}", lambda: text in self.log())

    def access(self):
        """The access log; the last line may be half there."""
        with open(self.access_path, encoding="utf-8") as log:
            return [json.loads(x) for x in log.read().rpartition("\n")[0].splitlines()]

    def lines(self):
        """Of requests; refusals() are of what was none."""
        return [x for x in self.access() if "id" in x]

    def refusals(self):
        return [x for x in self.access() if "id" not in x]

    def line(self, request_id):
        return f.wait_for(f"the line of {request_id}", lambda: [x for x in self.lines() if x["id"] == request_id])[0]

    def status(self):
        return f.get(self.admin, "/status")[1]

    def service(self, name):
        return [s for s in self.status()["services"] if s["name"] == name][0]

    def wait_redis(self):
        """Until each loop has its connection to Redis."""
        loops = self.status()["redis"]["loops"]
        f.wait_for("Redis", lambda: self.status()["redis"]["connected"] == loops)
        return self

    def rss(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as s:
            return int(re.search(r"VmRSS:\s+(\d+)", s.read()).group(1)) * 1024

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(f.LIMIT)
        self.look_back()

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(f.LIMIT)
        self.look_back()
        return code

    def look_back(self):
        if self in self.test.running:
            self.test.running.remove(self)
        text = self.log()
        for word in f.BAD_WORDS:
            if word in text:
                self.test.check(False, f"the log is free of '{word}': {text[:3000]}")


class Client(f.Stream):
    """HTTP/1.1, raw: what is sent is what the test wrote, and answers are taken apart."""

    def ask(self, text):
        self.send(text.encode("latin-1") if isinstance(text, str) else text)

    def head(self):
        line, fields = self.line().decode("latin-1"), []
        while True:
            text = self.line().decode("latin-1")
            if not text:
                return int(line.split()[1]), fields
            fields.append(tuple(text.split(": ", 1)))

    def chunked(self, sink):
        trailers = []
        while True:
            n = int(self.line(), 16)
            if n == 0:
                break
            sink(self.exactly(n))
            assert self.line() == b""
        while True:
            text = self.line().decode("latin-1")
            if not text:
                return trailers
            trailers.append(text)

    def answer(self, head=False):
        """(status, fields as a dictionary in lower case, body). 1xx are passed over."""
        while True:
            status, fields = self.head()
            if status >= 200 or status == 101:
                break
        low = {n.lower(): v for n, v in fields}
        parts = []
        self.trailers = []
        if head or status in (204, 304, 101):
            pass
        elif low.get("transfer-encoding") == "chunked":
            self.trailers = self.chunked(parts.append)
        elif "content-length" in low:
            parts.append(self.exactly(int(low["content-length"])))
        else:
            try:
                while True:
                    self.more()
            except f.Gone:
                parts.append(self.buf)
                self.buf = b""
        return status, low, b"".join(parts)

    def ended(self):
        """Whether the connection ends without another byte."""
        try:
            self.more()
        except f.Gone:
            return self.buf == b""
        return False


class Deaf(Client):
    """Reads nothing until hear(), and the kernel holds little for it: a buffer of 4 KiB here, and small segments, which keep the
    gateway's socket buffer small."""

    def __init__(self, address):  # pylint: disable=super-init-not-called
        host, port = address.rsplit(":", 1)
        self.sock, self.buf = socket.socket(), b""
        self.sock.settimeout(f.SILENCE)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.sock.connect((host, int(port)))

    def hear(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)


def reset(client):
    """The client goes away at once; that it sends no more would not be its end."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def get(address, path, fields="", method="GET"):
    c = Client(address)
    try:
        c.ask(f"{method} {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")
        return c.answer(method == "HEAD")
    finally:
        c.close()
