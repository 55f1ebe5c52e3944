#!/usr/bin/env python3
"""TLS, tokens and rates of firnd as its users meet them: tls.py FOLDER-OF-PROGRAMS

Makes an authority and certificates with the openssl command in a temporary folder, starts firnd on free
ports of loopback and talks to it with Python's ssl module, openssl s_client and, where it is installed,
redis-cli. Every case starts from a server of its own.
"""

import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

PROGRAMS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else sys.exit(__doc__)
FIRND = os.path.join(PROGRAMS, "firnd")
if not os.access(FIRND, os.X_OK):
    sys.exit(f"{FIRND}: not a program")
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
WORK = tempfile.mkdtemp(prefix="firn-tls-")


def sanitized():
    with open(FIRND, "rb") as f:
        binary = f.read()
    return b"__asan_init" in binary or b"__tsan_init" in binary


SANITIZED = sanitized()
LIMIT = 180  # seconds that anything may take


def openssl(*args, stdin=""):
    done = subprocess.run(["openssl", *args], cwd=WORK, input=stdin, capture_output=True, text=True)
    assert done.returncode == 0, f"openssl {args}: {done.stderr}"
    return done.stdout


def authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name} authority", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def certificate(file, name, by, valid_for="DNS:localhost,IP:127.0.0.1"):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", f"{file}.key", "-out", f"{file}.csr")
    with open(path(f"{file}.ext"), "w") as f:
        f.write(f"subjectAltName={valid_for}\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", f"{file}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial",
            "-days", "1", "-extfile", f"{file}.ext", "-out", f"{file}.pem")


def path(name):
    return os.path.join(WORK, name)


class Server:
    """firnd until the end of a `with`; its log is read as it comes."""

    def __init__(self, *flags):
        self.state = tempfile.mkdtemp(dir=WORK)
        # Windows of a minute, not of 3 seconds: a machine that stands still for a while costs no IDs.
        subprocess.run([os.path.join(PROGRAMS, "firn"), "admin", "init", "--store", f"sqlite:{self.state}/firn.db", "--window", "60s",
                        "--fresh"], check=True, capture_output=True, timeout=LIMIT)
        self.log = []
        self.news = threading.Condition()
        env = {k: v for k, v in os.environ.items() if not k.startswith("FIRN_")}
        self.process = subprocess.Popen(
            [FIRND, "--listen-home", "127.0.0.1:0", "--listen-snowflake", "127.0.0.1:0", "--listen-ticket",
             "127.0.0.1:0", "--state-dir", self.state, "--log-format", "json", *flags],
            stderr=subprocess.PIPE, text=True, env=env, cwd=WORK)
        threading.Thread(target=self.read_log, daemon=True).start()
        serving = self.wait("serving")
        self.home, self.snowflake, self.ticket = (
            int(serving[p].rsplit(":", 1)[1]) for p in ("home", "snowflake", "ticket"))

    def read_log(self):
        for line in self.process.stderr:
            with self.news:
                try:
                    self.log.append(json.loads(line))
                except ValueError:
                    self.log.append({"event": "text", "text": line})
                self.news.notify_all()
        with self.news:
            self.log.append({"event": "end of log"})
            self.news.notify_all()

    def wait(self, event, count=1):
        end = time.monotonic() + LIMIT
        with self.news:
            while True:
                found = [e for e in self.log if e["event"] == event]
                if len(found) >= count:
                    return found[count - 1]
                left = end - time.monotonic()
                assert left > 0 and not any(e["event"] == "end of log" for e in self.log), \
                    f"no '{event}' in the log: {self.log}"
                self.news.wait(left)

    def reload(self):
        before = len([e for e in self.log if e["event"] in ("reloaded", "reload_failed")])
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + LIMIT
        with self.news:
            while len([e for e in self.log if e["event"] in ("reloaded", "reload_failed")]) <= before:
                assert time.monotonic() < end, "no reload"
                self.news.wait(0.1)

    def ready(self, context=None):
        """Until IDs can be made."""
        end = time.monotonic() + LIMIT
        while get(self.home, "/readyz", context=context)[0] != 200:
            assert time.monotonic() < end, "never ready"
            time.sleep(0.02)
        return self

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/smaps_rollup") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert kind or code == 0, f"firnd ended with {code}: {self.log[-3:]}"


