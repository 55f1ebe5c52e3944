#!/usr/bin/env python3
"""
Real clients against a real firnd: what people point at it must just work.
curl, jq, redis-cli, redis-benchmark, wrk, hiredis, redis-py, ioredis, node-redis, axios, undici, HTTP caches, the
OpenAPI linter and a reader of the Prometheus format. A client that is not there is a failure.
"""
import collections
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
from engines.ports import free_port  # noqa: E402
from firnd import LIMIT, Firnd, Resp, Test, get, wait_for  # noqa: E402

NODE = os.path.abspath(os.path.join(HERE, "..", "..", "build-test", "clients"))  # never in the tree


def run(*args, stdin=None, code=0, limit=LIMIT):
    """A program's output, stdout and stderr. Another exit status than `code` is an error."""
    p = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, timeout=limit, check=False)
    if p.returncode != code:
        what = " ".join(map(str, args))[:120]
        raise ValueError(f"{what} ended with {p.returncode}: {(p.stderr + p.stdout)[-500:]!r}")
    return p.stdout, p.stderr.decode(errors="replace")


def curl(*args, **more):
    return run("curl", "-sS", "--max-time", 30, *args, **more)


def end(t, f):
    """A clean end, so that the leak checker has its say too."""
    t.equal(f.stop(), 0, "exit status after SIGTERM")


def rising(numbers):
    return all(a < b for a, b in zip(numbers, numbers[1:]))


def head_of(text):
    """Status line and fields (lower case) of the last head in what curl -i printed."""
    blocks = [b for b in text.split("\r\n\r\n") if b.startswith("HTTP/")]
    lines = blocks[-1].split("\r\n")
    return lines[0], {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}


# --- HTTP ---


def curl_formats(t):
    f = Firnd(t, t.steady("curl")).wait_ready()
    snow, ticket = f"http://{f.snowflake}/generate", f"http://{f.ticket}/generate"

    # Five URLs on one connection: there, IDs rise. Connections may meet different threads of the server.
    ids = [json.loads(line)["id"] for line in curl(*[snow] * 5)[0].splitlines()]
    t.check(len(ids) == 5 and all(i.isdigit() for i in ids) and rising([int(i) for i in ids]), f"Snowflake IDs: {ids}")
    t.equal([json.loads(curl(ticket)[0])["id"] for _ in range(3)], ["100001", "100002", "100003"], "tickets")
    t.equal(json.loads(curl(ticket + "?n=3")[0]), {"ids": ["100004", "100005", "100006"]}, "tickets by three")
    t.equal(curl("-H", "Accept: text/plain", ticket)[0], b"100007\n", "a ticket as text")
    t.equal(curl("-H", "Accept: text/plain", ticket + "?n=2")[0], b"100008\n100009\n", "tickets as text")

    raw = curl("-H", "Accept: application/octet-stream", snow + "?n=100000")[0]
    ids = [int.from_bytes(raw[i:i + 8], "big") for i in range(0, len(raw), 8)]
    t.equal(len(ids), 100000, "IDs as integers")
    t.check(rising(ids), "IDs as integers rise")

    for kind in ("uuidv7", "ulid", "ksuid", "nanoid", "objectid", "xid", "tsid", "cuid2", "uuidv4"):
        answer = json.loads(curl(f"{snow}?kind={kind}&n=50")[0])
        t.check(len(set(answer.get("ids", ()))) == 50, f"50 of kind {kind}: {answer}"[:200])

    # jq 1.6 reads numbers as doubles: IDs must come through it unharmed.
    out = run("jq", "-r", ".ids[]", stdin=curl(snow + "?n=1000")[0])[0].split()
    t.check(len(set(out)) == 1000 and rising([int(i) for i in out]), "1000 IDs through jq stay distinct and rise")
    run("jq", "-e", '.ids | length == 5 and all(type == "string")', stdin=curl(ticket + "?n=5")[0])
    run("jq", "-e", ".ready and (.slot | type) == \"number\"", stdin=curl(f"http://{f.home}/v1/node")[0])
    end(t, f)


