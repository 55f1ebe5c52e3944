#!/usr/bin/env python3
"""
What is particular to Redis: the switch that must be given, settings that lose writes, restart and fail-over as another
store, scripts that are forgotten, refusals that are no doubt, TLS and users.
"""
import contextlib
import os
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import store_cases as t  # noqa: E402  pylint: disable=wrong-import-position
from engines.redis import Redis, Server  # noqa: E402  pylint: disable=wrong-import-position


def url(*servers, more="unsafe_ok=yes"):
    return f"redis://{','.join(f'127.0.0.1:{s.port}' for s in servers)}/0?{more}"


def follows(replica, master):
    """Connected, and with all of the master's data."""
    i = replica.info("replication")
    return i["role"] == "slave" and i["master_link_status"] == "up" and \
        i["slave_repl_offset"] == master.info("replication")["master_repl_offset"]


def demand_a_replica(master):
    """Also wait until the one it has counts."""
    master.do("CONFIG", "SET", "min-replicas-to-write", "1")
    t.wait_for("a good replica", lambda: master.info("replication")["min_slaves_good_slaves"] == "1")


def case_the_switch_must_be_given(folder):
    with t.running(Redis(folder)) as e:
        t.open_fails(f"redis://{e.endpoints[0]}/0", "FIRN_ENOTSUP", "unsafe_ok=yes")
        t.open_fails(url(e.server, more="unsafe_ok=maybe"), "FIRN_EFORMAT", "yes")
        t.open_fails(url(e.server, more="unsafe_ok=yes&prefix=a:b"), "FIRN_EFORMAT", "prefix")
        t.open_fails(f"redis://{e.endpoints[0]}/firn?unsafe_ok=yes", "FIRN_EFORMAT", "database")
        t.open_fails(url(e.server, more="unsafe_ok=yes&ca=x"), "FIRN_EFORMAT", "tls=yes")


def case_settings_that_forget_are_refused(folder):
    with t.running(Redis(folder)) as e:
        for name, bad in (("appendfsync", "everysec"), ("appendonly", "no"), ("no-appendfsync-on-rewrite", "yes"),
                          ("maxmemory-policy", "allkeys-lru")):
            was = e.server.do("CONFIG", "GET", name)[1]
            e.server.do("CONFIG", "SET", name, bad)
            t.open_fails(e.url(), "FIRN_ENOTSUP", name, bad)
            with t.opened(url(e.server, more="unsafe_ok=dev")):
                pass
            e.server.do("CONFIG", "SET", name, was)
        with t.opened(e.url()) as p:
            t.expect(p.cas("k", None, "1"), "0")


def case_hidden_settings_are_named(folder):
    with t.running(Redis(folder)) as e:
        e.server.do("ACL", "SETUSER", "plain", "on", ">secret@", "~*", "&*", "+@all", "-config")
        who = e.url().replace("redis://", "redis://plain:secret%40@")
        t.open_fails(who, "FIRN_ENOTSUP", "config|get", "unsafe_ok=dev")
        t.open_fails(e.url().replace("redis://", "redis://plain:wrong@"), "FIRN_EIO", "WRONGPASS")
        with t.opened(who.replace("unsafe_ok=yes", "unsafe_ok=dev")) as p:
            t.expect(p.cas("k", None, "1"), "0")
            assert e.keys("firn") == [b"k"]
        e.server.do("ACL", "SETUSER", "plain", "+config|get")
        with t.opened(who) as p:
            assert p.read("k").value == b"1"


def case_password_alone(folder):
    with t.running(Redis(folder, requirepass="only")) as e:
        t.open_fails(e.url(), "FIRN_EIO", "NOAUTH")
        with t.opened(e.url().replace("redis://", "redis://:only@")) as p:
            t.expect(p.cas("k", None, "1"), "0")


