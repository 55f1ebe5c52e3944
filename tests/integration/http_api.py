#!/usr/bin/env python3
"""firnd over HTTP, from outside: every route, every error, all formats, restarts.

    tests/integration/http_api.py FOLDER_OF_BINARIES [FILTER]

Starts firnd itself on free ports of 127.0.0.1 with its state in a temporary folder, and ends it by its
process id. Standard library only. The last line is "N passed, M failed"."""

import concurrent.futures
import datetime
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/bin"
FILTER = sys.argv[2] if len(sys.argv) > 2 else ""


class Firnd:
    def __init__(self, state_dir, *args):
        self.log_path = os.path.join(state_dir, "log")
        self.log = open(self.log_path, "ab")
        mark = self.log.tell()
        env = {k: v for k, v in os.environ.items() if not k.startswith("FIRN_")}
        self.process = subprocess.Popen(
            [os.path.join(BIN, "firnd"), "--state-dir", state_dir, "--listen-home", "127.0.0.1:0",
             "--listen-snowflake", "127.0.0.1:0", "--listen-ticket", "127.0.0.1:0", *args],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = open(self.log_path).read()[mark:]
            found = re.search(r"serving home=\S+:(\d+) snowflake=\S+:(\d+) ticket=\S+:(\d+)", text)
            if found:
                self.home, self.snowflake, self.ticket = map(int, found.groups())
                break
            if self.process.poll() is not None:
                raise SystemExit("firnd ended at once:\n" + text)
            time.sleep(0.01)
        else:
            raise SystemExit("firnd does not start:\n" + open(self.log_path).read())
        while time.monotonic() < deadline:
            if self.ask(self.home, "/readyz").status == 200:
                return
            time.sleep(0.01)
        raise SystemExit("firnd does not become ready:\n" + open(self.log_path).read())

    def ask(self, port, path, method="GET", body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            r = c.getresponse()
            r.body = r.read()
            return r
        finally:
            c.close()

    def stop(self, sig=signal.SIGTERM):
        os.kill(self.process.pid, sig)
        code = self.process.wait(60)
        self.log.close()
        return code


tests = []


def test(f):
    tests.append(f)
    return f


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what) or "check failed")


def equal(a, b, *what):
    check(a == b, *what, repr(a), "is not", repr(b))


def get(f, path, status=200, port=None, **headers):
    r = f.ask(port or f.home, path, **headers)
    equal(r.status, status, path, r.body[:300])
    return r


def js(r):
    check(r.headers["Content-Type"] in ("application/json", "application/problem+json"))
    return json.loads(r.body)


def problem(f, path, status, word, method="GET", body=None, port=None, **headers):
    r = f.ask(port or f.home, path, method, body, **headers)
    equal(r.status, status, method, path, r.body[:300])
    equal(r.headers["Content-Type"], "application/problem+json", path)
    p = json.loads(r.body)
    equal(sorted(p), ["detail", "status", "title", "type"], path)
    equal(p["status"], status)
    check(word in p["detail"], path, repr(word), "is not in", repr(p["detail"]))
    equal(r.headers["Retry-After"], "1" if status == 503 else None)
    return r


def create(f, status=201, **spec):
    r = f.ask(f.home, "/v1/sequences", "POST", json.dumps(spec), Content_Type="application/json")
    equal(r.status, status, spec, r.body)
    return r


# --- minting ---

@test
def generate_snowflake(f):
    for port in (f.home, f.snowflake):
        r = get(f, "/generate", port=port)
        equal(r.headers["Content-Type"], "application/json")
        equal(r.headers["Cache-Control"], "no-store")
        check(re.fullmatch(rb'\{"id":"[0-9]{15,19}"\}\n', r.body), r.body)


@test
def generate_ticket_starts_at_100001(f):
    for i in range(100001, 100006):
        r = get(f, "/generate", port=f.ticket)
        equal(r.body, b'{"id":"%d"}\n' % i)
        equal(r.headers["Cache-Control"], "no-store")