def curl_protocol(t):
    f = Firnd(t, t.steady("curl")).wait_ready()
    snow, ticket = f"http://{f.snowflake}/generate", f"http://{f.ticket}/generate"

    for url, status in ((snow, 200), (ticket, 200), (snow + "?n=0", 400), (snow + "?kind=nope", 404),
                        (f"http://{f.home}/generat", 404)):
        out, _ = curl("-i", url)
        line, fields = head_of(out.decode())
        t.check(f" {status} " in line, f"{url}: {line}")
        t.equal(fields.get("cache-control"), "no-store", f"Cache-Control of {url}")
        want = "application/json" if status == 200 else "application/problem+json"
        t.equal(fields.get("content-type"), want, f"Content-Type of {url}")

    out, _ = curl("-I", snow)
    line, fields = head_of(out.decode())
    t.check(" 200 " in line and int(fields["content-length"]) > 10 and out.endswith(b"\r\n\r\n"),
            f"HEAD has a head and no body: {out!r}")
    t.check(" 200 " in head_of(curl("-I", f"http://{f.home}/healthz")[0].decode())[0], "HEAD /healthz")

    t.check(b'"id"' in curl("-X", "POST", snow)[0], "POST without a body")
    t.check(b'"id"' in curl("-d", "", snow)[0], "POST with an empty body")
    t.check(b'"ids"' in curl("-d", "", snow + "?n=2")[0], "POST with n=")

    spec = b'{"name":"orders","mode":"gapless","start":"500"}'
    out, _ = curl("-i", "-H", "Content-Type: application/json", "-H", "Transfer-Encoding: chunked",
                  "--data-binary", "@-", f"http://{f.home}/v1/sequences", stdin=spec)
    t.check(" 201 " in head_of(out.decode())[0], f"a chunked body makes a sequence: {out[:300]!r}")
    t.equal(json.loads(curl(ticket + "?seq=orders")[0])["id"], "500", "its first number")

    _, talk = curl("-v", "-H", "Expect: 100-continue", "-H", "Content-Type: application/json", "--data-binary", "@-",
                   f"http://{f.home}/v1/sequences", stdin=b'{"name":"expected"}')
    t.check("HTTP/1.1 100 Continue" in talk and "HTTP/1.1 201" in talk, f"Expect: 100-continue: {talk[-600:]}")

    out, talk = curl("-v", "--http1.0", snow)
    t.check(b'"id"' in out and "Closing connection" in talk, f"HTTP/1.0: {talk[-400:]}")
    out, talk = curl("-v", "--http1.0", "-H", "Connection: keep-alive", snow, snow)
    t.check(out.count(b'"id"') == 2 and talk.lower().count("re-using existing connection") == 1,
            f"HTTP/1.0 with keep-alive: {talk[-600:]}")
    out, talk = curl("-v", snow, ticket.replace(f.ticket, f.snowflake), f"http://{f.snowflake}/healthz")
    t.equal(talk.lower().count("re-using existing connection"), 2, "connections used again")
    out, talk = curl("-v", "-H", "Connection: close", snow, snow)
    t.check(out.count(b'"id"') == 2 and "re-using existing" not in talk.lower(), "Connection: close closes")
    t.check(b'"id"' in curl("--http2", snow)[0], "an offer of HTTP/2 is passed over")
    t.check(b'"id"' in curl("--compressed", "-H", "Accept: */*", snow)[0], "Accept-Encoding is passed over")
    t.check(b'"id"' in curl("--request-target", snow, snow)[0], "the absolute form of the target")

    # A body that is too long is refused before it is read; curl must see the status, not a reset.
    big = curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json", "--data-binary", "@-",
               f"http://{f.home}/v1/sequences", stdin=b"x" * 4_000_000)[0]
    t.equal(big, b"413", "4 MB of body")
    end(t, f)


