#!/usr/bin/env python3
"""
The tools that measure, compare, advise, watch and audit, against real servers: firn bench URL, compare, choose,
top, verify --follow and audit.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from engines.postgres import Postgres  # noqa: E402
from firnd import BAD_WORDS, LIMIT, Firnd, Test, get, wait_for  # noqa: E402


def sanitized(t):
    """Slow builds do what needs their eyes, and say what they leave to the others."""
    return bool(re.search("asan|tsan", t.bin))


class Ran:
    """One firn that has ended."""

    def __init__(self, t, *args, stdin=""):
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
        p = subprocess.run([os.path.join(t.bin, "firn"), *args], input=stdin, capture_output=True, text=True,
                           timeout=LIMIT * 2, cwd=t.dir, env=env, check=False)
        self.status, self.out, self.err = p.returncode, p.stdout, p.stderr
        for word in BAD_WORDS:
            t.check(word not in self.err, f"firn {' '.join(args)} is free of '{word}': {self.err[:3000]}")

    def json(self):
        return json.loads(self.out)


def firn(t, status, *args, stdin=""):
    r = Ran(t, *args, stdin=stdin)
    t.check(r.status == status, f"firn {' '.join(args)} ends with {r.status}, should be {status}: {r.out[-400:]} {r.err[-600:]}")
    return r


# --- firn bench URL ---


def bench(t):
    a, b = Firnd(t, t.steady("bench-a")), Firnd(t, t.steady("bench-b"))
    a.wait_ready()
    b.wait_ready()
    snowflake, incr = f"http://{a.snowflake}/generate", f"redis://{a.ticket}/INCR/orders"
    r = firn(t, 0, "bench", snowflake, "--requests", "500", "--connections", "5", "--save", "a.json", "--json").json()
    t.equal((r["requests"], r["errors"], r["check"]["ids"], r["check"]["distinct"], r["check"]["exact"]),
            (500, 0, 500, 500, True), "a closed loop: answers, errors, IDs, distinct, exact")
    latency = r["latency_ns"]
    t.check(0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p99.9"] <= latency["max"], f"percentiles rise: {latency}")
    with open(os.path.join(t.dir, "a.json"), encoding="utf-8") as f:
        t.equal(json.load(f), r, "what --save keeps")

    r = firn(t, 0, "bench", incr, "--rate", "200", "--seconds", "1", "--connections", "4", "--save", "b.json", "--json").json()
    t.check(0 < r["requests"] <= r["check"]["ids"] <= 200, f"an open loop sends what is due, and no more: {r}")
    t.equal((r["rate"], r["command"], r["check"]["rising"]), (200, "INCR orders", True), "rate, command, order")

    # One store each: the two give out the same tickets at once.
    tickets = [f"redis://{f.ticket}/INCR/twice" for f in (a, b)]
    r = firn(t, 1, "bench", *tickets, "--requests", "100", "--connections", "2", "--json")
    t.check("duplicate IDs" in r.err and r.json()["check"]["distinct"] < 100, f"the same number from two servers is found: {r.err}")
    t.check(all(s["requests"] > 0 for s in r.json()["targets"]), f"both are asked: {r.out}")
    r = firn(t, 0, "bench", f"http://{a.snowflake}/generate?kind=uuidv4", "--requests", "100", "--json").json()
    t.equal((r["check"]["distinct"], r["check"]["rising"]), (100, False), "texts are compared, too, and need not rise")
    r = firn(t, 0, "bench", snowflake + "?n=1000", "--requests", "200", "--memory", "1")
    t.check("incomplete" in r.err and "IDs not checked" in r.out, f"says when memory is full: {r.err}")

    r = firn(t, 0, "bench", "--compare", "a.json", "b.json")
    t.check("the loads differ" in r.err and " x" in r.out and "p99.9" in r.out, f"two runs as ratios: {r.out} {r.err}")
    r = firn(t, 0, "bench", "--compare", "a.json", "a.json", "--json").json()
    t.equal((r["per_second"]["ratio"], r["latency_ns.p99"]["ratio"]), ("1.0000", "1.0000"), "a run is as fast as itself")

    for args, says in ((("bench", "--compare", "a.json"), "two files"), (("bench", "--compare", "a.json", "none.json"), "No such file"),
                       (("bench", "http://192.0.2.1/"), "--allow-remote"), (("bench", "load", "--http", "http://192.0.2.1/"), "--allow-remote"), (("bench", "ftp://127.0.0.1/"), "unknown target"), (("bench",), "missing target"),
                       (("bench", f"redis://u:p@{a.ticket}/"), "password"), (("bench", "http://127.0.0.1:1/"), "check that the server is running")):
        r = firn(t, 2, *args)
        t.check(says in r.err, f"firn {' '.join(args)} says {says}: {r.err}")
    # An address that is not loopback, and reaches this machine all the same.
    everywhere = f"http://0.0.0.0:{a.snowflake.rsplit(':', 1)[1]}/generate"
    r = firn(t, 2, "bench", everywhere, "--requests", "10")
    t.check("--allow-remote" in r.err, f"load on another machine must be asked for: {r.err}")
    firn(t, 0, "bench", everywhere, "--requests", "10", "--allow-remote")
    r = firn(t, 1, "bench", f"redis://{a.ticket}/PING", "--requests", "10")
    t.check("--no-check" in r.err, f"answers without IDs: {r.err}")
    firn(t, 0, "bench", f"redis://{a.ticket}/PING", "--requests", "10", "--no-check")
    # Through libfirn-client, if it is part of this tree; otherwise it says so.
    r = Ran(t, "bench", f"firn://{a.snowflake}/?mode=remote", "--requests", "200", "--threads", "2", "--json")
    t.check((r.status == 2 and "libfirn-client" in r.err) or (r.status == 0 and r.json()["check"]["distinct"] == 200), f"firn://: {r.status} {r.out} {r.err}")


# --- firn compare ---


def mission_lines(t, lines, rounds):
    t.equal(lines[:2], ["Starting ID generation client...", "Generating IDs from Snowflake and Ticket Server:"], "the first lines")
    ids = [re.fullmatch(r"Snowflake ID: (\d+), Ticket ID: (\d+)", line) for line in lines[2:2 + rounds]]
    t.check(all(ids), f"a line for each round: {lines[2:2 + rounds]}")
    t.equal(lines[2 + rounds], "ID generation completed.", "the last of them")


def compare(t):
    page = os.path.join(t.dir, "report.html")
    r = firn(t, 0, "compare", "--start", "--rounds", "3", "--rows", "2000", "--each", "50ms", "--html", page)
    mission_lines(t, r.out.splitlines(), 3)
    for text in ("Multi-master", "Database sequence", "not measured: give --postgres URL", "COMPLEXITY: IT NEEDS", "AVAILABILITY: A SERVER DIES", "needs no server",
                 "firnd's INCR, not Redis"):
        t.check(text in r.out, f"the tables have '{text}': {r.out}")
    t.equal(len(re.findall(r"\b0 of \d+ failed", r.out)), 8, f"four kinds outlive a server, and a store that stops for a while: {r.out}")
    look_at_page(t, page)
    with open(page, encoding="utf-8") as f:
        kinds = {k["kind"]: k for k in json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])["kinds"]}
    waited = [k for k, v in kinds.items() if v["when_store_stops"].get("longest_wait_ns", 0) >= 500e6]
    t.check({"ticket-gapless", "multi-master"} <= set(waited), f"kinds whose clients waited for the store that stood for 1.5 s: {waited}")
    compare_refusals(t)
    if sanitized(t):
        t.say("servers of others, and JSON: in the other builds")
        return

    f = Firnd(t, t.steady("compare"))
    f.wait_ready()
    urls = ("--snowflake", f"http://{f.snowflake}/generate", "--ticket", f"http://{f.ticket}/generate")
    r = firn(t, 0, "compare", *urls, "--rounds", "2", "--brief")
    mission_lines(t, r.out.splitlines(), 2)
    t.check("KIND" not in r.out, "--brief compares no kinds")
    r = firn(t, 0, "compare", *urls, "--rounds", "2", "--rows", "1000", "--each", "50ms", "--json").json()
    t.equal(len(r["snowflake"]["ids"]), 2, "the two servers")
    kinds = {k["kind"]: k for k in r["kinds"]}
    t.equal(len(kinds), 10, "ten kinds")
    for name, k in kinds.items():
        t.equal(k["measured"], name != "database", f"{name} is measured")
        if k["measured"]:
            t.check(k["ids"] == k["distinct"] > 0 and 0 < k["p50_ns"] <= k["p99_ns"] and k["per_second"] > 0, f"{name}: {k}")
            t.equal(k["rising"], name != "uuidv4", f"{name} rises")
            over = None if name == "uuidv4" else "over all" if k["source"] in ("process", "database") else "per connection"
            t.equal(k.get("rising_over"), over, f"{name}: of several connections only each one's order was seen")
        t.check(k["sqlite"]["rows"] == 1000 and k["sqlite"]["bytes"] > 100000, f"{name} in an index: {k['sqlite']}")
        t.equal(k["when_store_stops"]["measured"], False, f"{name}: nobody's store is stopped")
        t.equal(k["when_one_dies"]["measured"], False, f"{name}: nobody's servers are killed")
    left = [n for n in os.listdir(t.dir) if n.startswith(("firn-compare-", "firn-index-"))]
    t.equal(left, [], "nothing is left in TMPDIR")


def compare_refusals(t):
    for args, says in ((("--start", "--ticket", "http://127.0.0.1:1/"), "servers of its own"), (("--brief", "--html", "x"), "--brief"),
                       (("--redis", "127.0.0.1"), "redis://"), (("--rows", "1"), "--rows"), (("x",), "unexpected operand")):
        r = firn(t, 2, "compare", *args)
        t.check(says in r.err, f"firn compare {' '.join(args)} says {says}: {r.err}")


INSIDE = "TOOLS_IN_NETWORK"  # set in the network namespace of compare_remote
REMOTE = "192.0.2.7"  # of documentation networks; in the namespace it is an address of lo


def compare_remote(t):
    """Servers at an address that is not loopback, as between containers: in a network of its own."""
    if INSIDE in os.environ:
        compare_remote_inside(t)
        return
    network = ["sh", "-c", f'ip link set lo up && ip address add {REMOTE}/32 dev lo && exec "$0" "$@"']
    for way in (["unshare", "--net"], ["unshare", "-r", "--net"]):
        if subprocess.run([*way, *network, "true"], capture_output=True, check=False).returncode == 0:
            break
    else:
        print("*** NO NETWORK NAMESPACES HERE: firn compare with servers on other machines was NOT TESTED")
        return
    again = [sys.executable, "-B", os.path.abspath(__file__), t.bin, compare_remote.__name__]
    r = subprocess.run([*way, *network, *again], capture_output=True, text=True, timeout=LIMIT * 2,
                       env={**os.environ, INSIDE: "1"}, check=False)
    t.check(r.returncode == 0, f"firn compare with servers on other machines: {r.stdout[-3000:]} {r.stderr[-1000:]}")


def compare_remote_inside(t):
    server = Firnd(t, t.steady("remote"), listen={"snowflake": f"{REMOTE}:0", "ticket": f"{REMOTE}:0"}).wait_ready()
    args = ("compare", "--snowflake", f"http://{server.snowflake}/generate", "--ticket", f"http://{server.ticket}/generate", "--rounds", "2",
            "--rows", "1000", "--each", "50ms", "--json")
    asked = {"snowflake", "ticket-gapless", "ticket-range", "multi-master", "redis"}
    r = firn(t, 0, *args)
    kinds = {k["kind"]: k for k in r.json()["kinds"]}
    t.equal({k for k, v in kinds.items() if not v["measured"]}, asked | {"database"}, "not measured without --allow-remote")
    for k in asked:
        t.check(REMOTE in kinds[k]["why"] and "--allow-remote" in kinds[k]["why"], f"{k} says why: {kinds[k]}")
    t.check("firn-compare." not in json.dumps(get(server.home, "/v1/sequences")[1]), "nothing was made on a server that was not measured")
    t.equal(r.err, "", "the reasons are in the rows alone")
    r = firn(t, 0, *args, "--allow-remote")
    kinds = {k["kind"]: k for k in r.json()["kinds"]}
    t.equal({k for k, v in kinds.items() if not v["measured"]}, {"database"}, f"not measured with --allow-remote: {kinds}")


def look_at_page(t, page):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    t.check(not re.search(r"src=|href=\"(?!data:,)|url\(|@import", text), "the page loads nothing")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))
    t.equal(len(data["kinds"]), 10, "the page has ten kinds; tests/browser/compare.mjs looks at what it shows of them")
    if sanitized(t):
        t.say("Chromium looks at the page of the release build")
        return
    shots = []
    for scheme in ("light", "dark"):
        shot = os.path.join(t.dir, f"{scheme}.png")
        run = subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                              f"--user-data-dir={t.dir}/chromium", "--enable-logging=stderr", "--window-size=900,2600",
                              f"--blink-settings=preferredColorScheme={int(scheme == 'light')}", f"--screenshot={shot}", f"file://{page}"],
                             capture_output=True, text=True, timeout=LIMIT * 2, check=False)
        t.check(run.returncode == 0 and os.path.getsize(shot) > 20000, f"Chromium draws it, {scheme}: {run.stderr[-500:]}")
        t.check("CONSOLE" not in run.stderr, f"without complaints, {scheme}: {run.stderr[-500:]}")
        with open(shot, "rb") as f:
            shots.append(f.read())
    t.check(shots[0] != shots[1], "light and dark differ")


# --- firn choose ---


def on_terminal(t, *args, typed=b"", until=None, size=(24, 80)):
    """firn on a terminal of its own: (status, all that it showed)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(os.path.join(t.bin, "firn"), ["firn", *args])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    shown, end = b"", time.monotonic() + LIMIT
    if until is None:
        os.write(fd, typed)
    while time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            some = os.read(fd, 65536)
        except OSError:  # it has ended
            some = b""
        if not some:
            break
        shown += some
        if until is not None and until in shown:
            os.write(fd, typed)
            until = b"\0"
    else:
        os.kill(pid, signal.SIGKILL)
        t.check(False, f"firn {' '.join(args)} ends: {shown[-500:]}")
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode(errors="replace")