@test
def lists(f):
    ids = js(get(f, "/generate?n=1000"))["ids"]
    equal(len(set(ids)), 1000)
    equal(sorted(ids, key=int), ids)
    equal(len(js(get(f, "/generate?n=1"))["ids"]), 1)
    tickets = [int(i) for i in js(get(f, "/generate?n=50", port=f.ticket))["ids"]]
    equal(tickets, list(range(tickets[0], tickets[0] + 50)))


@test
def largest_list(f):
    r = get(f, "/generate?n=100000")
    equal(len(set(js(r)["ids"])), 100000)
    problem(f, "/generate?n=100001", 400, "at most 100000")
    first = int(js(get(f, "/generate", port=f.ticket))["id"])
    equal(int(js(get(f, "/generate?n=100000", port=f.ticket))["ids"][-1]), first + 100000)


@test
def formats(f):
    for port in (f.snowflake, f.ticket):
        r = get(f, "/generate?n=3", port=port, Accept="text/plain")
        check(r.headers["Content-Type"].startswith("text/plain"))
        equal(r.headers["Cache-Control"], "no-store")
        check(re.fullmatch(rb"([0-9]+\n){3}", r.body), r.body)
        last = int(r.body.split()[-1])
        r = get(f, "/generate?n=3", port=port, Accept="application/octet-stream")
        equal(r.headers["Content-Type"], "application/octet-stream")
        equal(r.headers["Cache-Control"], "no-store")
        equal(len(r.body), 24)
        numbers = [int.from_bytes(r.body[i:i + 8], "big") for i in (0, 8, 16)]
        check(last < numbers[0] < numbers[1] < numbers[2] or port == f.snowflake, last, numbers)
        if port == f.ticket:
            equal(numbers, [last + 1, last + 2, last + 3])
    equal(len(get(f, "/generate", Accept="application/octet-stream").body), 8)
    problem(f, "/v1/ids/ulid", 406, "64-bit", Accept="application/octet-stream")
    problem(f, "/generate?encoding=hex", 406, "octets", Accept="application/octet-stream")


@test
def every_kind(f):
    kinds = js(get(f, "/v1/kinds"))["kinds"]
    check(len(kinds) > 20)
    for kind in kinds:
        name = kind["name"]
        if not kind["makes"]:
            problem(f, "/v1/ids/" + name, 404, "but not made")
            continue
        if name == "dated":
            continue
        more = "?namespace=dns&name=example.com" if name in ("uuidv3", "uuidv5") else "?n=3"
        r = get(f, "/v1/ids/" + name + more)
        equal(r.headers["Cache-Control"], "no-store")
        answer = js(r)
        ids = answer.get("ids") or [answer["id"]]
        equal(len(set(ids)), len(ids))
        readings = js(get(f, "/v1/inspect/%s?kind=%s" % (ids[0], name)))["readings"]
        equal(readings[0]["text"], ids[0])
    equal(js(get(f, "/v1/ids/uuidv5?namespace=dns&name=example.com"))["id"],
          "cfbff0d1-9375-5685-968c-48ce8b15ae17")


@test
def parameters(f):
    check(js(get(f, "/generate?prefix=ord"))["id"].startswith("ord_"))
    check(js(get(f, "/v1/ids/typeid?prefix=user"))["id"].startswith("user_"))
    check(js(get(f, "/generate?seq=default&prefix=no"))["id"].startswith("no_"))
    equal(len(js(get(f, "/generate?encoding=base62"))["id"]), 11)
    equal(len(js(get(f, "/v1/ids/nanoid?length=40"))["id"]), 40)
    equal(js(get(f, "/generate?kind=ulid&n=2"))["ids"][0][:2], "01")
    r = f.ask(f.home, "/generate", "POST", "n=3&kind=ulid",
              Content_Type="application/x-www-form-urlencoded")
    equal(len(js(r)["ids"]), 3)
    equal(f.ask(f.home, "/generate", "POST").status, 200)