def wrk(t):
    f = Firnd(t, t.steady("wrk")).wait_ready()
    for at in (f"{f.snowflake}/generate", f"{f.ticket}/generate", f"{f.snowflake}/generate?n=100"):
        url = f"http://{at}"
        out = run("wrk", "-t", 2, "-c", 20, "-d", "1s", "--timeout", "30s", url)[0].decode()
        done = re.search(r"(\d+) requests in", out)
        t.check(done and int(done[1]) > 20 and "Non-2xx" not in out and "Socket errors" not in out, f"wrk {url}: {out}")
    end(t, f)


# --- the Redis protocol ---


def redis_cli(t):
    f = Firnd(t, t.steady("redis-cli")).wait_ready()
    host, port = f.ticket.split(":")

    def cli(*args, **more):
        return run("redis-cli", "-h", host, "-p", port, *args, **more)[0].decode().strip()

    t.equal(cli("ping"), "PONG", "PING")
    t.equal(cli("ping", "a b"), "a b", "PING with an argument")
    t.equal([cli("incr", "visits") for _ in range(3)], ["1", "2", "3"], "INCR")
    t.equal(cli("incrby", "visits", "10"), "13", "INCRBY")
    t.equal([cli(word, "visits") for word in ("get", "get", "incr")], ["14"] * 3, "GET takes nothing")
    t.equal(cli("get", "never-used"), "", "GET of a sequence that is not there")
    t.equal(cli("incr", "default"), "100001", "the sequence default")
    t.equal(cli("firn.next", "ticket"), "100002", "FIRN.NEXT ticket")
    t.equal(cli("firn.next", "ticket", "count", "3").split(), ["100003", "100004", "100005"], "FIRN.NEXT ticket COUNT")
    ids = [int(i) for i in cli("firn.next", "snowflake", "count", "1000").split()]
    t.check(len(ids) == 1000 and rising(ids), "FIRN.NEXT snowflake COUNT 1000")
    t.check(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", cli("firn.next", "uuidv7")),
            "FIRN.NEXT uuidv7")
    t.check("firn" in cli("firn.inspect", str(ids[0])), "FIRN.INSPECT")
    t.check("proto 3" in cli("-3", "hello", "3").replace("proto=>", "proto "), "HELLO 3")
    t.check("firn_version:" in cli("info"), "INFO")
    t.equal(cli("-n", "0", "echo", "hi"), "hi", "ECHO in database 0")
    t.check("ERR unknown command 'set'" in cli("set", "a", "b"), "an unknown command")
    t.check("wrong number of arguments for 'incr'" in cli("incr"), "a missing argument")
    t.check("out of range" in cli("select", "3"), "another database")
    t.equal(cli("-r", "5", "incr", "again").split(), ["1", "2", "3", "4", "5"], "-r 5")
    t.equal(cli(stdin=b"incr typed\nincrby typed 4\nquit\n").split(), ["1", "5"], "commands from standard input")
    count = int(cli("command", "count"))
    t.equal(len(cli("command", "list").split()), count, "COMMAND LIST")
    t.check(count >= 15 and "incrby" in cli("command", "docs"), "COMMAND DOCS")

    # The same over RESP3, and both names of a connection.
    t.equal(cli("-3", "incr", "visits"), "15", "INCR over RESP3")
    t.equal(cli("-3", stdin=b"client setname shop\nclient getname\n").split(), ["OK", "shop"], "CLIENT SETNAME")
    t.equal(cli(stdin=b"hello 3 setname till\nclient getname\n").split()[-1], "till", "HELLO SETNAME")

    for seq in ("piped", "default"):  # a range and a gapless sequence
        before = int(cli("get", seq) or 1)
        out = cli("--pipe", stdin=f"*2\r\n$4\r\nINCR\r\n${len(seq)}\r\n{seq}\r\n".encode() * 100_000)
        t.check("errors: 0, replies: 100000" in out, f"--pipe of 100,000 INCR {seq}: {out}")
        t.equal(int(cli("get", seq)), before + 100_000, f"{seq} after the pipe")
    end(t, f)