def client(cert=None, ca="ca.pem", **versions):
    c = ssl.create_default_context(cafile=path(ca))
    for name, value in versions.items():
        setattr(c, name, value)
    if cert:
        c.load_cert_chain(path(f"{cert}.pem"), path(f"{cert}.key"))
    return c


def get(port, target, token=None, context=None, method="GET", body=None, authorization=None):
    """Status, headers, body of one request on a connection of its own."""
    if context:
        c = http.client.HTTPSConnection("localhost", port, timeout=LIMIT, context=context)
    else:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    return ask(c, target, token, method, body, authorization, close=True)


def ask(c, target, token=None, method="GET", body=None, authorization=None, close=False):
    headers = {"Content-Type": "application/json"} if body else {}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if authorization is not None:
        headers["Authorization"] = authorization
    c.request(method, target, body=body, headers=headers)
    r = c.getresponse()
    text = r.read()
    if close:
        c.close()
    return r.status, r.headers, text


def connect(port, context):
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), LIMIT), server_hostname="localhost")


def resp(*args):
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in (x.encode() for x in args))


class Redis:
    """One line of an answer at a time is enough here."""

    def __init__(self, port, context=None):
        self.socket = connect(port, context) if context else socket.create_connection(("127.0.0.1", port), LIMIT)
        self.file = self.socket.makefile("rb")

    def __call__(self, *args):
        self.socket.sendall(resp(*args))
        line = self.file.readline().decode().rstrip("\r\n")
        if line.startswith("$") and line != "$-1":
            line = self.file.readline().decode().rstrip("\r\n")
        return line

    def close(self):
        self.file.close()
        self.socket.close()


def tls_flags(ca=False):
    flags = ["--tls-cert", path("server.pem"), "--tls-key", path("server.key")]
    return flags + (["--tls-client-ca", path("ca.pem")] if ca else [])


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing
            return s.getsockname()[0]
        except OSError:
            return None


def expect(what, have, want):
    assert have == want, f"{what}: {have!r} is not {want!r}"


def refused(context, port):
    """How a handshake, or with TLS 1.3 the first read after it, ends."""
    try:
        with connect(port, context) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            return "served" if s.recv(100) else "closed"
    except (ssl.SSLError, ConnectionError) as e:
        return str(e)


# --- cases ---


def case_https_and_rediss():
    with Server(*tls_flags()) as s:
        s.ready(client())
        for versions in ({"maximum_version": ssl.TLSVersion.TLSv1_2}, {"minimum_version": ssl.TLSVersion.TLSv1_3}):
            c = client(**versions)
            status, headers, text = get(s.snowflake, "/generate", context=c)
            expect("snowflake", status, 200)
            assert int(json.loads(text)["id"]) > 0
        expect("first ticket", json.loads(get(s.ticket, "/generate", context=client())[2])["id"], "100001")
        c = client()
        c.set_alpn_protocols(["h2", "http/1.1"])
        with connect(s.home, c) as k:
            expect("ALPN", k.selected_alpn_protocol(), "http/1.1")
        r = Redis(s.home, client())
        expect("PING", r("PING"), "+PONG")
        expect("INCR", [r("INCR", "tls:counter") for _ in range(3)], [":1", ":2", ":3"])
        r.close()