@test
def errors(f):
    for path, status, word in (
            ("/generate?n=0", 400, "from 1 to 100000"),
            ("/generate?n=-1", 400, "digits only"),
            ("/generate?n=1&n=2", 400, "twice"),
            ("/generate?n=%", 400, "percent-encoded"),
            ("/generate?kinds=ulid", 400, "did you mean kind?"),
            ("/generate?shard=1", 400, "no shard field"),
            ("/generate?encoding=base63", 400, "did you mean base"),
            ("/generate?prefix=A", 400, "prefix"),
            ("/generate?seq=nobody", 404, "POST /v1/sequences"),
            ("/generate?seq=a/b", 400, "A-Z"),
            ("/v1/ids/ulod", 404, "did you mean ulid"),
            ("/v1/ids/dated", 400, "POST /v1/sequences"),
            ("/v1/ids/uuidv3", 400, "a namespace and a name"),
            ("/v1/ids/nanoid?length=255&n=100000", 400, "ask for n="),
            ("/v1/ids/tsid?encoding=hex", 400, "means nothing"),
            ("/v1/inspect/x?kind=ulid", 400, "no ulid"),
            ("/v1/inspect/x?kind=y", 404, "no kind"),
            ("/v1/inspect/5?layout=zz", 400, "/v1/layouts"),
            ("/genrate", 404, "the nearest is /generate"),
            ("/v1/sequence/x/next", 404, "/v1/sequences/x/next"),
            ("/generate/", 404, "/generate"),
            ("/V1/node", 404, "/v1/node"),
            ("/%00", 404, "nearest"),
            ("/v1/inspect/%00", 400, "percent-encoded"),
            ("/v1/inspect/" + "x" * 600, 400, "too long")):
        problem(f, path, status, word)
    problem(f, "/generate", 415, "query", "POST", "<x/>", Content_Type="text/xml")


@test
def methods(f):
    for method in ("PUT", "DELETE", "PATCH"):
        r = problem(f, "/generate", 405, method, method)
        equal(r.headers["Allow"], "GET, HEAD, POST")
        equal(problem(f, "/healthz", 405, "GET", method).headers["Allow"], "GET, HEAD")
    equal(problem(f, "/healthz", 405, "GET", "POST").headers["Allow"], "GET, HEAD")


@test
def head_is_get_without_a_body(f):
    for path in ("/generate", "/generate?n=3", "/v1/node", "/v1/nodes", "/metrics", "/openapi.json", "/healthz",
                 "/v1/sequences", "/generate?seq=default", "/"):
        r = f.ask(f.home, path, "HEAD")
        equal(r.status, 200, path)
        equal(r.body, b"")
        check(int(r.headers["Content-Length"]) > 0, path)
    equal(f.ask(f.home, "/nowhere", "HEAD").status, 404)


# --- sequences ---

@test
def sequence_life(f):
    r = create(f, name="orders", mode="range", start=7)
    equal(r.headers["Location"], "/v1/sequences/orders")
    made = js(r)
    equal(made["mode"], "range")
    equal(made["next"], "7")
    create(f, 200, name="orders", mode="range", start="7")
    r = create(f, 409, name="orders", mode="gapless", start=7)
    check("GET /v1/sequences/orders" in js(r)["detail"])
    equal(js(get(f, "/v1/sequences/orders"))["start"], "7")
    first = int(js(get(f, "/v1/sequences/orders/next"))["id"])
    check(first >= 7)
    more = [int(i) for i in js(get(f, "/v1/sequences/orders/next?n=500"))["ids"]]
    equal(len(set(more + [first])), 501)
    names = [s["name"] for s in js(get(f, "/v1/sequences"))["sequences"]]
    check("orders" in names, names)
    for name in ("page-1", "page-2", "page-3"):
        create(f, name=name)
    create(f, name="page-dated", dated={"reset": "day"})
    get(f, "/v1/sequences/page-dated/next")
    paged, after = [], ""
    while after is not None:
        page = js(get(f, "/v1/sequences?limit=2&after=" + after))
        check(len(page["sequences"]) <= 2, page)
        paged += [s["name"] for s in page["sequences"]]
        after = page.get("next")
    equal(paged, sorted(paged))
    equal(paged, [s["name"] for s in js(get(f, "/v1/sequences?limit=1000"))["sequences"]])
    check({"orders", "page-1", "page-2", "page-3", "page-dated"} <= set(paged), paged)
    problem(f, "/v1/sequences/nobody", 404, "POST /v1/sequences")
    problem(f, "/v1/sequences/nobody/next", 404, "POST /v1/sequences")