def redis_benchmark(t):
    f = Firnd(t, t.steady("redis-benchmark")).wait_ready()
    host, port = f.ticket.split(":")

    def bench(*args):
        out, err = run("redis-benchmark", "-h", host, "-p", port, "-n", 20000, "-c", 20, "-q", *args)
        text = out.decode(errors="replace")
        t.check("requests per second" in text and "rror" not in text + err and "WARN" not in text + err,
                f"redis-benchmark {args}: {text} {err}"[-600:])

    bench("-t", "incr")
    bench("-t", "incr", "-P", 16)
    bench("-t", "ping")
    bench("-P", 16, "firn.next", "snowflake")
    bench("firn.next", "ticket")
    bench("-3", "-P", 4, "incr", "default")
    taken = Resp(f.ticket)
    t.equal(taken.do("GET", "counter:__rand_int__"), "40001", "each INCR took one number")
    t.equal(taken.do("GET", "default"), "140001", "each ticket was taken once")
    taken.close()
    end(t, f)


def hiredis(t):
    f = Firnd(t, t.steady("hiredis")).wait_ready()
    program = os.path.join(os.path.dirname(t.bin), "tests", "client_hiredis")
    if t.check(os.access(program, os.X_OK), "the hiredis client is built: is libhiredis-dev there?"):
        t.equal(run(program, f.ticket.split(":")[1])[0], b"hiredis: as expected\n", "hiredis")
    end(t, f)


def redis_py(t):
    """Debian's redis-py, with Debian's Python, whichever runs this."""
    f = Firnd(t, t.steady("redis-py")).wait_ready()
    out = run("/usr/bin/python3", "-B", os.path.join(HERE, "clients", "redis_py.py"), *f.ticket.split(":"))
    t.equal(out[0], b"redis-py: as expected\n", "redis-py: is python3-redis there?")
    end(t, f)


# --- node ---