def choose(t):
    r = firn(t, 0, "choose", "--64bit", "--sortable")
    t.check(r.out.startswith("Snowflake: ") and "Why not" in r.out, f"a kind with reasons: {r.out}")
    r = firn(t, 1, "choose", "--gapless", "--offline", "--64bit")
    t.check("--gapless and --offline exclude each other" in r.out and "Nearest" in r.out, f"wishes that clash: {r.out}")
    r = firn(t, 0, "choose", "--public", "--64bit", "--json").json()
    t.equal((r["wishes"], r["recommended"]["kind"], len(r["others"])), (["64bit", "public"], "sealed", 3), "as JSON")
    r = firn(t, 1, "choose", "--uuid", "--64bit", "--json").json()
    t.equal((r["recommended"], r["clash"]["wishes"]), (None, ["64bit", "uuid"]), "a clash as JSON")
    t.equal(len(firn(t, 0, "choose", "--list", "--json").json()), 17, "the list as JSON")
    t.equal(len(firn(t, 0, "choose", "--list").out.splitlines()), 18, "the list")
    t.check("missing requirements" in firn(t, 2, "choose").err, "asks nobody where nobody is")
    t.check("unexpected operand" in firn(t, 2, "choose", "64bit").err, "wishes are flags")
    status, shown = on_terminal(t, "choose", typed=b"n\ny\nmaybe\nn\n\x04")
    t.check(status == 0 and "Please answer" in shown and "leaves no gap" in shown, f"asks on a terminal: {status} {shown}")