def case_pipelines_and_large_answers():
    with Server(*tls_flags()) as s:
        s.ready(client())
        with connect(s.home, client()) as k:
            n = 500
            k.sendall(b"GET /v1/ids/ulid HTTP/1.1\r\nHost: x\r\n\r\n" * n)
            f = k.makefile("rb")
            for _ in range(n):
                assert f.readline().startswith(b"HTTP/1.1 200"), "pipelined"
                length = 0
                while (line := f.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                f.read(length)
        # Larger than any buffer, to a peer that reads slowly.
        with connect(s.snowflake, client()) as k:
            k.sendall(b"GET /generate?n=100000 HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\nConnection: close\r\n\r\n")
            text = b""
            while part := k.recv(16384):
                text += part
                if len(text) < 200000:
                    time.sleep(0.005)
            ids = text.partition(b"\r\n\r\n")[2].split()
            expect("IDs", len(ids), 100000)
            assert ids == sorted(set(ids), key=int), "rising, none twice"
        # A request that comes a byte a record.
        with connect(s.home, client()) as k:
            for b in b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
                k.sendall(bytes([b]))
            text = b""
            while part := k.recv(4096):
                text += part
            assert text.startswith(b"HTTP/1.1 200"), text
            k.unwrap()  # the server has said goodbye: SSLError if it had only hung up


def case_half_close():
    """A client that says goodbye after its request still gets the answer."""
    with Server(*tls_flags()) as s:
        s.ready(client())
        raw = socket.create_connection(("127.0.0.1", s.ticket), LIMIT)
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        o = client().wrap_bio(into, out, server_hostname="localhost")
        while True:
            try:
                o.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(out.read())
                into.write(raw.recv(16384))
        o.write(b"GET /generate HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            o.unwrap()
        except ssl.SSLWantReadError:
            pass
        raw.sendall(out.read())  # request and goodbye at once
        raw.shutdown(socket.SHUT_WR)
        got = b""
        while part := raw.recv(16384):
            got += part
        raw.close()
        assert len(got) > 200, "tickets, an answer and a goodbye"


def case_plaintext_is_told():
    with Server(*tls_flags()) as s:
        status, headers, text = get(s.home, "/healthz")
        expect("plain HTTP", (status, headers["Content-Type"]), (400, "application/problem+json"))
        assert "this port speaks TLS" in json.loads(text)["detail"], text
        r = Redis(s.home)
        assert r("PING").startswith("-ERR this port speaks TLS")
        r.close()
    with Server() as s:  # and TLS where there is none is just a bad request
        assert refused(client(), s.home) != "served"
        expect("plain", get(s.home, "/healthz")[0], 200)


def case_client_certificates():
    with Server(*tls_flags(ca=True)) as s:
        s.ready(client("billing"))
        expect("with certificate", get(s.snowflake, "/generate", context=client("billing"))[0], 200)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for cert in (None, "stranger"):
                why = refused(client(cert, maximum_version=version), s.home)
                assert why not in ("served", "closed"), f"{cert} {version}: {why}"
        assert get(s.home, "/metrics", context=client("billing"))[2].count(b"firn_tls_errors_total 4") == 1


def case_resumption():
    with Server(*tls_flags(ca=True)) as s:
        for version in ("-tls1_2", "-tls1_3"):
            have = [f for f in ("a.ses", "b.ses") if os.path.exists(path(f))]
            for f in have:
                os.unlink(path(f))
            for flag in ("-sess_out", "-sess_in"):
                done = subprocess.run(
                    ["openssl", "s_client", "-connect", f"127.0.0.1:{s.home}", "-CAfile", "ca.pem", "-cert",
                     "billing.pem", "-key", "billing.key", version, "-ign_eof", "-verify_return_error", flag, "a.ses"],
                    cwd=WORK, capture_output=True, text=True, timeout=LIMIT,
                    input="GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert "HTTP/1.1 200 OK" in done.stdout, done.stdout + done.stderr
                want = "Reused, " if flag == "-sess_in" else "New, "
                assert want in done.stdout, f"{version} {flag}: {done.stdout}"


def case_no_old_versions():
    with Server(*tls_flags()) as s:
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{s.home}", "-tls1_1", "-cipher",
                               "ALL:@SECLEVEL=0"], cwd=WORK, capture_output=True, text=True, input="")
        assert "Cipher is (NONE)" in done.stdout, done.stdout
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{s.home}", "-tls1_2"], cwd=WORK,
                              capture_output=True, text=True, input="R\n", timeout=LIMIT)
        assert "no renegotiation" in done.stderr or "handshake failure" in done.stderr, done.stderr


