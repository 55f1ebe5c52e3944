#!/usr/bin/env python3
"""
firn-auditlog over real databases: entries in and out, keys, tokens, limits; the database and the service killed under load;
time stamps in the place of IDs, which collide.
"""
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, os.path.join(HERE, ".."))
import auditlog as a  # noqa: E402  pylint: disable=wrong-import-position
import collector  # noqa: E402  pylint: disable=wrong-import-position
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import postgres  # noqa: E402  pylint: disable=wrong-import-position

def shard(number):
    return number >> 17 & 31


def problem(answer):
    status, _, body = answer
    return status, body["type"].rsplit(":", 1)[1] if isinstance(body, dict) and "type" in body else body


def user_of(s, database):
    """A user whose entries are in that database of two."""
    for i in range(100):
        status, _, body = s.post(f"user{i}", {"actor": "a", "action": "x"})
        if status == 201 and shard(int(body["id"])) % 2 == database:
            return f"user{i}"
    raise f.NotThere(f"a user of database {database}")


def schema(t, db, firnd):
    s = a.Auditlog(t, db, firnd, serve=False)
    code, text = s.command("", "--check-config")
    t.equal(code, 0, f"--check-config: {text}")
    # Before the tables are there, the service says so and refuses.
    s.start(wait=False)
    t.check(f.wait_for("the log", lambda: "firn-auditlog init" in s.log()), "the log says what to do")
    t.equal(problem(s.post("u", a.entry(0))), (503, "shard-away"), "without tables")
    t.equal(f.get(s.http, "/readyz")[0], 503, "/readyz without tables")
    s.stop()
    both = []
    threads = [threading.Thread(target=lambda: both.append(s.command("init"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal([code for code, _ in both], [0, 0], f"init twice at once: {both}")
    code, text = s.command("init")
    t.check(code == 0 and text.count("as it was") == len(db.servers), f"init again: {text}")
    for server in db.servers:
        names = server.sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'firn_audit.log'::regclass")
        t.check(names in ("9", "10"), f"partitions: yesterday, today and 7 days, and one more when a day has begun meanwhile: {names}")
        for what in ("UPDATE firn_audit.log SET actor = 'x'", "DELETE FROM firn_audit.log", "TRUNCATE firn_audit.log",
                     "CREATE TABLE firn_audit.t (i int)"):
            try:
                server.sql(f"SET ROLE firn_audit_writer; {what}")
                t.check(False, f"the writer may not {what}")
            except RuntimeError as e:
                t.check("permission denied" in str(e), f"{what}: {e}")
    # In another order entries would not be found.
    turned = a.Auditlog(t, db.urls()[::-1], firnd, serve=False)
    code, text = turned.command("init")
    t.check(code == 1 and "another place" in text, f"init with the databases turned round: {text}")
    turned.start(wait=False)
    t.check(f.wait_for("the log", lambda: "another place" in turned.log()), "the log says so")
    t.equal(problem(turned.post("u", a.entry(0))), (503, "shard-away"), "and nothing is written")
    turned.stop()
    # A user of its own, who may only append: first without the right to, then with it.
    for server in db.servers:
        server.sql("CREATE ROLE app LOGIN")
    s = a.Auditlog(t, [url.replace("//firn@", "//app@") for url in db.urls()], firnd, serve=False)
    s.start(wait=False)
    t.check(f.wait_for("the log", lambda: "GRANT firn_audit_writer" in s.log()), "the log says what to grant")
    for server in db.servers:
        server.sql("GRANT firn_audit_writer TO app")
    s.wait_up()
    t.equal(s.post("u", a.entry(0))[0], 201, "as a user of its own")
    s.stop()
    for server in db.servers:
        server.sql("TRUNCATE firn_audit.log")
    code, text = s.command("inti")
    t.check(code == 2 and "init and retain" in text, f"a command that is none: {text}")
    for bad, words in (("shards: []\n", "at least one"), ("id: other\n", "firn"), ("tokens: [{ name: x, tenant: t, scopes: [fly] }]\n", "")):
        wrong = a.Auditlog(t, db if "shards" not in bad else [], firnd, config="" if "shards" in bad else bad, serve=False)
        code, text = wrong.command("", "--check-config")
        t.check(code != 0 and words in text, f"{bad!r}: {text}")


def entries(t, db, firnd):
    s = a.Auditlog(t, db, firnd, "--limits-rows=100", "--limits-detail-bytes=1000")
    ids = {}
    for i in range(60):
        user = f"user{i % 20}"
        status, _, body = s.post(user, a.entry(i, text="\u00e9\u4e16 \"x\"", deep=[1, {"b": None}], big=1.5e300))
        if not t.equal(status, 201, f"POST {i}: {body}"):
            return
        ids.setdefault(user, []).append(int(body["id"]))
    every = [i for of in ids.values() for i in of]
    t.equal(len(set(every)), 60, "IDs are distinct")
    for user, of in ids.items():
        t.equal(of, sorted(of), f"IDs of {user} rise")
        t.equal(len({shard(i) for i in of}), 1, f"{user} has one shard")
        status, _, page = s.ask("GET", f"/v1/users/{user}/logs?limit=2")
        t.equal([int(e["id"]) for e in page["entries"]], of[:0:-1], "the newest two")
        status, _, rest = s.ask("GET", f"/v1/users/{user}/logs?before={page['next']}")
        t.equal(([int(e["id"]) for e in rest["entries"]], rest["next"]), (of[:1], None), "the page behind them")
    rows = db.rows()
    t.equal(sorted(r[1] for r in rows), sorted(every), "rows of all databases")
    t.check(all(r[0] == shard(r[1]) % len(db.servers) for r in rows), "each is in the database of its shard")
    t.check(len({r[0] for r in rows}) == len(db.servers), "every database has some")

    one = ids["user3"][1]
    status, _, e = s.ask("GET", f"/v1/logs/{one}")
    t.equal((status, e["id"], e["user"], e["shard"], e["map_version"], e["detail"]["n"], e["detail"]["text"]),
            (200, str(one), "user3", shard(one), 1, 23, "\u00e9\u4e16 \"x\""), "GET by ID")
    t.equal(problem(s.ask("GET", f"/v1/logs/{one - (1 << 40)}")), (404, "no-such-entry"), "an ID that is not there")
    t.equal(problem(s.ask("GET", "/v1/logs/x")), (400, "bad-parameter"), "no ID")

    # Time: everything is between yesterday and tomorrow.
    at = e["at"]
    status, _, page = s.ask("GET", f"/v1/users/user3/logs?since={at}")
    t.equal([int(x["id"]) for x in page["entries"]], ids["user3"][:0:-1], "since an entry: it and newer ones")
    status, _, page = s.ask("GET", f"/v1/users/user3/logs?until={at}")
    t.equal([int(x["id"]) for x in page["entries"]], ids["user3"][:1], "until it: older ones")
    for query in ("limit=0", "limit=1001", "limit=x", "before=-1", "since=yesterday", "fly=1"):
        t.equal(problem(s.ask("GET", f"/v1/users/user3/logs?{query}")), (400, "bad-parameter"), query)

    # Bulk, names that need encoding, NDJSON out with a cursor.
    name = "%E4%B8%96%2F%20x"
    lines = "\r\n".join(json.dumps(a.entry(1000 + i)) for i in range(100)) + "\n\n"
    status, _, body = s.post(name, lines, Content_Type="application/x-ndjson")
    t.check(status == 201 and len(set(body["ids"])) == 100 and body["ids"] == sorted(body["ids"], key=int), f"bulk: {status} {body}")
    path, seen = f"/v1/users/{name}/logs?limit=40", []
    while path:
        status, fields, text = s.ask("GET", path, Accept="application/x-ndjson")
        seen += [json.loads(line) for line in text.splitlines()]
        link = fields.get("Link")
        path = link and f"/v1/users/{name}/logs" + link[link.index("<") + 1:link.index(">")]
    t.equal([int(x["id"]) for x in seen], [int(i) for i in reversed(body["ids"])], "export by pages")
    t.equal({x["user"] for x in seen}, {"\u4e16/ x"}, "the user in them")

    # Numbers that are longer in the database than in the request: each list still has its rows.
    wide = a.Auditlog(t, db, firnd, "--limits-detail-bytes=65000")
    many = '{"actor":"a","action":"b","detail":{"x":[%s]}}' % ",".join(["9e307"] * 10800)
    numbers = [wide.post("wide", many)[2]["id"] for _ in range(3)]
    path, seen = "/v1/users/wide/logs", []
    while path and len(seen) < 9:
        status, _, text = wide.ask("GET", path)
        if not t.equal(status, 200, f"a list of long rows: {str(text)[:200]}"):
            break
        listed = text if isinstance(text, dict) else {"entries": [], "next": None}
        seen += [e["id"] for e in listed["entries"]]
        path = listed["next"] and f"/v1/users/wide/logs?before={listed['next']}"
    t.equal(seen, numbers[::-1], "long rows")
    wide.stop()

    # What is refused.
    for text, want in (("{", "bad-body"), ("[]", "bad-body"), ('{"actor":"a"}', "bad-body"), ('{"actor":"a","action":"","detail":{}}', "bad-body"),
                       ('{"actor":"a","action":"b","detail":"x"}', "bad-body"), ('{"actor":"a","action":"b","more":1}', "bad-body"),
                       ('{"actor":"a","action":"b","detail":{"x":"\\u0000"}}', "bad-body"), ("", "bad-body"),
                       ('{"actor":"a","action":"b","detail":{"x":1e999}}', "bad-body"), ('{"actor":"a\\n","action":"b"}', "bad-body"),
                       (json.dumps(a.entry(1, x="y" * 2000)), "too-large")):
        status, what = problem(s.post("u", text))
        t.equal((what, status // 100), (want, 4), text[:60])
    t.equal(problem(s.post("u", lines + lines, Content_Type="application/x-ndjson")), (413, "too-large"), "too many lines")
    t.equal(problem(s.post("u", "a=b", Content_Type="text/plain")), (415, "unsupported-body"), "a form")
    t.equal(problem(s.post("%00", a.entry(1))), (400, "bad-parameter"), "a user with a NUL")
    t.equal(problem(s.post("x" * 257, a.entry(1))), (400, "bad-parameter"), "a long user")
    t.equal(problem(s.ask("DELETE", "/v1/users/u/logs")), (405, "method-not-allowed"), "DELETE")
    t.equal(problem(s.ask("GET", "/v1/other")), (404, "no-such-route"), "another path")
    status, _, body = s.ask("GET", "/openapi.json")
    t.equal((status, body["openapi"]), (200, "3.1.0"), "/openapi.json")
    rows = s.metrics("firn_auditlog_rows_total")
    t.equal(sum(rows.values()), 160, f"rows in the metrics: {rows}")
    t.check(0 < sum(s.metrics("firn_auditlog_commits_total").values()) <= 61, "commits in the metrics")
    t.equal(s.stop(), 0, "exit status")
    t.check("clean=yes" in s.log(), "a clean end")


def keys(t, db, firnd):
    s = a.Auditlog(t, db, firnd)
    before = len(db.rows())
    first = s.post("k", a.entry(1), Idempotency_Key="one")
    again = s.post("k", a.entry(1), Idempotency_Key="one")
    t.equal((first[0], again[0], again[2]), (201, 201, first[2]), "the same answer")
    t.equal((first[1]["Idempotency-Replayed"], again[1]["Idempotency-Replayed"]), (None, "true"), "and it says so")
    t.equal(problem(s.post("k", a.entry(2), Idempotency_Key="one")), (422, "key-reused"), "another body")
    lines = "".join(json.dumps(a.entry(i)) + "\n" for i in range(5))
    first = s.post("k", lines, Content_Type="application/x-ndjson", Idempotency_Key="many")
    again = s.post("k", lines, Content_Type="application/x-ndjson", Idempotency_Key="many")
    t.equal((len(first[2]["ids"]), again[2]), (5, first[2]), "of several entries")
    t.equal(problem(s.post("k", a.entry(1), Idempotency_Key="x" * 256)), (400, "bad-key"), "a long key")
    # The same key many times at once, in one batch or in several.
    said = []
    threads = [threading.Thread(target=lambda: said.append(s.post("k", a.entry(9), Idempotency_Key="race"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal({(status, json.dumps(body)) for status, _, body in said}, {(201, json.dumps(said[0][2]))}, "one answer for all")
    t.equal(len(db.rows()) - before, 7, "rows of all that")
    # Another process knows them, too.
    other = a.Auditlog(t, db, firnd)
    t.equal(other.post("k", lines, Content_Type="application/x-ndjson", Idempotency_Key="many")[2], first[2], "at another service")
    for x in (s, other):
        x.stop()
    code, text = s.command("retain", "--keys-keep-s=60")
    t.check(code == 0 and "0 keys" in text, f"young keys stay: {text}")
    for server in db.servers:
        server.sql("UPDATE firn_audit.key SET at = at - interval '1 hour'")
        server.sql("CREATE TABLE firn_audit.log_20240101 (LIKE firn_audit.log INCLUDING ALL);"
                   "ALTER TABLE firn_audit.log ATTACH PARTITION firn_audit.log_20240101 FOR VALUES FROM (1) TO (2)")
    code, text = s.command("retain", "--keys-keep-s=60", "--partitions-keep-days=30")
    t.equal((code, text.count("1 partitions detached")), (0, len(db.servers)), f"an old partition is detached: {text}")
    left = sum(int(server.sql("SELECT count(*) FROM firn_audit.key")) for server in db.servers)
    t.equal(left, 0, "old keys are removed")


def tokens(t, db, firnd):
    import hashlib  # pylint: disable=import-outside-toplevel

    def row(name, tenant, scopes):
        return f"  - {{ name: {name}, token_sha256: {hashlib.sha256(name.encode()).hexdigest()}, tenant: {tenant}, scopes: [{scopes}] }}\n"
    s = a.Auditlog(t, db, firnd, config="tokens:\n" + row("w1", "one", "write") + row("r1", "one", "read") + row("rw2", "two", "read, write"))

    def bearer(name):
        return {"Authorization": f"Bearer {name}"}
    t.equal(problem(s.post("u", a.entry(1))), (401, "no-token"), "no token")
    t.equal(problem(s.post("u", a.entry(1), **bearer("other"))), (401, "bad-token"), "an unknown token")
    t.equal(problem(s.post("u", a.entry(1), **bearer("r1"))), (403, "not-allowed"), "a token that only reads")
    t.equal(problem(s.ask("GET", "/v1/users/u/logs", **bearer("w1"))), (403, "not-allowed"), "a token that only writes")
    status, _, body = s.post("u", a.entry(1), **bearer("w1"), Idempotency_Key="t")
    t.equal(status, 201, "a token that writes")
    t.equal(s.ask("GET", f"/v1/logs/{body['id']}", **bearer("r1"))[0], 200, "its tenant reads it")
    t.equal(problem(s.ask("GET", f"/v1/logs/{body['id']}", **bearer("rw2"))), (404, "no-such-entry"), "another tenant does not")
    t.equal(s.ask("GET", "/v1/users/u/logs", **bearer("rw2"))[2]["entries"], [], "nor in a list")
    other = s.post("u", a.entry(1), **bearer("rw2"), Idempotency_Key="t")
    t.check(other[0] == 201 and other[2] != body, "a key is the tenant's own")
    t.equal(f.get(s.http, "/healthz")[0], 200, "/healthz asks for none")
    s.stop()


def encrypted(t, db, firnd):
    """TLS, and certificates that are read again."""
    for name in ("first", "second"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", t.state(name + ".key"), "-out",
                        t.state(name + ".pem")], check=True, capture_output=True, timeout=f.LIMIT)
    cert, key = t.state("cert.pem"), t.state("key.pem")

    def use(name):
        shutil.copy(t.state(name + ".pem"), cert)
        shutil.copy(t.state(name + ".key"), key)

    def trust(name):
        c = http.client.HTTPSConnection(s.http, context=ssl.create_default_context(cafile=t.state(name + ".pem")), timeout=f.SILENCE)
        try:
            c.request("POST", "/v1/users/tls/logs", json.dumps(a.entry(1)), {"Content-Type": "application/json"})
            return c.getresponse().status
        except ssl.SSLCertVerificationError:
            return None
        finally:
            c.close()
    use("first")
    s = a.Auditlog(t, db, firnd, config=f"tls: {{ cert: {cert}, key: {key} }}\n", serve=False)
    s.start(wait=False)
    f.wait_for("an answer by TLS", lambda: trust("first") == 201)
    t.equal(trust("second"), None, "another certificate")
    use("second")
    s.signal(signal.SIGHUP)
    f.wait_for("the new certificate", lambda: trust("second") == 201)
    os.remove(key)
    s.signal(signal.SIGHUP)
    f.wait_for("the log", lambda: "reload_failed" in s.log())
    t.equal(trust("second"), 201, "a key that cannot be read changes nothing")
    s.stop()


def traced(t, db, firnd):
    """Spans of a write, of its parts and of each attempt to get IDs."""
    del firnd
    c = collector.Collector()
    maker = f.Firnd(t, t.state("traced"), "--layout=audit", f"--store=sqlite:{t.state('firnd')}/firn.db").wait_ready()
    s = a.Auditlog(t, db, [maker.snowflake], config=f"tracing: {{ endpoint: '{c.url}' }}\n", more="&block=1&fresh=50ms&retries=1")
    status, _, body = s.post("traced", a.entry(1), traceparent=collector.parent(7), X_Request_ID="r-7")
    t.equal(status, 201, f"POST: {body}")
    spans = {x["name"]: x for x in c.wait(7, 4)}
    root = spans["POST /v1/users/{user}/logs"]
    t.equal((root["parentSpanId"], root["of"]["firn.request_id"], root["of"]["http.response.status_code"], root["of"]["firn.shard"]),
            (collector.PARENT, "r-7", 201, shard(int(body["id"]))), "the request's span")
    for name in ("queue", "ids", "commit"):
        t.equal(spans[name]["parentSpanId"], root["spanId"], name)
    t.equal(spans["commit"]["of"]["firn.batch_rows"], 1, "rows of the batch")
    s.post("traced", a.entry(1))
    s.post("traced", a.entry(1), traceparent=collector.parent(8, flags="00"))
    maker.kill()

    last = [100]

    def refused():
        last[0] += 1
        return problem(s.post("traced", a.entry(1), traceparent=collector.parent(last[0])))[0] == 503
    f.wait_for("the IDs in hand to be old", refused)
    t.check(refused(), "still no IDs")  # the first one may have waited for what another one had asked for
    spans = c.wait(last[0], 5)
    t.equal(sorted(x["name"] for x in spans if x["name"].startswith("attempt") and x["status"].get("code") == 2), ["attempt 1", "attempt 2"],
            f"a span for each attempt: {[x['name'] for x in spans]}")
    t.equal(problem(s.ask("GET", "/v1/logs/1", traceparent=collector.parent(9)))[0], 404, "GET")
    t.equal(c.wait(9)[0]["of"]["http.response.status_code"], 404, "the span of a read")
    t.equal((c.of_trace(8), c.problems), ([], []), "what is not to be recorded")
    s.stop()
    c.close()


def database_killed(t, db, firnd):
    """kill -9 of a database under load, and a pause: the other goes on, nothing acknowledged is lost, nothing is twice."""
    s = a.Auditlog(t, db, firnd)
    load = a.Load(lambda: s.http, clients=6)
    load.wait(100)
    for _ in range(2):
        victim = db.servers[0]
        victim.end(signal.SIGKILL)
        f.wait_for("the database to be missed", lambda: s.metrics("firn_auditlog_up")['shard="0"'] == 0)
        t.equal(s.metrics("firn_auditlog_up")['shard="1"'], 1, "the other is there")
        done = s.metrics("firn_auditlog_rows_total")['shard="1"']
        with a.Connection(s.http) as c:
            users = {f"v{i}": c.ask("POST", f"/v1/users/v{i}/logs", {"actor": "a", "action": "x"}) for i in range(12)}
        said = {problem(answer) if answer[0] != 201 else (201, "") for answer in users.values()}
        t.equal(said, {(201, ""), (503, "shard-away")}, "of users on both")
        t.check(all(answer[1]["Retry-After"] for answer in users.values() if answer[0] == 503), "503 with Retry-After")
        t.check(s.metrics("firn_auditlog_rows_total")['shard="1"'] > done, "the other database takes rows")
        victim.start()
        s.wait_up()
        load.wait(100)
    db.servers[1].pause()
    f.wait_for("a queue", lambda: s.metrics("firn_auditlog_queue_rows")['shard="1"'] > 0 or load.refused > 100)
    db.servers[1].resume()
    load.wait(50)
    load.end()
    load.check(t, db.rows())
    t.say(f"repeated commits: {sum(s.metrics('firn_auditlog_commits_repeated_total').values()):.0f}")
    s.stop()


def answer_lost(t, db, firnd):
    """The connection ends before a commit, and after it: the same batch is committed again, and each entry is there once."""
    relay = a.Relay(db.servers[0].port)
    s = a.Auditlog(t, [relay.url, *db.urls()[1:]], firnd)
    user = user_of(s, 0)
    lines = "".join(json.dumps(a.entry(i, by="lost")) + "\n" for i in range(3))
    ids = []
    for how in ("before", "after"):
        for fields in ({}, {"Idempotency_Key": f"lost-{how}"}):
            relay.cut = how
            status, head, body = s.post(user, lines, Content_Type="application/x-ndjson", **fields)
            t.equal((status, relay.cut, head["Idempotency-Replayed"]), (201, None, None), f"cut {how} the commit, {fields}: {body}")
            ids += [int(i) for i in body["ids"]]
            if fields:
                t.equal(s.post(user, lines, Content_Type="application/x-ndjson", **fields)[2], body, "the key's answer")
    t.equal((len(set(ids)), relay.cuts), (12, 4), "IDs and cuts")
    t.equal(sorted(r[1] for r in db.rows() if r[4].get("by") == "lost"), sorted(ids), "rows")
    t.equal(s.metrics("firn_auditlog_commits_repeated_total")['shard="0"'], 4, "repeated commits")
    s.stop()
    # It stays away: the client hears that nobody knows, and then the row is there all the same.
    s = a.Auditlog(t, [relay.url, *db.urls()[1:]], firnd, "--limits-wait-ms=1000")
    relay.cut, relay.port, port = "after", 1, relay.port
    f.wait_for("an unknown outcome of a database that stays away",
               lambda: problem(s.post(user, a.entry(1, by="late"), Idempotency_Key="late")) == (503, "outcome-unknown"))
    t.equal(problem(s.post(user, a.entry(2))), (503, "shard-away"), "those after it")
    relay.port = port
    s.wait_up()
    status, head, _ = s.post(user, a.entry(1, by="late"), Idempotency_Key="late")
    t.equal((status, head["Idempotency-Replayed"]), (201, "true"), "the same request again")
    t.equal(len([r for r in db.rows() if r[4].get("by") == "late"]), 1, "one row")
    s.stop()
    relay.close()


def one_to_blame(t, db, firnd):
    """Among requests of one batch one has a value that the database does not take; a partition that is missing is made."""
    s = a.Auditlog(t, db, firnd, "--limits-detail-bytes=60000", "--limits-commit-ms=500")
    bad = '{"actor":"a","action":"b","detail":{"x":0.%s1}}' % ("0" * 20000)
    said = {}

    def write(i):
        said[i] = s.post(f"blame{i // 3}", bad if i % 3 == 0 else a.entry(i))
    threads = [threading.Thread(target=write, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(f.LIMIT)
    t.equal({problem(said[i]) for i in range(0, 24, 3)}, {(422, "refused")}, "what the database does not take")
    t.equal({said[i][0] for i in range(24) if i % 3}, {201}, "the others of their batches")
    for server in db.servers:
        server.sql("DO $$ DECLARE n text; BEGIN FOR n IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = "
                   "'firn_audit.log'::regclass LOOP EXECUTE 'DROP TABLE ' || n; END LOOP; END $$")
    t.equal({s.post(f"part{i}", a.entry(i))[0] for i in range(8)}, {201}, "without a partition: it is made")
    s.stop()


def stuck(t, db, firnd):
    """A table that somebody has locked: clients hear so in time, and SIGTERM is obeyed. A partition that is detached and so is
    not made again: a refusal, and no attempt without an end."""
    s = a.Auditlog(t, db, firnd, "--limits-wait-ms=1000")
    server = db.servers[0]
    user = user_of(s, 0)
    lock = subprocess.Popen([postgres.tool("psql"), "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", postgres.USER, "postgres"],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    lock.stdin.write("BEGIN; LOCK TABLE firn_audit.log;\n")
    lock.stdin.flush()
    f.wait_for("the lock", lambda: server.sql("SELECT count(*) FROM pg_locks WHERE relation = 'firn_audit.log'::regclass AND granted"
                                              " AND mode = 'AccessExclusiveLock'") == "1")
    said = []
    f.wait_for("an unknown outcome", lambda: said.append(problem(s.post(user, a.entry(1)))) or (503, "outcome-unknown") in said)
    f.wait_for("those behind it", lambda: problem(s.post(user, a.entry(2)))[0] == 503)
    s.signal(signal.SIGTERM)
    t.equal(s.process.wait(f.LIMIT), 0, "an end while the table is locked")
    lock.stdin.close()
    lock.wait(f.LIMIT)
    s.start()
    days = server.sql("SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'firn_audit.log'::regclass").split()
    server.sql("; ".join(f"ALTER TABLE firn_audit.log DETACH PARTITION {day}" for day in days))
    t.equal(problem(s.post(user, a.entry(3))), (503, "shard-away"), "a partition that cannot be made")
    t.check("no partition" in s.log(), "the log says it")
    server.sql(f"DROP TABLE {', '.join(days)}")
    t.equal(s.post(user, a.entry(4))[0], 201, "then it is made")
    s.stop()


def page(t, db, firnd):
    """What docs/auditlog.md begins with, and its table of errors."""
    del firnd
    with open(os.path.join(HERE, "../../docs/auditlog.md"), encoding="utf-8") as text:
        text = text.read()
    with open(os.path.join(HERE, "../../src/auditlog/problem.h"), encoding="utf-8") as header:
        kinds = set(re.findall(r'X\(\w+, \d+, "([a-z-]+)"', header.read()))
    t.equal(kinds - set(re.findall(r"`([a-z-]+)`", text)), {"no-such-route", "method-not-allowed", "internal", "not-ready"},
            "problems that the page leaves out")
    shell = text.split("```sh by tests/integration/auditlog.py\n")[1].split("```")[0]
    yaml = shell.split("<<'END'\n")[1].split("END\n")[0]
    path = t.state("page.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(yaml)
    with open(os.path.join(HERE, "../../man/firn-auditlog.yaml.5.scd"), encoding="utf-8") as man:
        man = man.read()
    p = subprocess.run([os.path.join(t.bin, "firn-auditlog"), "--help"], capture_output=True, text=True, timeout=f.LIMIT, check=False)
    flags = re.findall(r"^  --([a-z-]+)=", p.stdout, re.M)
    known = {n.replace(".", "-").replace("_", "-") for n in re.findall(r"\*([a-z_.]+)\*", man)}
    t.equal([flag for flag in flags if flag not in known], [], f"settings that the man page leaves out, of {len(flags)}")
    for config in (path, os.path.join(HERE, "../../deploy/firn-auditlog.yaml")):
        p = subprocess.run([os.path.join(t.bin, "firn-auditlog"), "--check-config", "--config", config], capture_output=True, text=True,
                           timeout=f.LIMIT, check=False)
        t.equal(p.returncode, 0, f"--check-config of {config}: {p.stdout}{p.stderr}")
    maker = f.Firnd(t, t.state("page"), "--layout=audit").wait_ready()
    s = a.Auditlog(t, db, [maker.snowflake])
    body, target = re.search(r"curl -d '(.*?)' -H 'Content-Type: application/json' 127.0.0.1:9100(\S+)", shell).groups()
    status, _, said = s.ask("POST", target, body)
    t.equal(status, 201, f"the page's request: {said}")
    t.equal(s.ask("GET", re.search(r"curl 127.0.0.1:9100(\S+)", shell).group(1))[2]["entries"][0]["id"], said["id"], "and the other")
    p = subprocess.run([os.path.join(t.bin, "firn"), "inspect", "--layout", "audit", said["id"]], capture_output=True, text=True,
                       timeout=f.LIMIT, check=False)
    t.check(p.returncode == 0 and "shard" in p.stdout, f"firn inspect: {p.stdout}{p.stderr}")
    s.stop()


def service_killed(t, db, firnd):
    """kill -9 of the service under load: keys make every entry be there once; then a drain under load."""
    s = a.Auditlog(t, db, firnd)
    at = {"http": s.http}
    load = a.Load(lambda: at["http"], clients=6)
    for _ in range(2):
        load.wait(100)
        at["http"] = None
        s.kill()
        s.start()
        at["http"] = s.http
    load.wait(100)
    began = load.lost
    t.equal(s.stop(), 0, "a drain under load ends well")
    at["http"] = None
    t.check("clean=yes" in s.log(), "and cleanly")
    s.start()
    at["http"] = s.http
    load.wait(20)
    load.end()
    load.check(t, db.rows())
    t.say(f"answers lost by the drain: {load.lost - began} (connections that it closed)")
    s.stop()


def pairs_killed(t, db, firnd):
    """Two services on the same databases; one of them and a database are killed together, in turn. Clients go to the other
    service with the same key while the first one's commit may still be under way."""
    two = [a.Auditlog(t, db, firnd) for _ in range(2)]
    alive = {0: two[0].http, 1: two[1].http}
    turn = {"n": 0}

    def at():
        turn["n"] += 1
        there = list(alive.values())
        return there[turn["n"] // 7 % len(there)] if there else None  # each client changes between them now and then
    load = a.Load(at, clients=6, users=12)
    for i in range(3):
        load.wait(60)
        alive.pop(i % 2)
        server = db.servers[i // 2 % 2]
        server.end(signal.SIGKILL)
        two[i % 2].kill()
        server.start()
        alive[i % 2] = two[i % 2].start().http
    load.wait(60)
    load.end()
    load.check(t, db.rows())
    for s in two:
        # A user's entries are listed in one order, whichever service is asked.
        lists = [s.ask("GET", f"/v1/users/u{u}/logs?limit=1000")[2]["entries"] for u in range(12)]
        t.check(all(of == sorted(of, key=lambda e: -int(e["id"])) for of in lists), "lists are newest first")
        t.equal(s.stop(), 0, "exit status")


def generator_away(t, db, firnd):
    """A generator that is gone: another one is asked; without any, 503 and nothing is written."""
    del firnd
    def maker(name, **listen):  # on one store, or two of them could have one slot
        return f.Firnd(t, t.state(name), "--layout=audit", f"--store=sqlite:{t.state('firnd')}/firn.db", listen=listen).wait_ready()
    one, two = maker("one"), maker("two")
    s = a.Auditlog(t, db, [one.snowflake, two.snowflake], more="&block=4&fresh=200ms")
    load = a.Load(lambda: s.http, clients=3)
    load.wait(50)
    at = one.snowflake
    one.kill()
    load.wait(50)
    one = maker("one", snowflake=at)
    two.kill()  # the client used one of the two
    load.wait(50)
    f.wait_for("the metrics to say it", lambda: sum(s.metrics("firn_auditlog_id_failures_total").values()) > 0)
    t.check("generator_failed" in s.log(), "the log says it")
    load.end()
    load.check(t, db.rows())
    one.kill()
    f.wait_for("the IDs in hand to be old", lambda: problem(s.post("u", a.entry(1)))[0] == 503)
    s.stop()
    wrong = f.Firnd(t, t.state("wrong")).wait_ready()
    s = a.Auditlog(t, db, [wrong.snowflake], more="&retries=0")
    status, what = problem(s.post("u", a.entry(1)))
    t.equal((status, what), (503, "no-id"), "a firnd with another layout")
    t.check("--layout audit" in s.log(), "the log says what to do")
    s.stop()
    wrong.stop()


def bounded(t, db, firnd):
    """A database that is stopped: what waits is bounded, the rest is refused at once."""
    s = a.Auditlog(t, db, firnd, "--limits-queue=20", "--limits-batch=5")
    db.servers[0].pause()
    said, lock = [], threading.Lock()

    def write(i):
        answer = s.post(f"w{i % 8}", a.entry(i))
        with lock:
            said.append(problem(answer) if answer[0] != 201 else (201, ""))
    threads = [threading.Thread(target=write, args=(i,)) for i in range(160)]
    for thread in threads:
        thread.start()
    f.wait_for("a refusal", lambda: (503, "busy") in said)
    t.check(s.metrics("firn_auditlog_queue_rows")['shard="0"'] <= 20, "the queue is bounded")
    f.wait_for("a lag", lambda: s.metrics("firn_auditlog_lag_seconds")['shard="0"'] > 0.1)
    db.servers[0].resume()
    for thread in threads:
        thread.join(f.LIMIT)
    t.equal(set(said), {(201, ""), (503, "busy")}, "answers")
    s.stop()


def legacy(t, db, firnd):
    """yyyyMMddHHmmssSSS in the place of IDs: collisions, which are 409."""
    s = a.Auditlog(t, db, firnd, "--id=legacy")
    load = a.Load(lambda: s.http, clients=8, users=4, keys=False)
    f.wait_for("a collision", lambda: any(status == 409 for _, status, _ in load.other))
    load.wait(50)
    load.end()
    t.equal({status for _, status, _ in load.other}, {409}, "other answers")
    t.check(sum(s.metrics("firn_auditlog_duplicates_total").values()) == len(load.other), "the metrics count them")
    rows = {(r[1], r[4]["n"]) for r in db.rows("legacy")}
    t.check(all((i, n) in rows for n, i in load.acknowledged.items()), "what was acknowledged is there")
    t.equal(s.ask("GET", "/v1/users/u1/logs?limit=3")[0], 200, "lists")
    t.equal(problem(s.ask("GET", "/v1/logs/20261119120000000")), (404, "no-such-entry"), "no entry is found by its stamp")
    t.say(f"{len(load.acknowledged)} written, {len(load.other)} collided")
    # A request that collided left nothing, not even its key: what is acknowledged later is there.
    late = []

    def write(n):
        key = {"Idempotency_Key": f"legacy-{n}"}
        if s.post("u1", a.entry(n, by="again"), **key)[0] == 409:
            late.append((n, f.wait_for("a millisecond of its own", lambda: (r := s.post("u1", a.entry(n, by="again"), **key))[0] == 201 and r[2])))
    n = 0
    while not late and n < 6000:
        threads = [threading.Thread(target=write, args=(n + i,)) for i in range(6)]
        n += len(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(f.LIMIT)
    rows = {(r[1], r[4]["n"]) for r in db.rows("legacy") if r[4].get("by") == "again"}
    t.check(late and all((int(body["id"]), n) in rows for n, body in late), f"keys of requests that collided: {late}")
    s.stop()


def main():
    if not postgres.tool("postgres"):
        print("auditlog: PostgreSQL is missing: install postgresql")
        sys.exit(1)
    with f.Test("auditlog") as t, a.Databases(t, 2) as db:
        maker = f.Firnd(t, t.state("firnd"), "--layout=audit").wait_ready()
        if t.only and "schema" not in t.only:
            a.Auditlog(t, db, [maker.snowflake], serve=False).command("init")
        for part in (schema, entries, keys, tokens, encrypted, traced, page, answer_lost, one_to_blame, stuck, database_killed, service_killed, pairs_killed, generator_away, bounded, legacy):
            t.section(part, db, [maker.snowflake])
            if maker not in t.running:  # a section ends all that runs
                maker = f.Firnd(t, t.state("firnd"), "--layout=audit").wait_ready()


main()