@test
def sequence_bodies(f):
    for body, word in (('', "empty"), ('{', "ends too early"), ('[]', "an object"), ('{}', "name"),
                       ('{"name":1}', "string"), ('{"name":"a b"}', "A-Z"),
                       ('{"name":"x"} x', "follows"), ('{"name":"x","name":"x"}', "twice"),
                       ('{"name":"x","stepp":1}', "no member"), ('{"name":"x","step":0}', "at least 1"),
                       ('{"name":"x","start":1.5}', "whole number"), ('{"name":"x","start":-1}', "whole"),
                       ('{"name":"x","mode":"fast"}', "gapless or range"),
                       ('{"name":"x","step":2,"offset":2}', "below the step"),
                       ('{"name":"x","start":5,"max":4}', "in order"),
                       ('{"name":"x","dated":{"reset":"hour"}}', "day, month or year"),
                       ('{"name":"x","dated":{"reset":"day","digits":19}}', "1 to 18"),
                       ('{"name":"x","dated":1}', "an object"),
                       ('{"name":"' + "x" * 60 + '","dated":{"reset":"day"}}', "55 characters"),
                       ('{"name":"x\\ud800"}', "surrogate")):
        problem(f, "/v1/sequences", 400, word, "POST", body, Content_Type="application/json")
    problem(f, "/v1/sequences", 415, "JSON", "POST", "<x/>", Content_Type="text/xml")


@test
def multi_master(f):
    create(f, name="odd", step=2, offset=1)
    create(f, name="even", step=2, offset=0)
    for name, want in (("odd", [1, 3, 5, 7]), ("even", [2, 4, 6, 8])):
        got = [int(js(get(f, "/v1/sequences/%s/next" % name))["id"])]
        got += [int(i) for i in js(get(f, "/v1/sequences/%s/next?n=3" % name))["ids"]]
        equal(got, want)


@test
def dated(f):
    create(f, name="invoice", dated={"reset": "day", "digits": 6})
    create(f, name="yearly", mode="range", dated={"reset": "year", "digits": 4})
    today = lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
    before = today()
    ids = [js(get(f, "/v1/sequences/invoice/next"))["id"]]
    ids += js(get(f, "/generate?kind=dated&seq=invoice&n=2"))["ids"]
    if before == today():
        equal(ids, ["%s-%06d" % (before, i) for i in (1, 2, 3)])
    check(re.fullmatch(r"20\d\d-0001", js(get(f, "/v1/sequences/yearly/next"))["id"]))
    problem(f, "/v1/sequences/invoice/next", 406, "dated", Accept="application/octet-stream")
    problem(f, "/v1/sequences/invoice/next?encoding=hex", 406, "dated")
    equal(js(get(f, "/v1/sequences/invoice/next"))["id"][-6:], "000004")
    text = get(f, "/v1/sequences/invoice/next", Accept="text/plain").body
    check(re.fullmatch(rb"\d{8}-000005\n", text), text)
    described = js(get(f, "/v1/sequences/invoice"))
    equal(described["dated"], {"reset": "day", "digits": 6})
    check("next" not in described)
    names = [s["name"] for s in js(get(f, "/v1/sequences"))["sequences"]]
    check("invoice" in names and not [n for n in names if ":" in n], names)


@test
def a_sequence_ends(f):
    create(f, name="short", max=3)
    equal(js(get(f, "/v1/sequences/short/next?n=2"))["ids"], ["1", "2"])
    equal(js(get(f, "/v1/sequences/short/next?n=2"))["ids"], ["3"])
    problem(f, "/v1/sequences/short/next", 409, "last number")
    equal(js(get(f, "/v1/sequences/short"))["left"], "0")


@test
def gapless_under_load(f):
    create(f, name="busy")

    def client(_):
        c = http.client.HTTPConnection("127.0.0.1", f.ticket, timeout=60)
        got = []
        for i in range(60):
            c.request("GET", "/generate?seq=busy" + ("&n=3" if i % 5 == 0 else ""))
            answer = json.loads(c.getresponse().read())
            got += [int(x) for x in answer.get("ids") or [answer["id"]]]
        c.close()
        check(got == sorted(got))
        return got

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        numbers = sorted(n for part in pool.map(client, range(8)) for n in part)
    equal(numbers, list(range(1, len(numbers) + 1)))