def npm(t):
    """Installs the pinned packages, once for all builds."""
    os.makedirs(NODE, exist_ok=True)
    with open(os.path.join(NODE, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other configurations are tested at the same time
        npm_install(t)


def npm_install(t):
    for name in ("package.json", "clients.mjs"):
        shutil.copy(os.path.join(HERE, "clients", name), NODE)
    stamp = os.path.join(NODE, "node_modules", ".firn-installed")
    with open(os.path.join(NODE, "package.json"), "rb") as p:
        wanted = p.read()
    if os.path.exists(stamp) and open(stamp, "rb").read() == wanted:
        return
    p = subprocess.run(["npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund",
                        "--prefer-offline", "--loglevel=error"],
                       cwd=NODE, capture_output=True, timeout=300, check=False)
    if t.check(p.returncode == 0, f"npm installs the clients: {(p.stdout + p.stderr).decode()[-600:]}"):
        with open(stamp, "wb") as s:
            s.write(wanted)


def node(t):
    """clients.mjs prints "ok ..." or "FAILED ..." lines, and "restart" when it wants firnd to come again."""
    npm(t)
    f = Firnd(t, t.steady("node")).wait_ready()
    same = [f"--listen-{port}={getattr(f, port)}" for port in ("home", "snowflake", "ticket")]
    p = subprocess.Popen(["node", "clients.mjs", f.home, f.snowflake, f.ticket], cwd=NODE, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    watch = threading.Timer(2 * LIMIT, p.kill)
    watch.start()
    last = ""
    for line in p.stdout:
        last = line.strip()
        if last == "restart":
            f.kill()
            f = Firnd(t, t.steady("node"), *same).wait_ready()
            p.stdin.write("done\n")
            p.stdin.flush()
        elif last.startswith("ok "):
            t.check(True, last)
        else:
            t.check(False, last)
    watch.cancel()
    t.equal((p.wait(), last), (0, "ok all done"), "the end of clients.mjs")
    end(t, f)


def openapi(t):
    npm(t)
    f = Firnd(t, t.steady("openapi")).wait_ready()
    path = os.path.join(t.dir, "openapi.json")
    curl("-o", path, f"http://{f.home}/openapi.json")
    p = subprocess.run([os.path.join(NODE, "node_modules", ".bin", "redocly"), "lint", path], cwd=t.dir,
                       capture_output=True, timeout=LIMIT, check=False,
                       env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"})
    said = (p.stdout + p.stderr).decode()
    t.check(p.returncode == 0 and "Your API description is valid" in said, f"redocly lint: {said[-2000:]}")
    t.check("warning" not in re.sub(r"(?i)deprecation warning", "", said), f"redocly has no warnings: {said[-2000:]}")

    # What it says is there is there: every path answers a GET or POST with something else than 404 and 405.
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    t.equal(doc["openapi"][:3], "3.1", "the version of OpenAPI")
    values = {"{kind}": "ulid", "{name}": "default", "{id}": "777380333896075264", "{lease}": "0" * 31 + "1",
              "{file}": "dashboard.js"}
    for route, methods in doc["paths"].items():
        for method in set(methods) & {"get", "post"}:
            url = f"http://{f.home}" + re.sub(r"\{\w+\}", lambda m: values[m[0]], route)
            code = curl("-o", "/dev/null", "-w", "%{http_code}", "-X", method.upper(), url)[0].decode()
            t.check(code in methods[method]["responses"], f"{method} {route} answers {code}, which is described")
            # This one is in no cluster, and has lent no slot.
            may_lack = route == "/v1/cluster" or "{lease}" in route
            missing = ("405", "500") if may_lack else ("404", "405", "500")
            t.check(code not in missing, f"{method} {route} answers {code}")
    end(t, f)


# --- caches ---


def take_through(t, name, address, firnd):
    """200 IDs through a cache, from several clients at once: none comes twice."""
    first = get(address, "/control")[1]
    t.equal([get(address, "/control")[1] for _ in range(5)], [first] * 5, f"{name} caches what may be cached")
    for path in ("/generate", "/generate?kind=ulid", f"/v1/ids/snowflake?n=1", "/v1/sequences/default/next"):
        got, lock = collections.Counter(), threading.Lock()

        def take(path=path, got=got):
            for _ in range(20):
                status, body = get(address, path)
                with lock:
                    got[body["id"] if status == 200 and "id" in body else str(body)] += 1
        threads = [threading.Thread(target=take) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        t.equal((len(got), sum(got.values())), (200, 200), f"{name} {path}: distinct, all; {got.most_common(1)}")
    head = run("curl", "-sS", "--max-time", 30, "-I", f"http://{address}/generate")[0].decode()
    t.check("no-store" in head, f"{name} passes Cache-Control on: {head}")
    t.equal(get(address, "/generate?n=0")[0], 400, f"{name} passes errors on")
    t.equal(get(firnd.snowflake, "/healthz")[0], 200, "firnd behind the cache")


def start(t, address, *args):
    log = open(os.path.join(t.dir, os.path.basename(args[0]) + ".log"), "wb")
    p = subprocess.Popen([str(a) for a in args], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def there():
        if p.poll() is not None:
            raise ValueError(f"{args[0]} ended with {p.returncode}: {open(log.name, 'rb').read()[-800:]!r}")
        try:
            socket.create_connection(address.split(":"), timeout=1).close()
            return True
        except OSError:
            return False
    wait_for(f"{args[0]} to listen", there)
    return p


def stop(t, p, name):
    p.send_signal(signal.SIGTERM)
    try:
        p.wait(LIMIT)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        t.check(False, f"{name} ends")


def nginx_conf(t, firnd, address, control):
    """A cache that would gladly keep everything for an hour, and beside it a page that may be kept."""
    path = os.path.join(t.dir, "nginx.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"""
daemon off; master_process off; pid {t.dir}/nginx.pid; error_log {t.dir}/nginx-error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {t.dir}/ng-body; proxy_temp_path {t.dir}/ng-proxy; fastcgi_temp_path {t.dir}/ng-f;
    uwsgi_temp_path {t.dir}/ng-u; scgi_temp_path {t.dir}/ng-s;
    proxy_cache_path {t.dir}/ng-cache keys_zone=ids:1m;
    upstream firnd {{ server {firnd.snowflake}; keepalive 8; }}
    server {{
        listen {address};
        proxy_cache ids; proxy_cache_valid any 1h;
        proxy_http_version 1.1; proxy_set_header Connection "";
        location / {{ proxy_pass http://firnd; }}
        location = /control {{ proxy_pass http://{control}; }}
    }}
    server {{ listen {control}; location / {{ return 200 "{{\\"id\\":\\"$request_id\\"}}"; }} }}
}}
""")
    return path


def cache_nginx(t):
    f = Firnd(t, t.steady("nginx")).wait_ready()
    address, control = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    p = start(t, address, shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or "nginx",
              "-e", f"{t.dir}/nginx-error.log", "-p", t.dir, "-c", nginx_conf(t, f, address, control))
    try:
        take_through(t, "nginx", address, f)
    finally:
        stop(t, p, "nginx")
    end(t, f)


def cache_varnish(t):
    f = Firnd(t, t.steady("varnish")).wait_ready()
    address, plain, control = (f"127.0.0.1:{free_port()}" for _ in range(3))
    vcl = os.path.join(t.dir, "default.vcl")

    def backend(name, at):
        host, port = at.split(":")
        return f'backend {name} {{ .host = "{host}"; .port = "{port}"; }}\n'
    with open(vcl, "w", encoding="utf-8") as file:  # what it does not say is Varnish's built-in VCL
        file.write("vcl 4.1;\n" + backend("default", f.snowflake) + backend("control", control) +
                   'sub vcl_recv { if (req.url == "/control") { set req.backend_hint = control; } }\n')
    nginx = start(t, control, shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or "nginx",
                  "-e", f"{t.dir}/nginx-error.log", "-p", t.dir, "-c", nginx_conf(t, f, plain, control))
    try:
        p = start(t, address, shutil.which("varnishd", path=os.environ["PATH"] + ":/usr/sbin") or "varnishd", "-F",
                  "-j", "none", "-n", os.path.join(t.dir, "varnish"), "-a", address, "-f", vcl, "-s", "malloc,16m")
        try:
            take_through(t, "Varnish", address, f)
        finally:
            stop(t, p, "varnishd")
    finally:
        stop(t, nginx, "nginx")
    end(t, f)


# --- Prometheus ---

METRIC = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)( -?\d+)?")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')


def prometheus_errors(text):
    """What is wrong with a page in the text format 0.0.4, by its specification and promtool's rules."""
    wrong, helped, typed, series, done, current = [], {}, {}, set(), set(), None
    if not text.endswith("\n"):
        wrong.append("the last line has no end")
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, *rest = line[2:].split(" ", 2)
            table = {"HELP": helped, "TYPE": typed}.get(word)
            if table is None or not rest or not rest[0].strip():
                wrong.append(f"neither HELP nor TYPE: {line}")
                continue
            if name in table:
                wrong.append(f"{word} twice: {name}")
            if word == "TYPE" and (name in done or name not in helped):
                wrong.append(f"TYPE after its samples, or before HELP: {name}")
            table[name] = rest[0]
            if name != current and name in done:
                wrong.append(f"the family is not in one piece: {name}")
            current = name
            continue
        m = METRIC.fullmatch(line)
        if not m:
            wrong.append(f"not a sample: {line}")
            continue
        name, labels, value, _ = m.groups()
        family = name
        if typed.get(re.sub(r"_(bucket|sum|count)$", "", name)) in ("histogram", "summary"):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
        if family != current:
            wrong.append(f"a sample away from its family: {line}")
        done.add(family)
        pairs = LABEL.findall(labels or "")
        if labels is not None and (LABEL.sub("", labels) or not pairs):
            wrong.append(f"malformed labels: {line}")
        if len({k for k, _ in pairs}) != len(pairs):
            wrong.append(f"a label twice: {line}")
        key = (name, tuple(sorted(pairs)))
        if key in series:
            wrong.append(f"the series twice: {line}")
        series.add(key)
        if not re.fullmatch(r"[+-]?(Inf|NaN|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)", value):
            wrong.append(f"not a number: {line}")
        elif typed.get(family) == "counter" and (not float(value) >= 0 or not name.endswith("_total")):
            wrong.append(f"a counter is negative, or is not called _total: {line}")
        elif typed.get(family) == "gauge" and name.endswith("_total"):
            wrong.append(f"a gauge is called _total: {line}")
        if typed.get(family) not in ("counter", "gauge", "histogram", "summary", "untyped"):
            wrong.append(f"no TYPE: {line}")
    return wrong + [f"no samples: {n}" for n in typed if n not in done]


def openmetrics_errors(text):
    """What is wrong with a page of OpenMetrics 1.0: its end, families in one piece, suffixes by type, units, histograms."""
    suffixes = {"counter": {"_total", "_created"}, "gauge": {""}, "info": {"_info"},
                "histogram": {"_bucket", "_sum", "_count", "_created"}}
    wrong, families, name, kind, buckets = [], {}, None, None, {}
    if not text.endswith("\n# EOF\n") or text.count("# EOF") != 1:
        wrong.append("it does not end with # EOF")
    for line in text.removesuffix("# EOF\n").splitlines():
        meta = re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\n\"\\\\]+)", line)
        sample = METRIC.fullmatch(line)
        if meta:
            if meta[2] != name:
                if meta[2] in families:
                    wrong.append(f"the family is not in one piece: {line}")
                name, kind = meta[2], "unknown"
            found = families.setdefault(name, {"samples": set()})
            if meta[1] in found or found["samples"]:
                wrong.append(f"twice, or behind samples: {line}")
            found[meta[1]] = meta[3]
            kind = meta[3] if meta[1] == "TYPE" else kind
            if meta[1] == "UNIT" and not name.endswith("_" + meta[3]):
                wrong.append(f"the unit does not end the name: {line}")
            if meta[1] == "TYPE" and (kind not in suffixes or kind == "counter" and name.endswith("_total")):
                wrong.append(f"an unknown type, or a counter's family called _total: {line}")
        elif not sample:
            wrong.append(f"neither metadata nor a sample: {line}")
        elif name is None or not sample[1].startswith(name) or sample[1][len(name):] not in suffixes.get(kind, ()):
            wrong.append(f"no sample of {name}, a {kind}: {line}")
        elif (sample[1], sample[2]) in families[name]["samples"]:
            wrong.append(f"the series twice: {line}")
        else:
            families[name]["samples"].add((sample[1], sample[2]))
            labels, value = dict(LABEL.findall(sample[2] or "")), float(sample[3])
            if sample[1] == name + "_bucket":
                edge = float(labels.pop("le"))
                buckets.setdefault((name, *labels.items()), []).append((edge, value))
            elif kind == "histogram" and sample[1] == name + "_count":
                seen = buckets.get((name, *labels.items())) or [(0, -1)]
                if seen != sorted(seen) or [n for _, n in seen] != sorted(n for _, n in seen) or seen[-1] != (float("inf"), value):
                    wrong.append(f"buckets do not rise to the count: {line}")
    return wrong + [f"no type or no sample: {n}" for n, m in families.items() if "TYPE" not in m or not m["samples"]]


def prometheus(t):
    for bad in ("# TYPE a counter\na_total 1\n", "# TYPE a_total counter\na_total 1\n# EOF\n",
                "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", "# TYPE a counter\na 1\n# EOF\n"):
        t.check(openmetrics_errors(bad), f"the reader of OpenMetrics sees what is wrong with {bad!r}")
    bad = "# HELP a x\n# TYPE a counter\na 1\na 1\nb{c=\"d} 2\n"
    t.check(len(prometheus_errors(bad)) >= 3, "the reader sees what is wrong")
    f = Firnd(t, t.steady("prometheus")).wait_ready()
    out, _ = curl("-i", f"http://{f.home}/metrics")
    line, fields = head_of(out.decode())
    t.check(" 200 " in line and fields["content-type"].startswith("text/plain; version=0.0.4"), f"{line} {fields}")
    for _ in range(3):
        curl(f"http://{f.ticket}/generate?n=7")
    curl(f"http://{f.home}/nowhere")
    text = curl(f"http://{f.home}/metrics")[0].decode()
    t.equal(prometheus_errors(text), [], "what is wrong with /metrics")
    t.check('firn_ids_total{kind="ticket"} 21\n' in text, "21 tickets are counted")
    out, _ = curl("-i", "-H", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5", f"http://{f.home}/metrics")
    head, text = out.decode().split("\r\n\r\n", 1)
    t.equal(head_of(head + "\r\n\r\n")[1]["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8", "its type")
    t.equal(openmetrics_errors(text), [], "what is wrong with /metrics as OpenMetrics")
    t.check('# TYPE firn_ids counter\nfirn_ids_total{kind="' in text, "a counter's family has no _total")
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=curl(f"http://{f.home}/metrics")[0],
                                 capture_output=True, check=False, timeout=LIMIT)
        t.equal((checked.returncode, checked.stdout + checked.stderr), (0, b""), "promtool check metrics")
    t.check(re.search(r'firn_store_operations_total\{op="write",result="ok"\} [1-9]', text), "writes to the store are counted")
    t.check("firn_raft_" not in text, "no cluster, no numbers of one")
    end(t, f)


def compare(t):
    f = Firnd(t, t.steady("compare")).wait_ready()
    out = run(os.path.join(t.bin, "firn"), "compare", "--rounds", 20, "--snowflake", f"http://{f.snowflake}/generate",
              "--ticket", f"http://{f.ticket}/generate", limit=2 * LIMIT)[0].decode().splitlines()
    t.equal(out[0], "Starting ID generation client...", "the first line")
    t.equal(out[1], "Generating IDs from Snowflake and Ticket Server:", "the second")
    rounds = [re.fullmatch(r"Snowflake ID: (\d+), Ticket ID: (\d+)", line) for line in out[2:22]]
    if t.check(len(rounds) == 20 and all(rounds), f"a line a round: {out[2:22]}"):
        t.check(rising([int(m[1]) for m in rounds]), "Snowflake IDs rise")
        t.equal([int(m[2]) for m in rounds], list(range(100001, 100021)), "tickets")
    t.equal(out[22], "ID generation completed.", "the end")
    t.check(len(out) > 24, f"the table: {out[23:]}")
    p = subprocess.run(["sh", "-c", '"$0" compare --rounds 2000 --snowflake "$1" --ticket "$2" | head -n 1',
                        os.path.join(t.bin, "firn"), f"http://{f.snowflake}/generate", f"http://{f.ticket}/generate"],
                       capture_output=True, timeout=LIMIT, check=False)
    t.equal((p.stdout.decode().count("\n"), p.stderr), (1, b""), "compare | head says nothing about its pipe")
    end(t, f)


def main():
    if os.access("/dev/shm", os.W_OK):  # other people's disk traffic is not what is tested here
        tempfile.tempdir = "/dev/shm"
    with Test("clients") as t:
        for part in (curl_formats, curl_protocol, wrk, redis_cli, redis_benchmark, hiredis, redis_py, node, openapi, cache_nginx,
                     cache_varnish, prometheus, compare):
            t.section(part)


main()