# --- firn top ---


def top(t):
    a, b = Firnd(t, t.steady("top-a")), Firnd(t, t.steady("top-b"))
    a.wait_ready()
    b.wait_ready()
    urls = [f"http://{a.home}", f"http://{b.ticket}/", "http://127.0.0.1:1", "http://no-such-host.invalid:9000"]
    r = firn(t, 1, "top", "--once", *urls)
    t.check("2 of 4 up" in r.out and r.out.count("ready") == 2 and r.out.count("DOWN") == 2, f"two up, two down: {r.out}")
    t.check("Connection refused" in r.out and "\033" not in r.out, f"with the reason, and plain in a pipe: {r.out}")
    b.signal(signal.SIGSTOP)  # hangs rather than refuses
    r = firn(t, 1, "top", "--once", "--json", *urls[:2]).json()["nodes"]
    b.signal(signal.SIGCONT)
    t.equal([n["up"] for n in r], [True, False], "a server that hangs is down")
    t.check("within" in r[1]["why"], f"and why: {r[1]}")
    n = r[0]
    t.check(n["ready"] and n["clock"] == "ok" and 0 <= n["slot"] < 1024 and n["window_ms"] > 0 and n["ask_ns"] > 0
            and abs(n["clock_skew_us"]) < 60e6 and n["requests_per_second"] >= 0, f"what is told: {n}")
    t.equal(firn(t, 0, "top", "--once", urls[0]).status, 0, "all up")
    for args, says in ((("x",), "http://"), (("--every", "1ms"), "--every"), (("http://" + "a" * 300,), "too long")):
        t.check(says in firn(t, 2, "top", *args).err, f"firn top {args} says {says}")
    status, shown = on_terminal(t, "top", urls[0], urls[2], "--every", "100ms", typed=b"q", until=b"DOWN", size=(10, 60))
    t.check(status == 0 and "\033[?1049h" in shown and shown.rstrip().endswith("\033[?1049l"), f"q gives the screen back: {status} {shown[-200:]}")
    t.check("IDS/S" in shown and "VERSION" not in shown, "a narrow screen has the columns that tell most")