def pipelined(port, requests):
    """Send all of these at once on one connection: [(status, headers, body)] until it ends or all are answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall("".join(requests).encode())
        data, got = s.makefile("rb"), []
        for request in requests:
            line = data.readline()
            if not line:
                break
            headers = {}
            while (field := data.readline().strip()):
                name, value = field.decode().split(": ", 1)
                headers[name] = value
            body = b"" if request.startswith("HEAD") else data.read(int(headers["Content-Length"]))
            got.append((int(line.split()[1]), headers, body))
        return got


def ask(path, method="GET", version="1.1", more=""):
    return f"{method} {path} HTTP/{version}\r\nHost: x\r\n{more}\r\n"


@test
def runs_of_requests(f):
    """Clients that pipeline send the same request many times over; those are answered together."""
    create(f, name="runs")
    create(f, name="brief", max=50)
    path = "/generate?seq=runs"
    get(f, path, port=f.ticket)  # 1: from now on this loop, or the other one, knows the sequence
    counted = int(re.search(rb'^firn_tickets_committed_total (\d+)', get(f, "/metrics").body, re.M)[1])
    asked = 0
    for _ in range(4):
        mix = [ask(path)] * 300 + [ask(path, "HEAD")] + [ask(path, "POST", more="Content-Length: 0\r\n")] * 3
        mix += [ask(path, more="Accept: text/plain\r\n")] * 40 + [ask(path + "&n=2")] * 20 + [ask(path)] * 2
        mix += [ask(path, version="1.0", more="Connection: keep-alive\r\n")] * 30
        mix += [ask(path, more="Connection: close\r\n")] * 2  # the second is not answered
        got = pipelined(f.ticket, mix)
        equal(len(got), len(mix) - 1)
        equal({status for status, _, _ in got}, {200})
        equal({h["Cache-Control"] for _, h, _ in got}, {"no-store"})
        numbers = [int(n) for _, _, body in got for n in re.findall(rb"\d+", body)]
        # HEAD takes a number, too, and shows none.
        equal(sorted(numbers), numbers)
        equal(len(numbers), 300 + 3 + 40 + 40 + 2 + 30 + 1)
        equal(numbers[-1] - numbers[0], len(numbers))
        asked += len(numbers) + 1
    now = int(re.search(rb'^firn_tickets_committed_total (\d+)', get(f, "/metrics").body, re.M)[1])
    equal(now - counted, asked)
    # The end of a sequence in the middle of a run.
    for _ in range(3):
        get(f, "/generate?seq=brief", port=f.ticket)
    got = pipelined(f.ticket, [ask("/generate?seq=brief")] * 100)
    equal([status for status, _, _ in got], [200] * 47 + [409] * 53)
    check(b"last number" in got[-1][2], got[-1][2])
    equal([json.loads(body)["id"] for _, _, body in got[:47]], [str(n) for n in range(4, 51)])
    # Snowflakes.
    got = pipelined(f.snowflake, [ask("/generate")] * 700)
    ids = [int(json.loads(body)["id"]) for _, _, body in got]
    check(len(set(ids)) == 700 and sorted(ids) == ids)


# --- the rest ---

@test
def inspection(f):
    ulid = js(get(f, "/v1/inspect/01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    equal(ulid["readings"][0]["kind"], "ulid")
    equal(ulid["readings"][0]["time"], "2016-07-30T23:54:10.259Z")
    own = js(get(f, "/generate"))["id"]
    read = js(get(f, "/v1/inspect/%s?kind=snowflake" % own))["readings"][0]
    fields = {x["name"]: x["value"] for x in read["fields"]}
    equal(int(fields["node"]), js(get(f, "/v1/node"))["slot"])
    twitter = js(get(f, "/v1/inspect/1541815603606036480?layout=twitter"))["readings"][0]
    equal(twitter["time"], "2022-06-28T16:07:40.105Z")
    check(len(js(get(f, "/v1/inspect/" + own))["readings"]) > 1)
    equal(js(get(f, "/v1/inspect/%21%21"))["readings"], [])


@test
def knowledge(f):
    layouts = js(get(f, "/v1/layouts"))
    check("firn" in [x["name"] for x in layouts["layouts"]])
    equal(layouts["served"]["ids_per_tick"], 4096)
    node = js(get(f, "/v1/node"))
    check(node["ready"] and node["window"]["until"] > node["window"]["from"])
    equal(node["clock"]["state"], "ok")
    equal(node["listen"]["ticket"], "127.0.0.1:%d" % f.ticket)
    equal(js(get(f, "/healthz"))["status"], "ok")
    equal(js(get(f, "/readyz"))["status"], "ready")
    metrics = get(f, "/metrics")
    check(metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
    check(b'firn_ids_total{kind="snowflake"}' in metrics.body)


@test
def home_page_only_at_home(f):
    page = get(f, "/")
    check(page.headers["Content-Type"].startswith("text/html"))
    check(b"firnd" in page.body and b"http://" not in page.body.split(b"<script>")[0].replace(
        b"http://www.w3.org", b""))
    problem(f, "/", 404, "nearest", port=f.snowflake)
    check("'unsafe-inline'" not in page.headers["Content-Security-Policy"] and b"<style" not in page.body)
    for file in re.findall(rb'"/(web/[^"]+)"', page.body):
        check(len(get(f, "/" + file.decode()).body) > 100, file)


@test
def lab_is_served_at_home(f):
    page = get(f, "/lab")
    check("'unsafe-inline'" not in page.headers["Content-Security-Policy"] and b"<style" not in page.body)
    for file in re.findall(rb'"/(web/[^"]+)"', page.body):
        check(len(get(f, "/" + file.decode()).body) > 100, file)
    problem(f, "/lab", 404, "nearest", port=f.ticket)
    data = get(f, "/web/lab.json")
    equal((data.headers["Content-Type"], data.headers["Content-Encoding"]), ("application/json", "gzip"))
    played = json.loads(gzip.decompress(data.body))
    names = [lab["lab"] for lab in played["labs"]] + [lab["lab"] for lab in played["missing"]]
    equal(sorted(names), ["election", "multi-paxos", "paxos", "queue", "raft"])


@test
def slots_show_this_server(f):
    slots, node = js(get(f, "/v1/slots")), js(get(f, "/v1/node"))
    mine = [s for s in slots["slots"] if s["state"] == "mine"]
    equal([s["slot"] for s in mine], [node["slot"]])
    equal((slots["first"], slots["total"], slots["free"]), (0, 1024, 1024 - len(slots["slots"])))
    check(mine[0]["from"] < mine[0]["until"] and mine[0]["name"] == node["name"], mine)


@test
def events_are_the_seconds_of_this_process(f):
    def rows(after=""):
        a = get(f, "/v1/events" + after)
        check(a.headers["Content-Type"] == "text/event-stream" and a.body.startswith(b"retry: 1000\n\n"))
        events = [e.split("\nid: ") for e in a.body.decode().split("\n\n")[1:] if e]
        return [r for d, _ in events for r in json.loads(d[6:])["rows"]], events[-1][1] if events else ""

    get(f, "/generate?n=7")
    for _ in range(600):
        all_rows, last = rows()
        if sum(r["ids"].get("snowflake", 0) for r in all_rows) >= 7:
            break
        time.sleep(0.1)
    check(sum(r["ids"].get("snowflake", 0) for r in all_rows) >= 7, all_rows)
    check([r["t"] for r in all_rows] == sorted(r["t"] for r in all_rows))
    took = [n for r in all_rows for n in r["took"].get("ids", {}).values()]
    check(0 < sum(took) <= sum(r.get("http", 0) + r.get("resp", 0) for r in all_rows), all_rows)
    bounds = {b for r in all_rows for t in r["took"].values() for b in t}
    check(bounds <= {str(1 << i) for i in range(4, 25)} | {"inf"}, bounds)
    calls = sum(r.get("store_calls", 0) for r in all_rows)
    check(calls > 0 and sum(r.get("store_us", 0) for r in all_rows) > 0, all_rows)
    new, _ = rows("?after=" + last)
    check(all(r["t"] > all_rows[-1]["t"] for r in new), new)


@test
def openapi_names_every_route(f):
    api = js(get(f, "/openapi.json"))
    equal(api["openapi"], "3.1.0")
    ids = [op["operationId"] for path in api["paths"].values() for op in path.values()]
    equal(len(ids), len(set(ids)))
    for path, ways in api["paths"].items():
        if "get" not in ways:
            get(f, path.replace("{lease}", "0" * 32), 405)
            continue
        path = re.sub(r"\{id\}", "1", re.sub(r"\{kind\}", "ulid", re.sub(r"\{name\}", "default", path)))
        path = path.replace("{file}", "words.js")
        get(f, path, *((404,) if path == "/v1/cluster" else ()))  # this one's store is no cluster
    refs = set(re.findall(r'#/components/schemas/(\w+)', json.dumps(api)))
    check(refs <= set(api["components"]["schemas"]), refs)


@test
def pipelining_keeps_the_order(f):
    """Waiting requests, ready ones and errors in one packet: answers come in the order of requests."""
    create(f, name="pipe")
    paths = ["/generate?seq=pipe", "/generate", "/nowhere", "/generate?seq=pipe&n=2", "/healthz",
             "/v1/sequences/pipe", "/generate?seq=pipe"] * 20
    tickets = []
    for path, (status, _, body) in zip(paths, pipelined(f.home, [ask(p) for p in paths]), strict=True):
        body = json.loads(body)
        equal(status, 404 if path == "/nowhere" else 200, path)
        if path.startswith("/generate?seq=pipe"):
            tickets += [int(x) for x in body.get("ids") or [body["id"]]]
        elif path == "/healthz":
            equal(body, {"status": "ok"})
        elif path == "/v1/sequences/pipe":
            equal(body["name"], "pipe")
    equal(tickets, list(range(1, 81)))


@test
def http_1_0_and_close(f):
    for text, word in ((b"GET /generate HTTP/1.0\r\nHost: x\r\n\r\n", b"Connection: close"),
                       (b"GET /generate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                        b"Connection: close")):
        s = socket.create_connection(("127.0.0.1", f.home), timeout=60)
        s.sendall(text)
        got = b""
        while part := s.recv(65536):
            got += part
        s.close()
        check(word in got and got.endswith(b'"}\n'), got)


@test
def chunked_body(f):
    c = http.client.HTTPConnection("127.0.0.1", f.home, timeout=60)
    c.request("POST", "/v1/sequences", iter([b'{"name":', b'"chunked"}']),
              {"Content-Type": "application/json"}, encode_chunked=True)
    r = c.getresponse()
    equal(r.status, 201, r.read())
    c.close()


@test
def restart_goes_on_counting(f, state):
    ticket = int(js(get(f, "/generate", port=f.ticket))["id"])
    ids = [int(js(get(f, "/generate"))["id"])]
    for sig, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -9)):
        equal(f.stop(sig), code)
        f.__init__(state)
        ticket += 1
        equal(int(js(get(f, "/generate", port=f.ticket))["id"]), ticket)
        ids.append(int(js(get(f, "/generate"))["id"]))
    equal(len(set(ids)), 3)
    equal(js(get(f, "/v1/sequences/default"))["next"], str(ticket + 1))


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="firn-http-") as state:
        # Windows of a minute, not of 3 seconds: a machine that stands still for a while costs no IDs.
        subprocess.run([os.path.join(BIN, "firn"), "admin", "init", "--store", f"sqlite:{state}/firn.db", "--window", "60s", "--fresh"],
                       check=True, capture_output=True, timeout=60)
        f = Firnd(state)
        try:
            for t in tests:
                if FILTER not in t.__name__:
                    continue
                try:
                    t(f, state) if t.__code__.co_argcount == 2 else t(f)
                    passed += 1
                    print("ok   " + t.__name__)
                except Exception as e:
                    failed += 1
                    print("FAIL %s: %s: %s" % (t.__name__, type(e).__name__, e))
        finally:
            code = f.stop() if f.process.poll() is None else f.process.returncode
        if code != 0:
            failed += 1
            print("FAIL firnd ended with %s\n%s" % (code, open(f.log_path).read()[-3000:]))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
