#!/usr/bin/env python3
"""
A store that cannot be written: full disk, read-only folder, file deleted, replaced or copied while firnd runs.
The error says what is wrong, no number is lost or repeated, and firnd goes on by itself once there is space.
Mounts happen in a mount namespace of the test's own, so that nothing outside sees them.
"""
import os
import resource
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position

MARK = "FIRN_TEST_NAMESPACE"
ROOM = 8 << 20  # of the small disk: the store's write-ahead log grows to 4 MiB before it begins anew


def enter_namespace():
    """Start again in a mount namespace, as root or as the root of a user namespace."""
    if MARK in os.environ:
        return
    for way in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        probe = way + ["sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
        try:
            good = subprocess.run(probe, capture_output=True, timeout=f.LIMIT, check=False).returncode == 0
        except OSError:
            good = False
        if good:
            os.environ[MARK] = " ".join(way)
            os.execvp(way[0], way + [sys.executable] + sys.argv)
    os.environ[MARK] = ""


def mount(*args):
    subprocess.run(["mount", *args], check=True, timeout=f.LIMIT, capture_output=True)


def unmount(path):
    subprocess.run(["umount", "-l", path], check=True, timeout=f.LIMIT, capture_output=True)


class SmallDisk:
    """A tmpfs; full when a ballast file has eaten the rest."""

    name = "a small tmpfs"

    def __init__(self, path):
        os.mkdir(path)
        mount("-t", "tmpfs", "-o", f"size={ROOM}", "none", path)
        self.ballast = os.path.join(path, "ballast")

    def fill(self, _):
        with open(self.ballast, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(4096))
            except OSError:
                pass

    def free(self, _):
        os.unlink(self.ballast)


class SmallFiles:
    """Where nothing may be mounted: the process's files may not grow."""

    name = "RLIMIT_FSIZE"

    def __init__(self, path):
        os.mkdir(path)

    def fill(self, server):
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (16 * 1024, resource.RLIM_INFINITY))

    def free(self, server):
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def end_with_error(t, state, words, what, env=None):
    """A start that must fail, and say why."""
    server = f.Firnd(t, state, serve=False, env=env)
    code = server.wait()
    text = server.log()
    t.check(code not in (0, None) and code > 0, f"{what}: firnd ends with an error: {code}")
    t.check(any(w in text for w in words), f"{what}: and says why: {text}")
    t.check(state in text or os.path.basename(state) in text, f"{what}: and where: {text}")


