#!/usr/bin/env python3
"""
Request smuggling through firn-proxy, with nginx, node and Python's http.server behind it: every case is refused, or the server saw
exactly the requests that the gateway logged, with the bodies that were sent. And servers that answer ambiguously: no client gets
bytes of another exchange.
"""
import base64
import http.server
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
import gateway as g  # noqa: E402  pylint: disable=wrong-import-position
import smuggling as s  # noqa: E402  pylint: disable=wrong-import-position

SEED = int(os.environ.get("FIRN_TEST_SEED", "") or time.time_ns() % 1_000_000_007)

# --- three servers that keep what they saw: (method, target, {field: [values]}, body) ---


class Python:
    """http.server, with a body reader of the lenient kind: it believes what the fields say."""

    def __init__(self, t):
        del t
        self.seen = seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = b""
                if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                    while True:
                        n = int(self.rfile.readline().split(b";")[0], 16)
                        body += self.rfile.read(n)
                        if n == 0:
                            break
                        self.rfile.readline()
                    while self.rfile.readline().strip():
                        pass
                elif self.headers.get("Content-Length"):
                    body = self.rfile.read(int(self.headers["Content-Length"]))
                fields = {}
                for n, v in self.headers.items():
                    fields.setdefault(n.lower(), []).append(v)
                seen.append((self.command, self.path, fields, body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"py")

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass

            def __getattr__(self, name):
                if name.startswith("do_"):
                    return self.answer
                raise AttributeError(name)
        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, request, client_address):  # a request that breaks off; what was seen is compared
                pass
        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def requests(self):
        return list(self.seen)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


NODE = """
const http = require('http');
http.createServer((q, a) => {
  const parts = [];
  q.on('data', (d) => parts.push(d));
  q.on('end', () => {
    console.log(JSON.stringify([q.method, q.url, q.rawHeaders, Buffer.concat(parts).toString('base64')]));
    a.end(q.method === 'HEAD' ? '' : 'js');
  });
  q.on('error', () => {});
}).on('clientError', (e, c) => { console.log(JSON.stringify(['BAD', String(e.code), [], ''])); c.destroy(); })
  .listen(0, '127.0.0.1', function () { console.error('port ' + this.address().port); });
"""


class Process:
    """A server as a process whose log is a file of JSON lines."""

    def __init__(self, command, log, err, **more):
        self.log_path = log
        with open(log, "ab") as out, open(err, "ab") as bad:
            self.process = subprocess.Popen(command, stdout=out, stderr=bad, stdin=subprocess.DEVNULL, **more)

    def lines(self):
        with open(self.log_path, encoding="utf-8") as log:
            text = log.read()
        return [json.loads(x) for x in text[:text.rfind("\n") + 1].splitlines()]

    def close(self):
        self.process.terminate()
        self.process.wait(f.LIMIT)


class Node(Process):
    def __init__(self, t):
        err = t.state("node.err")
        super().__init__(["node", "-e", NODE], t.state("node.log"), err)

        def port():
            with open(err, encoding="utf-8") as text:
                return re.search(r"port (\d+)\n", text.read())
        self.address = "127.0.0.1:" + f.wait_for("node to listen", port)[1]

    def requests(self):
        seen = []
        for method, target, raw, body in self.lines():
            fields = {}
            for i in range(0, len(raw), 2):
                fields.setdefault(raw[i].lower(), []).append(raw[i + 1])
            seen.append((method, target, fields, base64.b64decode(body)))
        return seen


