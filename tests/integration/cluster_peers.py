#!/usr/bin/env python3
"""
What comes in at a member's port: peers with certificates, with old ones, without any, and rude ones.
"""
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from cluster_world import Cluster, Load  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position


def certificates(t, name):
    """An authority and a certificate of it for this machine."""
    folder = t.state(name)
    os.mkdir(folder)

    def openssl(*args):
        p = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        if p.returncode:
            raise f.NotThere(f"openssl {args}: {p.stderr}")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=cluster", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=member", "-keyout", "member.key", "-out", "member.csr")
    with open(os.path.join(folder, "ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "member.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "ext", "-out", "member.pem")
    return {"ca": os.path.join(folder, "ca.pem"), "cert": os.path.join(folder, "member.pem"),
            "key": os.path.join(folder, "member.key")}


def sealed(t):
    """TLS between members: all of it goes through, and nobody else comes in."""
    tls, other = certificates(t, "ours"), certificates(t, "others")
    with Cluster(t, "tls", 3, "--cluster-snapshot-every=100", "--cluster-snapshot-keep=20", tls=tls) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(150)
        for _ in range(3):
            leader = c.leader()
            c.kill(leader)
            load.wait(50)
            c.spawn(leader)
            c.wait([leader])
        lost = (c.leader() + 1) % 3  # a whole snapshot goes through, too
        t.equal(c.firn(c.leader(), "remove", c.id_of(lost))[0], 0, "a member was removed")
        c.kill(lost)
        shutil.rmtree(c.data(lost))
        c.spawn(lost, "--cluster-join", c.endpoints[c.leader()])
        c.members(3, c.leader())
        c.wait([lost])
        load.end()
        load.check(t)
        for who, what in ((None, "plain"), (other, "another authority's"), ({**tls, "ca": other["ca"]}, "not trusted")):
            try:
                with raft.Link(c.endpoints[0], 5, who):
                    t.check(False, f"a client that is {what} was welcomed")
            except (OSError, raft.RaftError):
                t.check(True, what)
        host, port = c.endpoints[0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=f.LIMIT) as silent:
            t.equal(silent.recv(1), b"", "who says nothing is sent away")
        port = raft.free_ports(1)[0]
        stranger = f.Firnd(t, t.state("stranger"), "--store=raft:", "--cluster-listen", f"127.0.0.1:{port}",
                           "--cluster-join", c.endpoints[0])
        stranger.wait_log("join_failed")
        t.equal(len(c.status(0)["members"]), 3, "a plain stranger is not let in; members")
        stranger.stop()


def renewed(t):
    """Certificates and authority of a cluster that serves are exchanged, by SIGHUP and without a restart."""
    ours, next_ca, other = certificates(t, "old"), certificates(t, "new"), certificates(t, "foreign")

    def copy(what, frm):
        shutil.copyfile(frm[what], ours[what] + ".part")
        os.rename(ours[what] + ".part", ours[what])

    def shown(address, tls):
        """The certificate that a member shows; None where it sends us away."""
        try:
            with raft.Link(address, 5, tls) as link:
                return link.s.getpeercert(binary_form=True)
        except (OSError, raft.RaftError):
            return None

    def der(tls):
        with open(tls["cert"], encoding="ascii") as file:
            return ssl.PEM_cert_to_DER_cert(file.read())

    with Cluster(t, "renewed", 3, tls=ours) as c:
        c.start()
        c.sequence()
        load = Load(c)
        load.wait(50)

        def reload(word="reloaded", which=range(3)):
            before = [c.log(i).count(word) for i in which]
            for i in which:
                c.process[i].send_signal(signal.SIGHUP)
            for i, n in zip(which, before):
                f.wait_for(f"'{word}' of member {i}", lambda i=i, n=n: c.log(i).count(word) > n)

        t.check(shown(c.endpoints[0], next_ca) is None, "another authority's certificate is not taken yet")
        with open(ours["cert"], "ab") as file:  # as a half written file
            file.truncate(100)
        reload("tls_reload_failed")
        t.check(ours["cert"] in c.log(0) and "send SIGHUP again" in c.log(0), f"cause and cure: {c.log(0)[-600:]}")
        t.check(c.glance(1) is None and c.process[1].poll() is None, "our own client has no certificate now")
        load.wait(10)
        with open(ours["ca"], "ab") as both, open(next_ca["ca"], "rb") as file:
            both.write(file.read())
        copy("cert", next_ca)
        reload("tls_reload_failed")  # the key is of the old one
        t.check("does not belong to" in c.log(0), f"which key: {c.log(0)[-600:]}")
        copy("key", next_ca)
        reload()  # from now on both authorities are trusted, and the new certificate is shown
        f.wait_for("the new certificate", lambda: [shown(a, next_ca) for a in c.endpoints] == [der(next_ca)] * 3)
        load.wait(20)
        c.kill(0)  # connections between members are made anew, with the new certificates
        load.wait(20)
        c.spawn(0)
        c.wait([0])
        copy("ca", next_ca)
        reload()
        f.wait_for("the new authority alone", lambda: shown(c.endpoints[1], next_ca) == der(next_ca))
        leader = c.leader()
        t.equal(c.firn(leader, "transfer")[0], 0, "the lead goes over connections of the new authority")
        load.wait(30)
        t.check(shown(c.endpoints[1], {**other, "ca": next_ca["ca"]}) is None, "a foreign certificate is refused")
        t.check([c.process[i].poll() for i in range(3)] == [None] * 3, "nobody was restarted but the one killed")
        load.end()
        load.check(t)


def foreign_members(t):
    """A member of one cluster is added to another one by mistake: it does not listen to that one, and its own goes on."""
    with Cluster(t, "here", 3) as here, Cluster(t, "there", 1) as there:
        here.start()
        there.start()
        here.sequence()
        for _ in range(3):  # there the term is higher, and the log is another one
            there.kill(0)
            there.restart(0)
        load = Load(here)
        load.wait(20)
        victim = (here.leader() + 1) % 3
        before = here.status(0)
        code, said = there.firn(0, "add", here.id_of(victim), here.endpoints[victim])
        t.equal(code, 0, f"it is added as a standby, which needs no answer: {said}")
        f.wait_for("the member to say so", lambda: "foreign_member" in here.log(victim))
        load.wait(100)
        load.end()
        load.check(t)
        here.kill(victim)
        here.restart(victim)
        f.wait_for("it to say so again", lambda: here.log(victim).count("foreign_member") > 1)
        now = here.status(victim)
        t.equal((now["cluster"], len(now["members"])), (before["cluster"], 3), "its cluster, and how many members that has")
        t.check("impossible_message" not in here.log(victim), f"nothing of the other one reached its core: {here.log(victim)}")
        t.equal([m.get("lag") == 0 for m in there.status(0)["members"] if m["address"] == here.endpoints[victim]], [False],
                "there it has nothing of the log")
        t.equal(there.firn(0, "remove", here.id_of(victim))[0], 0, "the cure")


def many_peers(t):
    """More processes that speak as members than a member has room for: they keep no new member out."""
    with Cluster(t, "many", 2) as c:
        c.spawn(0, "--cluster-init", "--cluster-fresh")
        c.wait([0])
        held = []
        for k in range(40):
            held.append(socket.create_connection(tuple(c.endpoints[0].split(":")), timeout=f.LIMIT))
            held[-1].sendall(raft.packed(raft.HELLO, b"firn\x02\x01" + (1000 + k).to_bytes(8, "big") + raft.text(b"127.0.0.1:1")))
            t.equal(len(held[-1].recv(20)), 20, "one that greets as a member is welcomed; bytes")
        c.spawn(1, "--cluster-join", c.endpoints[0])
        c.members(2)
        c.wait([1])
        for s in held:
            s.close()


def rude_peers(t):
    """What no member says: the member ends that connection, and nothing else."""
    key = raft.text(b"\0k")
    read, hello = bytes(8) + b"\1" + key, b"firn\x01"
    member = b"firn\x02\x01" + bytes(7) + b"\x09" + raft.text(b"127.0.0.1:1")
    with Cluster(t, "rude", 1) as c:
        c.start()
        f.wait_for("the slots", lambda: f.get(c.home[0], "/readyz")[0] == 200)
        for what, frames in (
                ("greets again as a member", [(raft.READ, read)] * 3 + [(raft.HELLO, member)]),
                ("greets again in nonsense", [(raft.READ, read)] * 3 + [(raft.HELLO, b"nonsense")]),
                ("greets again as a client", [(raft.READ, read), (raft.HELLO, hello + b"\x02" + bytes(8) + raft.text(b""))]),
                ("speaks Raft as a client", [(raft.READ, read), (raft.RAFT, bytes(88))]),
                ("answers what nobody asked", [(raft.READ, read), (raft.REPLY, bytes(20))]),
                ("welcomes", [(raft.READ, read), (raft.WELCOME, b"")])):
            for _ in range(5):
                with raft.Link(c.endpoints[0]) as link:
                    link.s.sendall(b"".join(raft.packed(kind, body) for kind, body in frames))
                    try:
                        while link.frame()[0] == raft.REPLY:
                            pass
                        t.check(False, f"one that {what} is listened to")
                    except (OSError, raft.RaftError):
                        t.check(True, what)
            t.check(c.process[0].poll() is None, f"the member lives on beside one that {what}: {c.logs()}")
        for what, first in (("asks before a greeting", raft.packed(raft.IDENTITY, b"")),
                            ("is a member of an older version", raft.packed(raft.HELLO, hello + member[5:]))):
            with socket.create_connection(tuple(c.endpoints[0].split(":")), timeout=f.LIMIT) as unknown:
                unknown.sendall(first)
                t.equal(unknown.recv(1), b"", f"who {what} gets")
        with socket.create_connection(tuple(c.endpoints[0].split(":")), timeout=f.LIMIT) as liar:
            liar.sendall(raft.packed(raft.HELLO, member))
            t.equal(len(liar.recv(20)), 20, "a member is welcomed; bytes")
            for body in (b"", bytes(88), b"\1" * 88, bytes([1, 3]) + bytes(86), bytes([1, 5]) + b"\xff" * 86):
                liar.sendall(raft.packed(raft.RAFT, body))
            f.wait_for("the member to serve beside one that sends nonsense", lambda: c.glance(0))
            liar.sendall(raft.packed(raft.READ, read))
            t.equal(liar.recv(1), b"", "a member that asks as a client gets")
        with raft.Link(c.endpoints[0]) as link:
            for address in ("nonsense", 'x","role":"voter"}:1', "a b:1", "a\0b:1", ":1", "a:"):
                try:
                    link.change(raft.ADD, 5, address)
                    t.check(False, f"a member at {address!r} is taken")
                except raft.RaftError as e:
                    t.check("no host:port" in str(e), f"{address!r}: {e}")
        t.equal(len(c.status(0)["members"]), 1, "members")
        deaf = raft.Link(c.endpoints[0])
        scan, end = raft.packed(raft.SCAN, bytes(8) + raft.text(b"") + raft.text(None), 5000), time.monotonic() + f.LIMIT
        try:
            while time.monotonic() < end:
                deaf.s.sendall(scan)
            t.check(False, "one that asks and never listens is sent away")
        except OSError as e:
            t.check(not isinstance(e, TimeoutError), "one that asks and never listens is sent away")
        deaf.s.close()
        c.wait([0])


with f.Test("cluster_peers") as test:
    for part in (sealed, renewed, foreign_members, many_peers, rude_peers):
        test.section(part)