def full_disk(t, kind):
    state = t.state("full")
    disk, load = kind(state), f.Load(t)
    t.say(f"full by {disk.name}")
    server = f.Firnd(t, state).wait_ready()
    f.make_gapless(server.home, "invoice")
    c = f.Resp(server.ticket)
    load.note_ticket("orders", 1, [c.do("INCR", "orders")])
    load.note_ticket("invoice", 1, [c.do("INCR", "invoice") for _ in range(10)])
    c.close()

    # Before the load comes: a log that was full once is written over, and would need no space any more.
    disk.fill(server)
    for n in (1, 3):
        load.start(f.http_tickets, "invoice", n)
    load.start(f.resp_tickets, "invoice", 4)
    load.start(f.resp_tickets, "orders", 1)
    load.start(f.http_ids, 1)
    load.aim(1, server)
    server.wait_log("commit_failed")
    said = f.wait_for("a ticket to be refused", lambda: [w for s, w in load.refused if s == "invoice"])
    t.check(any("cannot write" in w for w in said), f"tickets are refused with the cause: {said[0]}")
    reason = server.wait_reason(False, "cannot write")
    t.check("space" in reason or kind is SmallFiles, f"/readyz names it: {reason}")
    t.equal(f.get(server.home, "/healthz")[0], 200, "the process is healthy; status")
    # A sequence that no client used yet: its first number needs the store as well.
    status, said = f.get(server.ticket, "/generate")
    t.check(status == 503 and "cannot write" in str(said), f"a new sequence is refused with the cause: {status} {said}")

    disk.free(server)
    server.wait_ready()
    server.wait_log("lease_recovered")
    server.wait_log("commit_recovered")
    before = len(load.tickets["invoice"]), sum(map(len, load.ids))
    f.wait_for("tickets and IDs after it was full",
               lambda: len(load.tickets["invoice"]) > before[0] + 100 and sum(map(len, load.ids)) > before[1] + 50)
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "the new sequence begins at its first number")
    load.rest()
    load.end()
    load.check_ids(100)
    t.equal(load.lost, {}, "no answer was lost")
    holes, _ = load.check_gapless("invoice", 1, f.next_number(server, "invoice"))
    t.equal(holes, 0, "holes in the gapless sequence")
    orders = [n for _, n in load.tickets["orders"]]
    t.check(len(set(orders)) == len(orders) and orders == sorted(orders), "range tickets are distinct and rise")
    cpu = server.metric("process_cpu_seconds_total")
    t.say(f"{len(load.tickets['invoice'])} tickets, {len(load.refused)} refusals, {cpu} s of CPU time")

    if kind is SmallDisk:
        disk.fill(server)
        last = max(i for c in load.ids for i in c)
        t.equal(server.stop(), 0, "it ends with status 0 on a full disk")
        disk.fill(server)  # again: the log of the store went away with its last user
        server = f.Firnd(t, state, serve=False)
        f.wait_for("a start on a full disk to say something",
                   lambda: not server.alive() or ("serving" in server.log() and "lease_trouble" in server.log()))
        t.check("space" in server.log(), f"a start on a full disk names it: {server.log()}")
        if server.alive():
            disk.free(server)
            server.wait_serving()
        else:
            t.check(server.wait() > 0, "a start on a full disk that ends does so with an error")
            disk.free(server)
            server = f.Firnd(t, state)
        t.check(f.take_ids(server.wait_ready(), 1)[0] > last, "IDs go on above the last run's")
        t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100002"}), "tickets go on")
    t.equal(server.stop(), 0, "it ends cleanly")


def full_from_the_start(t):
    state = t.state("full-new")
    disk = SmallDisk(state)
    disk.fill(None)
    end_with_error(t, state, ["space"], "a new store on a full disk")
    disk.free(None)
    server = f.Firnd(t, state).wait_ready()
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "with space, the first ticket")
    t.equal(server.stop(), 0, "it ends cleanly")


def read_only(t):
    """At the start: a folder that is mounted read-only stops root too."""
    state, empty = t.state("ro"), t.state("ro-empty")
    server = f.Firnd(t, state).wait_ready()
    ids = f.take_ids(server)
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100001"}), "the first ticket")
    t.equal(server.stop(), 0, "it ends cleanly")
    os.mkdir(empty)
    for path in (state, empty):
        mount("--bind", path, path)
        mount("-o", "remount,bind,ro", path)
    words = ["writable", "Read-only", "read-only", "readonly"]
    end_with_error(t, state, words, "a read-only store")
    end_with_error(t, empty, words, "a read-only folder without a store")
    end_with_error(t, os.path.join(empty, "deeper"), words, "a folder that cannot be made")
    for path in (state, empty):
        unmount(path)
    server = f.Firnd(t, state).wait_ready()
    ids += f.take_ids(server)
    t.equal(len(set(ids)), len(ids), "IDs are distinct; how many")
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100002"}), "writable again, the next ticket")
    t.equal(server.stop(), 0, "it ends cleanly")


def refusal(server):
    status, said = f.get(server.snowflake, "/generate")
    return said if status == 503 else None


def check_halted(t, server, part):
    """What is confirmed is served to its end; then nothing, and everything says why."""
    reason = server.wait_reason(False, part)
    t.check("halted" in reason, f"/readyz says that it halted: {reason}")
    server.wait_log("slot_state state=halted")
    t.check(part in server.log(), f"the log says '{part}'")
    t.equal(server.metric('firn_slot_state{state="halted"}'), 1.0, "the metric of halted")
    said = f.wait_for("IDs to be refused", lambda: refusal(server))  # some time after "not ready"
    t.check(part in str(said), f"an ID is refused with the cause: {said}")
    status, said = f.get(server.ticket, "/generate")
    t.check(status == 503 and part in str(said), f"a ticket is refused with the cause: {status} {said}")
    t.equal(f.get(server.home, "/healthz")[0], 200, "the process is healthy; status")