def case_restart_is_another_store(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url()) as p:
        before = p.identity().value
        t.expect(p.cas("k", None, "1"), "0")
        for end in (e.restart, e.kill):
            end()
            if end == e.kill:
                t.expect(p.cas("k", "1", "2"), "FIRN_EIO")
                e.restart()
            assert p.read("k").value == b"1"
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
            after = p.identity().value
            assert after != before
            before = after
        t.expect(p.cas("k", "1", "2"), "0")


def pair(folder):
    master = Server(folder + "/a")
    return master, Server(folder + "/b", replicaof=f"127.0.0.1 {master.port}")


def case_replicas_need_a_master_that_stops(folder):
    master, replica = pair(folder)
    with t.running(master, replica):
        t.wait_for("the replica", lambda: follows(replica, master))
        t.open_fails(url(master), "FIRN_ENOTSUP", "min-replicas-to-write")
        demand_a_replica(master)
        master.do("CONFIG", "SET", "min-replicas-max-lag", "60")
        t.open_fails(url(master), "FIRN_ENOTSUP", "min-replicas-max-lag")
        master.do("CONFIG", "SET", "min-replicas-max-lag", "3")
        t.open_fails(url(replica), "FIRN_EIO", "replica")
        with t.opened(url(replica, master), 1000) as p:
            t.expect(p.cas("k", None, "1"), "0")
            replica.stop()
            t.wait_for("the master to miss it", lambda: master.info("replication")["connected_slaves"] == "0")
            t.expect(p.cas("k", "1", "2"), "FIRN_EIO", "NOREPLICAS")
            assert p.read("k").value == b"1"
            replica.start()
            t.wait_for("the replica", lambda: follows(replica, master))
            demand_a_replica(master)
            t.expect(p.cas("k", "1", "2"), "0")


def case_a_first_replica_begins_another_history(folder):
    master, replica = pair(folder)
    with t.running(master), t.opened(url(master)) as p:
        t.expect(p.cas("k", None, "1"), "0")
        with t.running(replica):
            t.wait_for("the replica", lambda: follows(replica, master))
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")


def case_fail_over_is_another_store(folder):
    master, replica = pair(folder)
    with t.running(master, replica):
        t.wait_for("the replica", lambda: follows(replica, master))
        demand_a_replica(master)
        with t.opened(url(master, replica), 5000) as p:
            before = p.identity().value
            t.expect(p.cas("k", None, "1"), "0")
            t.wait_for("the replica to have it", lambda: follows(replica, master))
            replica.do("REPLICAOF", "NO", "ONE")  # the connection to the old master stays
            master.do("REPLICAOF", "127.0.0.1", replica.port)
            t.wait_for("the other way round", lambda: follows(master, replica))
            t.expect(p.cas("k", "1", "2"), "FIRN_EIO", "min-replicas-to-write")  # the new one is looked at, too
            demand_a_replica(replica)
            t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
            assert p.read("k").value == b"1"
            assert p.identity().value != before
            t.expect(p.cas("k", "1", "2"), "0")
            replica.end(signal.SIGKILL)
            master.do("REPLICAOF", "NO", "ONE")
            t.expect(p.cas("k", "2", "3"), "FIRN_ESTORE")