class Nginx(Process):
    """It logs a body that it sends on, so there is a server behind it."""

    def __init__(self, t):
        self.sink = Python(t)
        base = t.state("nginx")
        os.mkdir(base)
        for _ in range(20):  # nginx takes no port 0: another one, if somebody was faster
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            conf = f"""daemon off; master_process off; pid {base}/pid; error_log {base}/error.log;
events {{ worker_connections 512; }}
http {{
  log_format line escape=json '["$request_method","$request_uri","$http_host","$request_body","$http_x_user_id","$status","$request"]';
  access_log {base}/access.log line;
  client_body_temp_path {base}/1; proxy_temp_path {base}/2; fastcgi_temp_path {base}/3; uwsgi_temp_path {base}/4;
  scgi_temp_path {base}/5; client_body_buffer_size 1m; client_max_body_size 2m;
  upstream sink {{ server {self.sink.address}; }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://sink; proxy_set_header Host $http_host; }} }}
}}
"""
            with open(f"{base}/nginx.conf", "w", encoding="utf-8") as out:
                out.write(conf)
            super().__init__([shutil.which("nginx") or "/usr/sbin/nginx", "-p", base, "-e", f"{base}/error.log", "-c", f"{base}/nginx.conf"],
                             f"{base}/access.log", f"{base}/stderr")
            self.address = f"127.0.0.1:{port}"
            if f.wait_for("nginx", self.look) == "there":
                return
        raise f.NotThere("a port for nginx")

    def look(self):
        if self.process.poll() is not None:
            return "gone"
        try:
            socket.create_connection(("127.0.0.1", int(self.address.split(":")[1])), 5).close()
        except OSError:
            return ""
        return "there"

    def requests(self):
        return [(method or "BAD", target or line, {"host": [host], "x-user-id": [user] if user else []}, body.encode("latin-1"))
                for method, target, host, body, user, _, line in self.lines()]

    def close(self):
        super().close()
        self.sink.close()


# --- requests ---


def tell(address, pieces):
    """Sends them, ends its side, and returns all that comes."""
    c = socket.create_connection((address.split(":")[0], int(address.split(":")[1])), f.SILENCE)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    got = b""
    try:
        for p in pieces:
            c.sendall(p)
        c.shutdown(socket.SHUT_WR)
        while True:
            data = c.recv(65536)
            if not data:
                break
            got += data
    except (ConnectionError, BrokenPipeError):
        pass
    finally:
        c.close()
    return got


def statuses(answers):
    """Of answers with a Content-Length, one after another; 1xx are passed over."""
    found = []
    while answers:
        head, _, rest = answers.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        length = re.search(rb"\r\nContent-Length: (\d+)", head, re.I)
        answers = rest[int(length[1]):] if length and status >= 200 else rest
        if status >= 200:
            found.append(status)
    return found


def requests(t):
    """Each case, in one piece and in two, and a good request behind it, to each of the three."""
    print(f"  seed {SEED}")
    rng = random.Random(SEED)
    servers = {"n": Nginx(t), "j": Node(t), "p": Python(t)}
    rules = "retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0"
    gate = g.Gateway(t, "services:\n" + "".join(f"  - {{ name: {k}, servers: ['{x.address}'], {rules} }}\n" for k, x in servers.items()) +
                     "routes:\n" + "".join(f"  - {{ name: {k}, path: /{k}, service: {k}{', cache: memory, cache_ttl_s: 60, gzip: on' * (k == 'p')} }}\n"
                                     for k in servers))
    count, bodies, tails = 0, {}, {}
    for k in servers:
        base = f"/{k}/".encode()
        inner = b"GET " + base + b"smuggled HTTP/1.1\r\nHost: a\r\nX-User-ID: 1\r\n\r\n"
        cases = [(what, data, want, None) for what, data, want in s.refused(base + b"%d")]
        cases += [(what, data, 200, want) for what, data, want in s.taken_by_proxies(base + b"%d", inner)]
        for what, data, want, good in cases:
            for cut in (0, rng.randrange(1, len(data))):
                count += 1
                data_now = data.replace(b"%d", b"%d" % count)
                tail = b"GET " + base + b"tail%d HTTP/1.1\r\nHost: a\r\n\r\n" % count
                pieces = [data_now + tail] if cut == 0 else [data_now[:cut], data_now[cut:] + tail]
                said = statuses(tell(gate.http, pieces))
                if good:
                    t.equal(said, [200, 200], f"{what}, to {k}")
                    bodies[f"/{k}/{count}"] = good
                    tails[f"/{k}/tail{count}"] = ("GET", b"")
                else:
                    t.check(len(said) == 1 and said[0] in (want if isinstance(want, tuple) else (want,)), f"{what}, to {k}: {said}")
    # Whatever was smuggled in came before this.
    for k in servers:
        for i in range(3):
            g.get(gate.http, f"/{k}/last{i}")
    for k, x in servers.items():
        f.wait_for(f"{k} to have logged all", lambda k=k, x=x: len([r for r in x.requests() if f"/{k}/last" in r[1]]) == 3)
    lines = f.wait_for("the gateway's log", lambda: (lambda ls: len([x for x in ls if "/last" in x["path"]]) == 9 and ls)(gate.lines()))
    for k, x in servers.items():
        seen = x.requests()
        logged = sorted((y["method"], y["path"]) for y in lines if y["service"] == k and y["tries"])
        whole = [r for r in seen if r[1] in bodies or r[1] in tails or f"/{k}/last" in r[1]]
        # A request that broke off in its body may have reached a server, as the first one of its connection; never what is behind it.
        broken = {y["path"] for y in lines if y["service"] == k and y["tries"] and y["status"] >= 400}
        t.equal(sorted((r[0], r[1]) for r in seen if r[1] not in broken and r[0] != "BAD"), [q for q in logged if q[1] not in broken],
                f"{k}: what it saw and what the gateway logged")
        t.check(not any("smuggled" in r[1] or (r[1] not in bodies and "tail" in r[1] and r[1] not in tails) for r in seen),
                f"{k}: nothing came out of a body or from behind a refused request")
        for method, target, fields, body in whole:
            want = bodies.get(target) or tails.get(target) or ("GET", b"")
            t.check((method, body) == want, f"{k} {target}: {method} {body!r}, should be {want!r}")
            t.check(not fields.get("x-user-id"), f"{k} {target}: {fields}")
        t.equal(len(whole), len({r[1] for r in whole}), f"{k}: each request once")
        t.check(all(r[1] in broken or r[1] in bodies or r[1] in tails or "/last" in r[1] or r[0] == "BAD" for r in seen), f"{k}: no other")
    t.say(f"{count} cases")
    t.check(gate.process.poll() is None, "it lives")
    gate.stop()
    for x in servers.values():
        x.close()