def store_gone(t):
    """Two servers at once, to wait for the end of both windows together: one store deleted, one replaced."""
    gone, swapped, other = t.state("gone"), t.state("swapped"), t.state("other")
    servers = [f.Firnd(t, s).wait_ready() for s in (gone, swapped, other)]
    ids = [f.take_ids(s) for s in servers]
    for s in servers:
        t.equal(f.get(s.ticket, "/generate"), (200, {"id": "100001"}), "the first ticket")
    t.equal(servers[2].stop(), 0, "it ends cleanly")
    os.unlink(os.path.join(gone, "firn.db"))
    os.replace(os.path.join(other, "firn.db"), os.path.join(swapped, "firn.db"))
    for server, mine, part in ((servers[0], ids[0], "deleted or moved"), (servers[1], ids[1], "replaced")):
        server.wait_log("lease_trouble")
        mine += f.take_ids(server)  # what is confirmed, if any is left
        check_halted(t, server, part)
        t.equal(server.stop(), 0, "one that halted can be ended")
    # A restart makes a new store where there is none, above everything that a lost one may have granted.
    server = f.Firnd(t, gone).wait_ready()
    ids[0] += f.take_ids(server)
    t.equal(len(set(ids[0])), len(ids[0]), "IDs are distinct over the loss of the store; how many")
    t.equal(server.stop(), 0, "it ends cleanly")
    # And what was put in the other's place is a moved file with its own past: no copy, so no fence is needed.
    server = f.Firnd(t, swapped).wait_ready()
    ids[2] += f.take_ids(server)
    t.equal(len(set(ids[2])), len(ids[2]), "IDs of the moved store are distinct; how many")
    t.equal(f.get(server.ticket, "/generate"), (200, {"id": "100002"}), "its tickets go on")
    t.equal(server.stop(), 0, "it ends cleanly")


def copied_store(t):
    """A copy made at run time and started beside the original is fenced: its IDs begin above the original's."""
    first, second = t.state("original"), t.state("copy")
    server = f.Firnd(t, first).wait_ready()
    ids = f.take_ids(server)
    server.signal(signal.SIGSTOP)  # so that the copy is of one moment
    shutil.copytree(first, second)
    server.signal(signal.SIGCONT)
    ids += f.take_ids(server)
    twin = f.Firnd(t, second).wait_ready()
    twin.wait_log("store_fenced")
    t.check(twin.metric("firn_fenced_total") == 1.0, f"the metric counts the fence: {twin.metric('firn_fenced_total')}")
    theirs = f.take_ids(twin)
    t.check(min(theirs) > max(ids), "the copy's IDs begin above the original's")
    t.check("store_fenced" not in server.log(), "the original is not fenced")
    t.equal(twin.stop(), 0, "it ends cleanly")
    twin = f.Firnd(t, second).wait_ready()  # fenced once, it is a store of its own
    t.check("store_fenced" not in twin.log(), "a second start is not fenced again")
    theirs += f.take_ids(twin)
    t.equal(len(set(ids + theirs)), len(ids + theirs), "IDs are distinct; how many")
    t.equal((server.stop(), twin.stop()), (0, 0), "both end cleanly")


enter_namespace()
with f.Test("disk") as test:
    if os.environ[MARK]:
        test.say(f"mounts in a namespace of {os.environ[MARK]}")
        test.section(full_disk, SmallDisk)
        test.section(full_from_the_start)
        test.section(read_only)
    else:
        print("*** NO MOUNT NAMESPACE: a full disk is a limit on the size of files, and read-only was NOT TESTED")
        test.section(full_disk, SmallFiles)
    test.section(store_gone)
    test.section(copied_store)