def handshake(port, *flags):
    """What openssl s_client agreed on, or None."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *flags], cwd=WORK, capture_output=True, text=True,
                          input="", timeout=LIMIT)
    found = re.search(r"^New, .*Cipher is (\S+)$", done.stdout, re.M)
    return found[1] if found and found[1] != "(NONE)" else None


def case_scan():
    """Every protocol and suite that OpenSSL knows, with a certificate of each kind, without those accepted before until none is
    left that is: what is accepted is what docs/security.md promises."""
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "rsa.key", "-out", "rsa.csr")
    openssl("x509", "-req", "-in", "rsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-out", "rsa.pem")
    known = [line.split()[0] for line in openssl("ciphers", "-v", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").splitlines()
             if not line.startswith("TLS_")]
    assert len(known) > 60, known
    good = {f"ECDHE-{kind}-{suite}" for kind in ("ECDSA", "RSA")
            for suite in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")}
    with Server(*tls_flags()) as s, Server("--tls-cert", path("rsa.pem"), "--tls-key", path("rsa.key")) as rsa:
        for server, kind in ((s, "ECDSA"), (rsa, "RSA")):
            for old in ("-tls1", "-tls1_1"):
                expect(f"{kind} {old}", handshake(server.home, old, "-cipher", "ALL:@SECLEVEL=0"), None)
            taken, rest = set(), list(known)
            while (one := handshake(server.home, "-tls1_2", "-cipher", ":".join(rest) + ":@SECLEVEL=0")) is not None:
                taken.add(one)
                rest.remove(one)
            expect(f"suites of TLS 1.2 with {kind}", taken, {c for c in good if f"-{kind}-" in c})
            taken = {c for c in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
                                 "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256")
                     if handshake(server.home, "-tls1_3", "-ciphersuites", c)}
            expect(f"suites of TLS 1.3 with {kind}", {c for c in taken if "_CCM" in c}, set())
            expect(f"number of suites of TLS 1.3 with {kind}", len(taken), 3)
        for curve, fine in (("X25519", True), ("P-256", True), ("P-224", False), ("K-163", False)):
            got = handshake(rsa.home, "-tls1_2", "-curves", curve, "-cipher", "ECDHE+AESGCM:@SECLEVEL=0")
            expect(f"key exchange over {curve}", bool(got), fine)


def case_garbage():
    with Server("--limits-header-ms", "500", *tls_flags()) as s:
        s.ready(client())
        for junk in (b"\x16", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01", b"\x16" + os.urandom(5000),
                     b"\x16\x03\x01\x40\x00" + os.urandom(20000), os.urandom(3000)):
            k = socket.create_connection(("127.0.0.1", s.home), LIMIT)
            k.sendall(junk)
            try:
                while k.recv(4096):  # ends by itself: at once, or at the deadline of a handshake
                    pass
            except ConnectionError:
                pass
            k.close()
        # Slow loris: a byte now and then does not win time.
        k = socket.create_connection(("127.0.0.1", s.home), LIMIT)
        try:
            for b in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500):
                k.sendall(bytes([b]))
                time.sleep(0.1)
            assert False, "a handshake of a byte now and then is borne to its end"
        except ConnectionError:
            pass
        k.close()
        # A handshake that is cut off, then others go on.
        for _ in range(20):
            k = socket.create_connection(("127.0.0.1", s.home), LIMIT)
            k.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            k.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            k.close()
        expect("others", get(s.home, "/healthz", context=client())[0], 200)


def case_rotation():
    for f in ("server.pem", "server.key"):
        shutil.copy(path(f), path("live-" + f))
    with Server("--tls-cert", path("live-server.pem"), "--tls-key", path("live-server.key")) as s:
        s.ready(client())

        def serial():
            with connect(s.home, client()) as k:
                return k.getpeercert()["serialNumber"]

        first = serial()
        old = connect(s.ticket, client())
        old.sendall(b"GET /generate HTTP/1.1\r\nHost: x\r\n\r\n")
        assert old.recv(4096).startswith(b"HTTP/1.1 200")

        shutil.copy(path("next.pem"), path("live-server.pem"))  # without its key: refused as a whole
        s.reload()
        s.wait("tls_reload_failed")
        expect("still the old one", serial(), first)

        shutil.copy(path("next.key"), path("live-server.key"))
        s.reload()
        second = serial()
        assert second != first, "a new certificate"
        old.sendall(b"GET /generate HTTP/1.1\r\nHost: x\r\n\r\n")
        assert old.recv(4096).startswith(b"HTTP/1.1 200"), "old connections live on"
        old.close()


ROOT, WEB, SHOP, NEW = "root-token", "web-token", "shop-token", "new-web-token"


def config(file, tokens, more=""):
    with open(path(file), "w") as f:
        f.write("auth:\n  tokens:\n")
        for name, token, kinds, sequences in tokens:
            f.write(f"    - name: {name}\n      token_sha256: {hashlib.sha256(token.encode()).hexdigest()}\n")
            if kinds:
                f.write(f"      kinds: {json.dumps(kinds)}\n")
            if sequences:
                f.write(f"      sequences: {json.dumps(sequences)}\n")
        f.write(more)
    return ["--config", path(file)]


TOKENS = [("root", ROOT, ["*"], ["*"]), ("web", WEB, ["snowflake", "uuid*"], []), ("shop", SHOP, [], ["orders*"])]


def case_tokens_http():
    with Server(*config("tokens.yaml", TOKENS)) as s:
        s.ready()
        for open_route in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/v1/kinds", "/v1/layouts"):
            expect(open_route, get(s.home, open_route)[0], 200)
        minting = ["/generate", "/generate?n=3", "/generate?kind=uuidv7", "/v1/ids/snowflake", "/v1/ids/ticket",
                   "/v1/ids/dated?seq=x", "/v1/sequences/orders/next", "/v1/sequences", "/v1/sequences/orders"]
        for port in (s.home, s.snowflake, s.ticket):
            for target in minting:
                status, headers, text = get(port, target)
                expect(target, (status, headers["Content-Type"]), (401, "application/problem+json"))
                assert headers["WWW-Authenticate"].startswith("Bearer"), headers
                expect(target, json.loads(text)["type"], "urn:firn:problem:no-token")
        body = json.dumps({"name": "orders.new"})
        expect("create", get(s.home, "/v1/sequences", method="POST", body=body)[0], 401)
        expect("create", get(s.home, "/v1/sequences", WEB, method="POST", body=body)[0], 403)
        expect("create", get(s.home, "/v1/sequences", SHOP, method="POST", body=body)[0], 201)
        for authorization in ("", "Bearer", "Bearer ", "Basic eDp5", f"Bearer {ROOT} x", f"bearer{ROOT}", ROOT,
                              "Bearer wrong"):
            status, headers, text = get(s.snowflake, "/generate", authorization=authorization)
            expect(repr(authorization), status, 401)
        expect("bearer", get(s.snowflake, "/generate", authorization=f"bearer {ROOT}")[0], 200)

        expect("web", get(s.snowflake, "/generate", WEB)[0], 200)
        expect("web", get(s.snowflake, "/generate?kind=uuidv7&n=5", WEB)[0], 200)
        status, headers, text = get(s.snowflake, "/generate?kind=ulid", WEB)
        expect("web", (status, json.loads(text)["type"]), (403, "urn:firn:problem:not-allowed"))
        expect("web", get(s.ticket, "/generate", WEB)[0], 403)
        expect("shop", get(s.snowflake, "/generate", SHOP)[0], 403)
        expect("shop", get(s.home, "/v1/sequences/orders.new/next", SHOP)[0], 200)
        expect("shop", get(s.home, "/v1/sequences/invoices/next", SHOP)[0], 403)
        expect("root", get(s.ticket, "/generate", ROOT)[0], 200)

        # One connection: each request stands for itself.
        c = http.client.HTTPConnection("127.0.0.1", s.snowflake, timeout=LIMIT)
        expect("keep-alive", [ask(c, "/generate", t)[0] for t in (ROOT, None, WEB, "wrong", ROOT)],
               [200, 401, 200, 401, 200])
        expect("empty", ask(c, "/generate", authorization="")[0], 401)
        c.close()
        assert any(e["event"] == "refused" for e in s.log), "refusals are logged"
        assert not any(t in json.dumps(s.log) for t in (ROOT, WEB, SHOP)), "tokens are not"


def case_tokens_redis():
    with Server(*config("tokens.yaml", TOKENS)) as s:
        s.ready()
        r = Redis(s.home)
        expect("PING", r("PING"), "+PONG")
        for command in (("INCR", "orders"), ("INCRBY", "orders", "2"), ("GET", "orders"), ("FIRN.NEXT", "snowflake"),
                        ("FIRN.NEXT", "uuidv7"), ("FIRN.NEXT", "ticket", "SEQ", "orders")):
            expect(command, r(*command), "-NOAUTH Authentication required.")
        assert r("AUTH", "wrong").startswith("-WRONGPASS")
        assert r("AUTH", "web", SHOP).startswith("-WRONGPASS")
        expect("AUTH", r("AUTH", SHOP), "+OK")
        expect("INCR", r("INCR", "orders"), ":1")
        assert r("INCR", "invoices").startswith("-NOPERM")
        assert r("FIRN.NEXT", "snowflake").startswith("-NOPERM")
        expect("AUTH", r("AUTH", "web", WEB), "+OK")
        assert r("FIRN.NEXT", "snowflake").isdigit()
        assert r("INCR", "orders").startswith("-NOPERM")
        assert r("AUTH", "").startswith("-WRONGPASS")
        expect("after a wrong AUTH", r("FIRN.NEXT", "snowflake"), "-NOAUTH Authentication required.")
        r.close()
        r = Redis(s.home)
        assert r("HELLO", "3", "AUTH", "default", "wrong").startswith("-WRONGPASS")
        r.close()
        r = Redis(s.home)
        r.socket.sendall(resp("HELLO", "2", "AUTH", "default", ROOT) + resp("INCR", "orders"))
        while not (line := r.file.readline()).startswith(b":2"):
            assert line and not line.startswith(b"-"), line
        r.close()
        if shutil.which("redis-cli"):
            done = subprocess.run(["redis-cli", "-p", str(s.home), "--no-auth-warning", "-a", ROOT, "INCR", "orders"],
                                  capture_output=True, text=True)
            expect("redis-cli", done.stdout.strip(), "3")


def case_token_rotation():
    flags = config("rotate.yaml", TOKENS)
    with Server(*flags) as s:
        s.ready()
        web, shop = Redis(s.home), Redis(s.home)
        expect("AUTH", (web("AUTH", WEB), shop("AUTH", SHOP)), ("+OK", "+OK"))
        config("rotate.yaml", [("web", NEW, ["*"], []), TOKENS[2]])
        s.reload()
        expect("old token", get(s.snowflake, "/generate", WEB)[0], 401)
        expect("new token", get(s.snowflake, "/generate", NEW)[0], 200)
        expect("removed", web("FIRN.NEXT", "snowflake"), "-NOAUTH Authentication required.")
        expect("kept", shop("INCR", "orders"), ":1")
        expect("again", web("AUTH", NEW), "+OK")
        assert web("FIRN.NEXT", "ulid") and not web("FIRN.NEXT", "ulid").startswith("-")
        with open(path("rotate.yaml"), "w") as f:  # nonsense changes nothing
            f.write("auth: [")
        s.reload()
        s.wait("reload_failed")
        expect("as it was", get(s.snowflake, "/generate", NEW)[0], 200)
        expect("as it was", get(s.snowflake, "/generate")[0], 401)
        web.close()
        shop.close()


def case_rates():
    with Server("--rate-per-client", "1", "--rate-burst", "5") as s:
        s.ready()
        codes = [get(s.snowflake, "/generate")[0] for _ in range(5)]
        expect("burst", codes, [200] * 5)
        for _ in range(20):  # a slow machine may earn one meanwhile
            status, headers, text = get(s.snowflake, "/generate")
            if status == 429:
                break
        expect("too fast", (status, json.loads(text)["type"]), (429, "urn:firn:problem:too-fast"))
        assert 1 <= int(headers["Retry-After"]) <= 2, headers
        r = Redis(s.home)  # the same address, another connection, another protocol
        for _ in range(20):
            answer = r("INCR", "orders")
            if answer.startswith("-"):
                break
        assert answer.startswith("-ERR rate limit: "), answer
        expect("free of charge", [get(s.home, "/healthz")[0] for _ in range(20)], [200] * 20)
        end = time.monotonic() + LIMIT
        while get(s.snowflake, "/generate")[0] != 200:
            assert time.monotonic() < end, "nothing is allowed later"
            time.sleep(0.5)
        r.close()
    with Server("--rate-per-client", "1", "--rate-burst", "3", *config("tokens.yaml", TOKENS)) as s:
        s.ready()
        expect("root", [get(s.snowflake, "/generate", ROOT)[0] for _ in range(4)].count(200) >= 3, True)
        expect("web is another client", get(s.snowflake, "/generate", WEB)[0], 200)


def case_tls_tokens_and_certificates_together():
    with Server(*tls_flags(ca=True), *config("tokens.yaml", TOKENS)) as s:
        c = client("billing")
        s.ready(c)
        expect("certificate alone", get(s.snowflake, "/generate", context=c)[0], 401)
        expect("both", get(s.snowflake, "/generate", ROOT, context=c)[0], 200)
        assert any(e.get("certificate") == "billing" for e in s.log), "the log names the certificate"
        if shutil.which("redis-cli"):
            done = subprocess.run(
                ["redis-cli", "-h", "localhost", "-p", str(s.home), "--tls", "--cacert", path("ca.pem"), "--cert",
                 path("billing.pem"), "--key", path("billing.key"), "--no-auth-warning", "-a", SHOP, "INCR", "orders"],
                capture_output=True, text=True)
            expect("redis-cli --tls", done.stdout.strip(), "1")


def case_mapped_certificates():
    """A certificate administers when auth.admins names it; any other one mints at most."""
    with Server(*tls_flags(ca=True), *config("admins.yaml", TOKENS, "  admins: [ops]\n")) as s:
        ops, billing = client("ops"), client("billing")
        s.ready(ops)
        body = json.dumps({"name": "orders.gone"})
        expect("create", get(s.home, "/v1/sequences", ROOT, ops, "POST", body)[0], 201)
        expect("another certificate", get(s.home, "/v1/sequences/orders.gone", None, billing, "DELETE")[0], 401)
        expect("it, with a token that is no admin's", get(s.home, "/v1/sequences/orders.gone", ROOT, billing, "DELETE")[0], 403)
        expect("a wrong token does not become the certificate",
               get(s.home, "/v1/sequences/orders.gone", "wrong", ops, "DELETE")[0], 401)
        expect("it does not mint without a token", get(s.snowflake, "/generate", None, ops)[0], 401)
        expect("the mapped one", get(s.home, "/v1/sequences/orders.gone", None, ops, "DELETE")[0], 200)
    host = own_address()
    if not host:
        print("*** NO ADDRESS but loopback: certificates of other machines were NOT TESTED")
        return
    with open(path("mapped.yaml"), "w") as f:
        f.write("auth:\n  admins: [ops]\n")
    with Server(*tls_flags(ca=True), "--config", path("mapped.yaml"), "--listen-home", f"{host}:0") as s:
        def away(method, target, cert, body=None):
            k = client(cert).wrap_socket(socket.create_connection((host, s.home), LIMIT), server_hostname="localhost")
            more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
            k.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n{body or ''}".encode())
            status = int(k.recv(4096).split()[1])
            k.close()
            return status
        end = time.monotonic() + LIMIT
        while away("GET", "/readyz", "billing") != 200:
            assert time.monotonic() < end, "never ready"
        expect("create", away("POST", "/v1/sequences", "billing", body), 201)
        expect("a certificate mints", away("GET", "/generate", "billing"), 200)
        expect("and does not administer", away("DELETE", "/v1/sequences/orders.gone", "billing"), 403)
        expect("unless it is mapped", away("DELETE", "/v1/sequences/orders.gone", "ops"), 200)


def firn(*args, **env):
    """The status, output and messages of the command line, which finds its files by variables or options."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FIRN_")}
    done = subprocess.run([os.path.join(PROGRAMS, "firn"), *args], env={**clean, **env}, capture_output=True, text=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


def case_doctor_and_top():
    """The commands that ask servers speak TLS, and check whom they speak to."""
    with Server(*tls_flags()) as s:
        s.ready(client())
        url, by_address, ca = f"https://localhost:{s.home}", f"https://127.0.0.1:{s.home}/", ("--ca", path("ca.pem"))
        status, out, err = firn("doctor", url, by_address, *ca, "--json")
        nodes = json.loads(out)["nodes"]
        expect("both are asked", ([n["up"] for n in nodes], len({n["start"] for n in nodes})), ([True, True], 1))
        status, out, err = firn("doctor", url, *ca)
        assert status == 0 and "0 wrong" in out, (out, err)
        status, out, err = firn("top", url, *ca, "--once", "--json")
        assert status == 0 and json.loads(out)["nodes"][0]["up"], (out, err)
        status, out, err = firn("nodes", "--url", url, *ca, "--json")
        assert status == 0 and json.loads(out), (out, err)
        # As the health check of the image runs it.
        status, out, err = firn("doctor", FIRN_URL=url, FIRN_CA=path("ca.pem"))
        assert status == 0 and url in out, (out, err)
        status, out, err = firn("top", "--once", FIRN_URL=url, FIRN_CA=path("ca.pem"))
        assert status == 0, (out, err)

        status, out, err = firn("doctor", url, "--ca", path("other.pem"))
        assert status == 1 and "TLS" in out and "certificate" in out, (out, err)
        status, out, err = firn("doctor", f"http://localhost:{s.home}")
        assert status == 1 and "down" in out, (out, err)
        status, out, err = firn("doctor", url, "--ca", path("none.pem"))
        assert status == 2 and "--ca=" in err and "No such file" in err, (out, err)
        status, out, err = firn("doctor", url, *ca, "--cert", path("billing.pem"))
        assert status == 2 and "--key" in err, (out, err)
    certificate("elsewhere", "elsewhere", "ca", "DNS:elsewhere.example")
    with Server("--tls-cert", path("elsewhere.pem"), "--tls-key", path("elsewhere.key")) as s:
        status, out, err = firn("doctor", f"https://localhost:{s.home}", *ca)
        assert status == 1 and "TLS" in out, f"the name is checked: {out} {err}"
    with Server(*tls_flags(ca=True)) as s:
        s.ready(client("billing"))
        url = f"https://localhost:{s.home}"
        status, out, err = firn("doctor", url, *ca)
        assert status == 1 and "certificate required" in out, (out, err)
        for own in (("--cert", path("billing.pem"), "--key", path("billing.key")), ()):
            env = {} if own else {"FIRN_CERT": path("billing.pem"), "FIRN_KEY": path("billing.key")}
            status, out, err = firn("doctor", url, *ca, *own, **env)
            assert status == 0, (out, err)
            status, out, err = firn("top", url, *ca, *own, "--once", **env)
            assert status == 0, (out, err)


def case_health_of_a_full_server():
    with Server(*tls_flags(), "--limits-connections", "3") as s:
        s.ready(client())
        c = client()
        crowd = [connect(s.snowflake, c) for _ in range(3)]
        for k in crowd:
            k.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in k.recv(4096)
        end = time.monotonic() + LIMIT
        while get(s.home, "/v1/node", context=c)[0] != 503:
            assert time.monotonic() < end, "never full"
        for target in ("/healthz", "/readyz", "/metrics"):
            expect(target, get(s.home, target, context=c)[0], 200)
        expect("an ID", get(s.home, "/generate", context=c)[0], 503)
        for k in crowd:
            k.close()


def case_names_do_not_count_over_tls():
    with Server(*tls_flags()) as s:
        s.ready(client())
        k = connect(s.snowflake, client())
        k.sendall(b"GET /generate HTTP/1.1\r\nHost: ids.example.com\r\n\r\n")
        assert b" 200 " in k.recv(4096)  # a page with another name would need our certificate
        k.close()


def case_bad_files_stop_the_start():
    for flags in (["--tls-cert", path("server.pem"), "--tls-key", path("next.key")],
                  ["--tls-cert", path("server.key"), "--tls-key", path("server.key")],
                  [*tls_flags(), "--tls-client-ca", path("server.key")]):
        done = subprocess.run([FIRND, "--listen-home", "127.0.0.1:0", "--state-dir", WORK, *flags],
                              capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode != 0 and "cannot be used" in done.stderr, done.stderr


def case_idle_connections_are_cheap():
    n = 300
    with Server(*tls_flags()) as s:
        s.ready(client())
        c = client()
        before = s.memory_kib()
        idle = []
        for _ in range(n):
            k = connect(s.snowflake, c)
            k.sendall(b"GET /generate?n=2000 HTTP/1.1\r\nHost: x\r\n\r\n")  # large buffers, once
            text = k.recv(65536)
            while not text.endswith(b"]}\n"):
                text += k.recv(65536)
            idle.append(k)
        each = (s.memory_kib() - before) / n
        print(f"     an idle TLS connection costs {each:.1f} KiB")
        if SANITIZED:
            print("     a sanitizer is built in, which keeps freed memory: that is not asserted")
        else:
            assert each < 40, f"{each:.1f} KiB"
        for k in idle:
            k.close()


def main():
    authority("ca")
    authority("other")
    for file, name, by in (("server", "localhost", "ca"), ("next", "localhost", "ca"), ("billing", "billing", "ca"), ("ops", "ops", "ca"),
                           ("stranger", "billing", "other")):
        certificate(file, name, by)
    passed = failed = 0
    for name, case in [(k, v) for k, v in globals().items() if k.startswith("case_") and ONLY in k]:
        try:
            case()
            passed += 1
            print(f"ok   {name[5:]}", flush=True)
        except Exception as e:
            failed += 1
            place = e.__traceback__
            while place.tb_next and place.tb_next.tb_frame.f_code.co_filename == __file__:
                place = place.tb_next
            print(f"FAIL {name[5:]}: line {place.tb_lineno}: {type(e).__name__}: {e}", flush=True)
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