# --- firn verify --follow, firn audit ---


class Following:
    """A firn that goes on until it is told to end; what it says arrives in files."""

    count = 0

    def __init__(self, t, *args):
        Following.count += 1
        self.t = t
        self.paths = [os.path.join(t.dir, f"following-{Following.count}.{x}") for x in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen([os.path.join(t.bin, "firn"), *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=t.dir)
        t.running.append(self)
        self.pid = self.process.pid

    def out(self):
        with open(self.paths[0], encoding="utf-8") as f:
            return f.read()

    def log(self):
        with open(self.paths[1], encoding="utf-8") as f:
            return f.read()

    def wait_out(self, text):
        return wait_for(f"firn to print {text!r}; it printed {self.out()!r} {self.log()!r}", lambda: text in self.out())

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, number=15):
        self.signal(number)
        status = self.process.wait(LIMIT)
        self.t.running.remove(self)
        for word in BAD_WORDS:
            self.t.check(word not in self.log(), f"free of '{word}': {self.log()[:2000]}")
        return status

    def kill(self):
        self.end(signal.SIGKILL)


def write(path, text, mode="a"):
    with open(path, mode, encoding="utf-8") as f:
        f.write(text)


def follow(t):
    log = os.path.join(t.dir, "ids.log")
    write(log, "1\n2\n", "w")
    f = Following(t, "verify", "--follow", "--unique", "--sorted", log)
    write(log, "1")
    write(log, "0\n9\n")  # a line counts when it is whole
    f.wait_out(":4: 9 is not above 10 of line 3")
    write(log, "2\n")
    f.wait_out(":5: 2 came before, in line 2")
    os.rename(log, log + ".1")
    write(log, "2\n", "w")
    f.wait_out(":1: 2 came before, in line 2 of an earlier file")
    t.equal(f.end(), 1, "ends with 1")
    t.check(f.out().endswith("6 IDs, 2 duplicates, 2 out of order\n"), f"the count: {f.out()}")
    r = firn(t, 1, "verify", "--follow", "--json", stdin="a\nb\na\n")
    docs = [json.loads(line) for line in r.out.splitlines()]
    t.equal(docs, [{"found": "duplicate", "id": "a", "line": 3, "other_line": 1},
                   {"ids": 3, "duplicates": 1, "malformed": 0, "exact": True, "holds": False}], "as JSON")
    r = firn(t, 0, "verify", "--follow", "--memory", "1M", "--json", stdin="".join(f"{i}\n" for i in range(40000)))
    t.check(not r.json()["exact"] and "memory is full" in r.err, f"says when it is not exact any more: {r.out} {r.err}")
    t.equal(firn(t, 0, "verify", "--follow", "--idle", "100ms", log).out, "1 IDs, 0 duplicates\n", "ends by itself")
    for args, says in ((("--follow", "--gapless", log), "--gapless"), (("--follow", log, log), "one file"), (("--idle", "1s"), "--follow"),
                       (("--follow", "none"), "No such file")):
        t.check(says in firn(t, 2, "verify", *args).err, f"firn verify {args} says {says}")


def metric(address, name):
    for line in get(address, "/metrics")[1].splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return None


def audit(t):
    db, log = "sqlite:" + os.path.join(t.dir, "audit.db"), os.path.join(t.dir, "audit.log")
    r = firn(t, 1, "audit", "--db", db, stdin="1\n2\n2\n\nno id\n" + "x" * 200 + "\n")
    t.check("(stdin):3: 2 was recorded before" in r.out and "3 IDs recorded, 1 of them had been" in r.out and "2 lines held no ID" in r.out,
            f"standard input: {r.out}")
    firn(t, 0, "audit", "--db", db, stdin="7\n")
    r = firn(t, 1, "audit", "--db", db, "--json", stdin="7\n8\n")
    t.check([json.loads(line) for line in r.out.splitlines()][-1] == {"ids": 2, "duplicates": 1, "malformed": 0, "ids_total": 6, "duplicates_total": 2},
            f"an earlier run's IDs are known: {r.out}")
    write(log, "9\n1\n", "w")
    f = Following(t, "audit", "--db", db, "--follow", log, "--metrics", "127.0.0.1:0")
    f.wait_out(":2: 1 was recorded before")
    where = re.search(r"http://(\S+)/metrics", f.log()).group(1)
    t.equal((metric(where, "firn_audit_duplicates_total"), metric(where, "firn_audit_ids_total")), (3.0, 8.0), "the metrics, over all runs")
    write(log, "9\n")
    f.wait_out(":3: 9 was recorded before")
    wait_for("the metric to follow", lambda: metric(where, "firn_audit_duplicates_total") == 4.0)
    t.equal((get(where, "/healthz"), get(where, "/x")[0]), ((200, "ok\n"), 404), "the other paths")
    t.equal(f.end(), 1, "ends with 1")
    t.check("0 IDs" in firn(t, 0, "audit", "--db", db, log).out, "it was read to its end already")
    os.remove(log)
    write(log, "100\n101\n102\n103\n9\n", "w")  # rotated meanwhile, perhaps with the same inode
    r = firn(t, 1, "audit", "--db", db, log)
    t.check("5 IDs recorded, 1 of them" in r.out, f"another file of that name is read from its beginning: {r.out}")
    for args, says in (((), "--db"), (("--db", "mysql:x"), "sqlite:FILE"), (("--db", db, "a", "b"), "too many files"),
                       (("--db", db, "--metrics", "0.0.0.0:0"), "loopback"), (("--db", db, "--metrics", "x"), "host:port"),
                       (("--db", "sqlite:/none/x"), "unable to open"), (("--db", db, "none"), "No such file"),
                       (("--db", "postgres://u:secret@127.0.0.1:1/x"), "refused")):
        r = firn(t, 2, "audit", *args)
        t.check(says in r.err and "secret" not in r.err, f"firn audit {args} says {says}: {r.err}")
    killed(t, "sqlite:" + os.path.join(t.dir, "killed.db"), 4)


def killed(t, db, times):
    """kill -9 again and again while the file grows: no line is lost, none is counted twice, and what was told is on record."""
    log = os.path.join(t.dir, f"killed-{db[:6]}.log")
    write(log, "", "w")
    lines, told = 0, set()
    before = json.loads(firn(t, 0, "audit", "--db", db, "--json").out)
    for _ in range(times):
        f = Following(t, "audit", "--db", db, "--follow", "--batch", "50", "--json", log)
        goal = lines + 1500
        while lines < goal:
            write(log, "".join(f"k{i if i % 10 else i - 5}\n" for i in range(lines, lines + 100)))
            lines += 100
            if lines == goal - 700:
                f.wait_out('"duplicate"')
        f.kill()
        told |= {json.loads(line)["line"] for line in f.out().splitlines() if line.endswith("}")}
    write(log, "kend\nkend\n")
    r = [json.loads(line) for line in firn(t, 1, "audit", "--db", db, "--json", log).out.splitlines()]
    told |= {d["line"] for d in r if "duplicate" in d and d["line"] <= lines}
    # Every tenth line repeats the fifth before it; the first of all is k-5, and new.
    t.equal(tuple(r[-1][x] - before[x] for x in ("ids_total", "duplicates_total")), (lines + 2, lines // 10), "all lines once, all duplicates")
    t.check(told and all(line % 10 == 1 and line > 1 for line in told), "nothing else was told")
    t.say(f"{lines} lines, {len(told)} of {lines // 10 - 1} duplicates told before a kill or at the end")


def audit_postgres(t):
    folder = os.path.join(t.dir, "postgres")
    os.mkdir(folder)
    server = Postgres(folder)
    server.start()
    try:
        db = server.url().split("?")[0]
        r = firn(t, 1, "audit", "--db", db, stdin='1\n2\n2\n"q\\"\n{,}\n"q\\"\nNULL\n1\n')
        t.equal(re.findall(r"\(stdin\):(\d+): (\S+)", r.out), [("3", "2"), ("6", '"q\\"'), ("8", "1")], "duplicates in one batch")
        killed(t, db, 3)
        log = os.path.join(t.dir, "away.log")
        write(log, "a\na\n", "w")
        f = Following(t, "audit", "--db", db, "--follow", log)
        f.wait_out(":2: a was recorded before")
        server.kill()
        write(log, "b\na\n")
        wait_for("the auditor to notice", lambda: "trying again" in f.log())
        server.restart()
        f.wait_out(":4: a was recorded before")
        t.equal(f.end(), 1, "a database that was away is asked again")
        if sanitized(t):
            t.say("compare with PostgreSQL: in the other builds")
            return
        r = firn(t, 0, "compare", "--start", "--rounds", "1", "--rows", "1000", "--each", "50ms", "--postgres", db, "--json").json()
        k = {k["kind"]: k for k in r["kinds"]}
        t.check(k["database"]["measured"] and k["database"]["rising"] and k["uuidv4"]["postgres"]["bytes"] > 0, f"compare with PostgreSQL: {k['database']}")
    finally:
        server.stop()


with Test("tools") as test:
    os.environ["TMPDIR"] = test.dir
    parts = [bench, compare, compare_remote, audit, top, choose, follow, audit_postgres]
    left = {"tsan": [compare_remote, choose, follow, audit_postgres], "asan": [top, compare_remote]}.get(next(iter(re.findall("asan|tsan", test.bin)), ""), [])
    if left:
        test.say(f"left to the other builds: {', '.join(p.__name__ for p in left)}")
    for part in parts:
        if part not in left:
            test.section(part)