def passed_over(t):
    """A body that nobody wanted turns out to be malformed behind its answer: the answer arrives all the same, and nothing else."""
    gate = g.Gateway(t, "services: [{ name: a, servers: ['127.0.0.1:1'] }]\nroutes: [{ path: /a, service: a }]\n")
    for _ in range(20):
        c = g.Client(gate.http)
        c.ask(b"POST /nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        f.wait_for("it to be answered", lambda: gate.status()["requests_in_hand"] == 0)
        c.ask(b"g\r\n")
        for _ in range(3):  # a connection that was simply closed would refuse these, and its reset may destroy the answer
            gate.status()
            c.ask(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
        t.equal((c.answer()[0], c.ended()), (404, True), "one answer, whole")
        c.close()
    gate.stop()


def interim(t):
    """Framing has no meaning in a 1xx answer, and a client that read it would be led astray."""
    def hint(up, peer, line, fields):
        peer.body(line, fields)
        peer.sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 40\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\n"
                          b"HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n")
        g.reply(peer, 200, b"own")
    up = g.Upstream(hint)
    gate = g.Gateway(t, f"services: [{{ name: a, servers: ['{up.address}'] }}]\nroutes: [{{ path: /, service: a }}]\n")
    c = g.Client(gate.http)
    for _ in range(3):
        c.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        seen = []
        while True:
            status, fields = c.head()
            seen.append((status, [n for n, _ in fields if n.lower() in ("content-length", "transfer-encoding", "connection", "x-hop")]))
            if status >= 200:
                break
        t.equal(c.exactly(3), b"own", "the answer")
        t.equal(seen, [(103, []), (102, []), (200, ["Content-Length"])], "no framing before it")
    c.close()
    gate.stop()


# --- answers ---

OK = b"HTTP/1.1 200 OK\r\n"
FORGED = OK + b"Content-Length: 6\r\n\r\nforged"


def ambiguous():
    """[(what it is, bytes, body: what a client may take it for besides 502, or None)]"""
    chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n"
    return [
        ("two lengths", OK + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + FORGED, None),
        ("the same length twice", OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", None),
        ("a list of lengths", OK + b"Content-Length: 2, 2\r\n\r\nok", None),
        ("CL and TE", OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + FORGED, None),
        ("TE and CL", OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + FORGED, None),
        ("+2", OK + b"Content-Length: +2\r\n\r\nok", None),
        ("-2", OK + b"Content-Length: -2\r\n\r\nok", None),
        ("0x2", OK + b"Content-Length: 0x2\r\n\r\nok", None),
        ("2 0", OK + b"Content-Length: 2 0\r\n\r\nok", None),
        ("no length", OK + b"Content-Length:\r\n\r\nok", None),
        ("a length that wraps", OK + b"Content-Length: 18446744073709551618\r\n\r\nok", None),
        ("a length of 2^63", OK + b"Content-Length: 9223372036854775808\r\n\r\nok", None),
        ("a space before the colon", OK + b"Content-Length : 2\r\n\r\nok", None),
        ("TE with a space before the colon", OK + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", None),
        ("obs-fold", OK + b"X: y\r\n Content-Length: 2\r\n\r\nok", None),
        ("obs-fold of the length", OK + b"Content-Length:\r\n 2\r\n\r\nok", None),
        ("bare LF", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", None),
        ("one bare LF", OK + b"X: y\nContent-Length: 2\r\n\r\nok", None),
        ("bare LF at the end", OK + b"Content-Length: 2\r\n\nok", None),
        ("bare CR", OK + b"X: y\rContent-Length: 2\r\n\r\nok", None),
        ("NUL in a value", OK + b"X: \0\r\nContent-Length: 2\r\n\r\nok", None),
        ("NUL in a name", OK + b"X\0: y\r\nContent-Length: 2\r\n\r\nok", None),
        ("NUL in the reason", b"HTTP/1.1 200 O\0K\r\nContent-Length: 2\r\n\r\nok", None),
        ("CR in the reason", b"HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok", None),
        ("no colon", OK + b"nonsense\r\nContent-Length: 2\r\n\r\nok", None),
        ("no name", OK + b": y\r\nContent-Length: 2\r\n\r\nok", None),
        ("gzip, chunked", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", None),
        ("chunked, identity", OK + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", None),
        ("TE twice", OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
        ("chunked with a form feed", OK + b"Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n", None),
        ("TE in HTTP/1.0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
        ("HTTP/0.9", b"ok", None), ("HTTP/0.9 as a version", b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("HTTP/2", b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", None), ("HTTP/1.2", b"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("http/1.1", b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("an empty line first", b"\r\n" + OK + b"Content-Length: 2\r\n\r\nok", None),
        ("a status of two digits", b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("a status of four digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("a negative status", b"HTTP/1.1 -20 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("a status of 000", b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok", None),
        ("a long reason", b"HTTP/1.1 200 " + b"a" * 20000 + b"\r\nContent-Length: 2\r\n\r\nok", None),
        ("a long value", OK + b"X: " + b"a" * 20000 + b"\r\nContent-Length: 2\r\n\r\nok", None),
        ("a long name", OK + b"X" * 20000 + b": a\r\nContent-Length: 2\r\n\r\nok", None),
        ("many fields", OK + b"X: a\r\n" * 200 + b"Content-Length: 2\r\n\r\nok", None),
        ("fields that do not end", OK + b"X: a\r\n" * 5000, None),
        ("many 1xx", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000 + OK + b"Content-Length: 2\r\n\r\nok", None),
        ("101 unasked", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + FORGED, None),
        ("100 with a body", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello" + OK + b"Content-Length: 2\r\n\r\nok", None),
        ("100 with two lengths", b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\n" + FORGED, None),
        ("bytes behind the answer", OK + b"Content-Length: 2\r\n\r\nok" + FORGED, b"ok"),
        ("a byte behind the answer", OK + b"Content-Length: 2\r\n\r\nokX", b"ok"),
        ("CR LF behind the answer", OK + b"Content-Length: 2\r\n\r\nok\r\n", b"ok"),
        ("two answers", OK + b"Content-Length: 0\r\n\r\n" + FORGED, b""),
        ("an answer behind chunks", chunked + b"2\r\nok\r\n0\r\n\r\n" + FORGED, b"ok"),
        ("204 with a body", b"HTTP/1.1 204 No Content\r\nContent-Length: 40\r\n\r\n" + FORGED, b""),
        ("204 with chunks", b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b""),
        ("304 with a body", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 40\r\n\r\n" + FORGED, b""),
        ("a status of 999", b"HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        ("no reason", b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        ("HTTP/1.0 with an end", b"HTTP/1.0 200 OK\r\n\r\n" + FORGED, FORGED),
        ("neither length nor chunks", OK + b"\r\n" + FORGED, FORGED),
        ("keep-alive without a length", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n" + FORGED, FORGED),
        ("Connection names the length", OK + b"Connection: Content-Length\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        ("chunk size 0x2", chunked + b"0x2\r\nok\r\n0\r\n\r\n", None), ("chunk size +2", chunked + b"+2\r\nok\r\n0\r\n\r\n", None),
        ("chunk size -2", chunked + b"-2\r\nok\r\n0\r\n\r\n", None), ("chunk size 2 and a space", chunked + b"2 \r\nok\r\n0\r\n\r\n", None),
        ("chunk size that wraps", chunked + b"10000000000000002\r\nok\r\n0\r\n\r\n", None),
        ("no chunk size", chunked + b"\r\nok\r\n0\r\n\r\n", None), ("chunk, bare LF", chunked + b"2\nok\n0\n\n", None),
        ("chunk, bare CR", chunked + b"2\r\nok\r0\r\n\r\n", None), ("chunk too long", chunked + b"2\r\nokay\r\n0\r\n\r\n", None),
        ("chunk extension without a name", chunked + b"2;\r\nok\r\n0\r\n\r\n", None),
        ("chunk extension, LF", chunked + b"2;a=\n\r\nok\r\n0\r\n\r\n", None),
        ("chunk extension, long", chunked + b"2;" + b"a" * 500 + b"\r\nok\r\n0\r\n\r\n", None),
        ("chunk extension, endless", chunked + b"2;" + b"a" * 500000, None),
        ("trailer with a length", chunked + b"0\r\nContent-Length: 6\r\n\r\nforged", None),
        ("trailer with TE", chunked + b"0\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        ("trailers, folded", chunked + b"0\r\nX: y\r\n z\r\n\r\n", None),
        ("trailers, long", chunked + b"0\r\nX: " + b"a" * 20000 + b"\r\n\r\n", None),
        ("trailers, endless", chunked + b"0\r\n" + b"X: a\r\n" * 50000, None),
    ]


def answers(t, service="", route=""):
    """Each of them, and then requests to the same server by other clients: all have an answer of their own, with their own mark."""
    cases = ambiguous()

    def bad(up, peer, line, fields):
        peer.body(line, fields)
        word, n = line.split(" ")[1].strip("/").split("/")
        if word == "own":
            g.reply(peer, 200, n.encode())
            return None
        text = cases[int(n)][1]
        if word == "slow":
            cut = len(text) // 2
            peer.sock.sendall(text[:cut])
            time.sleep(0.002)  # more often than not it comes in two reads; nothing depends on it
            peer.sock.sendall(text[cut:])
        else:
            peer.sock.sendall(text)
        # The end of the connection is the end of the bodies that have no other.
        return False if cases[int(n)][2] == FORGED or cases[int(n)][1] == b"ok" else None
    up = g.Upstream(bad)
    gate = g.Gateway(t, f"""loops: 1
services: [{{ name: a, servers: ['{up.address}'], retries: 0, eject_after: 0, breaker_failures: 0, breaker_percent: 0, first_byte_ms: 60000{service} }}]
routes: [{{ name: r, path: /, service: a{route} }}]
""")
    mark = 0
    other = g.Client(gate.http)
    for n, (what, _, body) in enumerate(cases):
        for how in ("fast", "slow", "head"):
            c = g.Client(gate.http)
            method = "HEAD" if how == "head" else "GET"
            mark += 1
            c.ask(f"{method} /{how}/{n} HTTP/1.1\r\nHost: a\r\n\r\nGET /own/{mark} HTTP/1.1\r\nHost: a\r\n\r\n")
            try:
                status, _, got = c.answer(how == "head")
            except f.Gone:
                status, got = 0, b""  # it broke off, which the client can see
            if how != "head":
                good = status in (0, 502, 504) if body is None else got == body
                t.check(good and (body == FORGED or b"forged" not in got), f"{what}, {how}: {status} {got[:60]!r}")
            if status:
                try:
                    t.equal(c.answer()[2], b"%d" % mark, f"{what}, {how}: the next request of the same client")
                except f.Gone:
                    t.check(body is None or body == FORGED, f"{what}, {how}: the connection goes on")
            c.close()
            for _ in range(2):
                mark += 1
                other.ask(f"GET /own/{mark} HTTP/1.1\r\nHost: a\r\n\r\n")
                t.equal(other.answer()[2], b"%d" % mark, f"{what}, {how}: another client")
    t.say(f"{3 * len(cases)} answers")
    t.check(gate.process.poll() is None, "it lives")
    other.close()
    gate.stop()


def answers_pipelined(t):
    answers(t, ", pipeline: 16")


def answers_kept(t):
    answers(t, "", ", cache: memory, cache_ttl_s: 60, gzip: on")


if __name__ == "__main__":
    with f.Test("gateway_smuggle") as test:
        for part in (requests, passed_over, interim, answers, answers_pipelined, answers_kept):
            test.section(part)