def case_promoted_under_an_open_connection(folder):
    """The same server, another history: run_id stays, master_replid does not."""
    with t.running(Redis(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        run_id, replid = e.server.info("server")["run_id"], e.server.info("replication")["master_replid"]
        e.server.do("REPLICAOF", "127.0.0.1", "1")
        t.expect(p.cas("k", "1", "2"), "FIRN_EIO", "replica")
        e.server.do("REPLICAOF", "NO", "ONE")
        assert e.server.info("server")["run_id"] == run_id
        assert e.server.info("replication")["master_replid"] != replid
        t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")


def case_forgotten_scripts_are_sent_again(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        for i in range(1, 4):
            e.server.do("SCRIPT", "FLUSH")
            t.expect(p.cas("k", str(i), str(i + 1)), "0")
            e.server.do("SCRIPT", "FLUSH")
            assert p.read("k").value == str(i + 1).encode()
            e.server.do("SCRIPT", "FLUSH")
            assert p.scan("").found == [(b"k", str(i + 1).encode())]


def case_refusals_are_no_doubt(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        e.server.do("CONFIG", "SET", "maxmemory", "1")
        t.expect(p.many(("k", "1", "2"), ("l", None, "1")), "FIRN_EIO", "OOM")
        e.server.do("CONFIG", "SET", "maxmemory", "0")
        e.server.do("LPUSH", "firn:list", "x")
        t.expect(p.many(("k", "1", "2"), ("list", None, "1")), "FIRN_EIO", "WRONGTYPE")
        assert p.read("k").value == b"1"
        e.server.do("RENAME", "firn", "index")
        e.server.do("SET", "firn", "no index")
        t.expect(p.cas("k", "1", "2"), "FIRN_EIO", "WRONGTYPE")
        e.server.do("RENAME", "index", "firn")
        t.expect(p.cas("k", "1", "2"), "0")


def case_silence_after_sending_is_unknown_and_lands_late(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url(), 500) as p:
        t.expect(p.cas("k", None, "1"), "0")
        e.pause()
        t.expect(p.cas("k", "1", "2"), "FIRN_EUNKNOWN", "in time")
        t.expect(p.cas("k", "1", "3"), "FIRN_EIO", "in time")  # no connection, so nothing was sent
        t.expect(p.read("k"), "FIRN_EIO")
        e.resume()
        t.wait_for("the write to land", lambda: p.read("k").value == b"2")
        t.expect(p.cas("k", "1", "3"), "FIRN_ECONFLICT")


def case_scan_is_by_bytes_and_by_pages(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url(), 20000) as p:
        keys = sorted({b"s/" + bytes([65 + i % 26, 1 + i * 7 % 255, 97 + i % 13]) for i in range(1300)})
        for at in range(0, len(keys), 200):
            a = p.many(*[(k, None, k) for k in keys[at:at + 200]])
            assert set(a.results) == {"0"}
        t.expect(p.cas("t", None, "after"), "0")
        assert p.scan("s/").found == [(k, k) for k in keys]
        e.delete("firn", keys[3])
        t.expect(p.cas(keys[5], keys[5], None), "0")
        assert p.scan("s/").found == [(k, k) for k in keys if k not in (keys[3], keys[5])]
        assert [k for k, _ in p.scan("").found] == [k for k in keys if k not in (keys[3], keys[5])] + [b"t"]


class Liar(threading.Thread):
    """A server that says what it is told to, to writes; else what a lone master says."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.says = self.listener.getsockname()[1], b""

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                with sock, contextlib.suppress(OSError, ValueError):
                    self.serve(sock, sock.makefile("rb"))

    def serve(self, sock, file):
        bulk = b"role:master\r\nconnected_slaves:0\r\n"
        while True:
            words = []
            for _ in range(int(file.readline()[1:])):
                words.append(file.read(int(file.readline()[1:]) + 2)[:-2])
            if words[0] == b"INFO":
                sock.sendall(b"$%d\r\n%s\r\n" % (len(bulk), bulk))
            elif words[0] == b"SELECT":
                sock.sendall(b"+OK\r\n")
            elif len(words) == 3:
                sock.sendall(b"*2\r\n" + (b"$40\r\n" + b"a" * 40 + b"\r\n") * 2)
            else:
                sock.sendall(self.says)
                if not self.says.endswith(b"\n"):
                    return

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def case_answers_that_no_redis_gives(folder):
    del folder
    with t.running(Liar()) as e, t.opened(url(e, more="unsafe_ok=dev"), 1000) as p:
        for says, result in ((b"*1\r\n:1\r\n", "0"), (b"*1\r\n:0\r\n", "FIRN_ECONFLICT"),
                             (b"*1\r\n:1\r\n+OK\r\n", "FIRN_EUNKNOWN"), (b"*2\r\n:1\r\n:1\r\n", "FIRN_EUNKNOWN"),
                             (b"*0\r\n", "FIRN_EUNKNOWN"), (b"*-1\r\n", "FIRN_EUNKNOWN"), (b":1\r\n", "FIRN_EUNKNOWN"),
                             (b"*1\r\n$1\r\n1\r\n", "FIRN_EUNKNOWN"), (b"*1\r\n*1\r\n:1\r\n", "FIRN_EUNKNOWN"),
                             (b"$-1\r\n", "FIRN_EUNKNOWN"), (b"+OK\r\n", "FIRN_EUNKNOWN"), (b"?\r\n", "FIRN_EUNKNOWN"),
                             (b"-ERR upstream failure\r\n", "FIRN_EUNKNOWN"), (b"-OOMPH\r\n", "FIRN_EUNKNOWN"),
                             (b"*1\r\n:", "FIRN_EUNKNOWN"), (b"", "FIRN_EUNKNOWN"), (b"*1\r\n", "FIRN_EUNKNOWN"),
                             (b"HTTP/1.1 200 OK\r\n\r\n", "FIRN_EUNKNOWN"), (b"-BUSY a script runs\r\n", "FIRN_EIO"),
                             (b"$4\r\nrole\r\n", "FIRN_EIO"), (b"$5\r\nstore\r\n", "FIRN_ESTORE")):
            e.says = says
            a = p.cas("k", "1", "2")
            assert a.result == result, f"{says}: {a}"
            assert p.read("k").result in ("FIRN_EIO", "FIRN_ENOENT"), says
        e.says = b"*1\r\n:1\r\n"
        t.expect(p.cas("k", "1", "2"), "FIRN_ESTORE")
        t.expect(p.identity(), "0")
        t.expect(p.cas("k", "1", "2"), "0")


def case_store_clock_is_the_servers(folder):
    with t.running(Redis(folder)) as e, t.opened(e.url()) as p:
        t.expect(p.cas("k", None, "1"), "0")
        assert abs(p.read("k").store_ms - time.time() * 1000) < 60000


def case_tls(folder):
    cert, key = t.certificate(folder)
    other, _ = t.certificate(folder, "other")
    mine, mine_key = t.certificate(folder, "client")
    with open(folder + "/trusted", "w", encoding="ascii") as f:
        for name in (cert, mine):
            with open(name, encoding="ascii") as c:
                f.write(c.read())
    s = Server(folder + "/s", tls_cert_file=cert, tls_key_file=key, tls_ca_cert_file=folder + "/trusted")
    plain, s.settings["tls-port"] = s.port, Server(folder + "/port").port
    with t.running(s):
        s.port = s.settings["tls-port"]
        base = url(s, more="unsafe_ok=yes&tls=yes")
        good = base + f"&ca={cert}&cert={mine}&key={mine_key}"
        with t.opened(good) as p:
            t.expect(p.cas("k", None, "1"), "0")
            a = p.many(*[(f"n{i}", None, "v" * 1000) for i in range(200)])  # many TLS records
            assert set(a.results) == {"0"}
            assert len(p.scan("n").found) == 200
        t.open_fails(base + f"&ca={other}&cert={mine}&key={mine_key}", "FIRN_EIO", "TLS", "self-signed")
        t.open_fails(base + f"&ca={cert}", "FIRN_EIO")  # it wants a certificate
        t.open_fails(base + f"&ca={cert}&cert={mine}", "FIRN_EFORMAT", "key=")
        t.open_fails(base + f"&ca={folder}/none", "FIRN_EIO", "ca=")
        t.open_fails(good.replace(f":{s.port}/", f":{plain}/"), "FIRN_EIO")  # no TLS there
        t.open_fails(good.replace("127.0.0.1", "localhost"), "FIRN_EIO", "hostname mismatch")


t.main([f for n, f in list(globals().items()) if n.startswith("case_")], Redis.missing())
