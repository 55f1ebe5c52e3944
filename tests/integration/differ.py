#!/usr/bin/env python3
"""
A member of a cluster whose registers are not the others': one byte of its log is changed while it does not run, with the
checksums set right, so that nothing can tell. Made the leader it must not hand out a number again; the others notice,
one of them leads, and the member says what is wrong with it until it has joined anew. One whose log lacks an entry in
the middle is refused.
"""
import os
import shutil
import struct
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.dirname(HERE)]
import firnd as f  # noqa: E402  pylint: disable=wrong-import-position
from engines import raft  # noqa: E402  pylint: disable=wrong-import-position

SEQ, BEFORE, AFTER = "differ", 120, 200


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82f63b78 if byte & 1 else byte >> 1
        table.append(byte)
    return table


CRC, SECTOR, HEAD = crc_table(), 512, 40


def crc(data):
    """CRC-32C."""
    c = 0xffffffff
    for byte in data:
        c = c >> 8 ^ CRC[(c ^ byte) & 0xff]
    return c ^ 0xffffffff


def batches(data):
    """Where each batch begins and ends. See src/raft/log_format.h."""
    at = 0
    while at + SECTOR <= len(data) and data[at:at + 4] == b"firn":
        end = at + -(-(HEAD + struct.unpack_from(">I", data, at + 24)[0]) // SECTOR) * SECTOR
        yield at, end
        at = end


def logs(folder):
    """The log files and their bytes; the last one counts."""
    for name in sorted(n for n in os.listdir(folder) if n.startswith("log-"))[-1:]:
        with open(os.path.join(folder, name), "rb") as file:
            yield os.path.join(folder, name), bytearray(file.read())


def spoil(folder):
    """The last but a few writes of the sequence expects something else than what is there: this member does not do it."""
    for path, data in logs(folder):
        found = []
        for begin, end in batches(data):
            key = data.find(SEQ.encode(), begin + HEAD, end)
            if key >= 0 and struct.unpack_from(">H", data, key + len(SEQ))[0] not in (0, 0xffff):
                found.append((begin, end, key + len(SEQ) + 2))
        # Several: one that lost against another member's write changed nothing, and is no loss.
        for begin, end, old in found[len(found) // 2:][:8]:
            data[old] ^= 1
            struct.pack_into(">I", data, begin + 32, crc(data[begin + HEAD:end]))
            struct.pack_into(">I", data, begin + 4, crc(data[begin + 8:begin + HEAD]))
        with open(path, "r+b") as file:
            file.write(data)


def take(c, i, seen, twice):
    """One number from that member, if it has one. It counts whether or not others have it."""
    try:
        link = f.Resp(c.ticket[i])
        n = int(link.do("FIRN.NEXT", "ticket", "SEQ", SEQ))
        link.close()
    except (f.Gone, f.RespError, f.NotThere, OSError, ValueError):
        return False
    if n in seen:
        twice.append((i, n))
    seen.add(n)
    return True


def metric(c, i):
    text = f.get(c.home[i], "/metrics")[1]
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("firn_raft_registers_differ ")]


def says(c, i):
    with open(os.path.join(c.folder, f"n{i}.log"), encoding="utf-8", errors="replace") as log:
        return "registers_differ" in log.read()


def sums(c):
    seen = []
    for i in range(3):
        with raft.Link(c.endpoints[i]) as link:
            said = link.status(own=True)
        seen.append((said["applied_index"], said["registers_sum"]))
    return seen


def make_lead(c, i):
    """Until it did: what follows decides how long."""
    end = time.monotonic() + f.LIMIT
    while time.monotonic() < end:
        leader = c.leader()
        if leader == i:
            return True
        try:
            who = next(m["id"] for m in c.status(leader)["members"] if m["address"] == c.endpoints[i])
            with raft.Link(c.endpoints[leader]) as link:
                link.change(raft.TRANSFER, int(who, 16), "", 5000)
            return True
        except (raft.RaftError, OSError, StopIteration, TypeError):
            time.sleep(0.1)
    return False


def one_byte(t):
    os.environ["FIRN_BIN_DIR"] = t.bin
    folder = t.state("cluster")
    os.mkdir(folder)
    c = raft.Raft(folder, options=("--store-timeout-ms=3000", "--cluster-election-ms=1000"))
    seen, twice = set(), []
    try:
        c.start()
        f.wait_for("members that are ready", lambda: all(f.get(h, "/readyz")[0] == 200 for h in c.home))
        link = f.Http(c.home[0])
        t.check(link.post("/v1/sequences", {"name": SEQ, "mode": "gapless", "start": "1"})[0] in (200, 201), "a sequence")
        link.close()
        for k in range(BEFORE):
            f.wait_for("a number", lambda i=k % 3: take(c, i, seen, twice))
        t.equal([metric(c, i) for i in range(3)], [[0]] * 3, "all have the same")
        bad = (c.leader() + 1) % 3
        f.wait_for("all to have applied the same", lambda: len(set(sums(c))) == 1)
        c.kill(bad)
        spoil(os.path.join(c.data(bad), "log"))
        c.restart(bad)
        t.check(make_lead(c, bad), "it is made the leader")
        got, others = 0, [i for i in range(3) if i != bad]

        def enough():
            nonlocal got
            got += sum(take(c, i, seen, twice) for i in range(3))
            return got > AFTER
        f.wait_for("numbers to go on", enough)
        # It may have lost the lead before it said anything.
        f.wait_for("another one to refuse it", lambda: any(says(c, i) for i in others) or not make_lead(c, bad))
        f.wait_for("it to know", lambda: metric(c, bad) == [1])
        f.wait_for("another leader", lambda: c.leader() != bad)
        f.wait_for("numbers to go on", lambda: take(c, others[0], seen, twice))
        t.equal(twice, [], "no number comes twice")
        t.check(set(range(1, BEFORE + 1)) <= seen, "those before are all there")
        t.check(says(c, bad), "it says so")

        # The cure that the log names.
        leader = c.leader()
        who = next(m["id"] for m in c.status(leader)["members"] if m["address"] == c.endpoints[bad])
        with raft.Link(c.endpoints[leader]) as link:
            link.change(raft.REMOVE, int(who, 16))
        c.kill(bad)
        shutil.rmtree(os.path.join(folder, f"n{bad}"))
        c.spawn(bad, "--cluster-join", c.endpoints[leader])
        c.members(3, leader)
        c.wait(range(3))
        f.wait_for("all to have the same", lambda: len(set(sums(c))) == 1)
        t.check(make_lead(c, bad), "it is made the leader")
        for k in range(30):
            f.wait_for("a number", lambda i=k % 3: take(c, i, seen, twice))
        t.equal(twice, [], "no number comes twice")
        f.wait_for("all to agree", lambda: [metric(c, i) for i in range(3)] == [[0]] * 3)
    except raft.RaftError as e:
        raise f.NotThere(f"{e}\n{c.logs()}") from e
    finally:
        print(c.logs()[-3000:] if twice else f"  {len(seen)} numbers")
        c.stop()


def an_entry_is_missing(t):
    """The log without one of its batches, or with the entries of one gone and its checksums right, is refused."""
    os.environ["FIRN_BIN_DIR"] = t.bin
    folder = t.state("missing")
    os.mkdir(folder)
    c = raft.Raft(folder, 1)
    seen, twice = set(), []
    try:
        c.start()
        link = f.Http(c.home[0])
        f.wait_for("a sequence", lambda: link.post("/v1/sequences", {"name": SEQ, "mode": "gapless", "start": "1"})[0]
                   in (200, 201))
        link.close()
        for _ in range(30):
            f.wait_for("a number", lambda: take(c, 0, seen, twice))
        c.kill(0)
        log = os.path.join(c.data(0), "log")
        (path, whole), = logs(log)
        where = list(batches(whole))
        begin, end = where[len(where) // 2]
        renamed = bytearray(whole)
        struct.pack_into(">Q", renamed, begin + HEAD + 8, struct.unpack_from(">Q", whole, begin + HEAD + 8)[0] + 1)
        struct.pack_into(">I", renamed, begin + 32, crc(renamed[begin + HEAD:end]))
        struct.pack_into(">I", renamed, begin + 4, crc(renamed[begin + 8:begin + HEAD]))
        for what, data in (("is missing", whole[:begin] + whole[end:] + bytes(end - begin)), ("has an entry of another place", renamed)):
            with open(path, "wb") as file:
                file.write(data)
            c.spawn(0)
            t.equal(c.process[0].wait(f.LIMIT), 1, f"it does not start where a batch {what}")
            c.process[0] = None
        t.check("not the next one" in c.logs() and "does not follow" in c.logs() and c.logs().count("join again") >= 2,
                f"and says why: {c.logs()[-600:]}")
    except raft.RaftError as e:
        raise f.NotThere(f"{e}\n{c.logs()}") from e
    finally:
        c.stop()


with f.Test("differ") as test:
    for part in (one_byte, an_entry_is_missing):
        test.section(part)
