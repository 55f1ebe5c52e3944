#!/usr/bin/env python3
"""
Test of the Python module on the shared vectors, a store and a real firnd. Usage: bindings/python/test.py BUILD/bin
"""
import asyncio
import json
import os
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(os.path.abspath(sys.argv[1]))
os.environ["LIBFIRN_PATH"] = ":".join(f"{BUILD}/src/{room}" for room in ("id", "client", "node"))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration", "lib")]
import firn  # noqa: E402  pylint: disable=wrong-import-position
import firnd as servers  # noqa: E402  pylint: disable=wrong-import-position

with open(os.path.join(ROOT, "bindings", "vectors", "ids.json"), encoding="ascii") as f:
    VECTORS = json.load(f)


def refused(code, call, *args, **more):
    try:
        got = call(*args, **more)
    except firn.Error as e:
        assert code in ("", e.name), (code, e)
        return str(e)
    raise AssertionError(f"{call.__name__}{args} gave {got}")


def case_vectors():
    for bits in (64, 128):
        for row in VECTORS[f"codec{bits}"]:
            for codec, text in row["texts"].items():
                assert firn.encode(int(row["value"]), codec, bits) == text, (row, codec)
                assert firn.decode(text, codec, bits) == int(row["value"]), (row, codec)
    for row in VECTORS["snowflake"]:
        assert round(firn.time(int(row["id"]), row["layout"]).timestamp() * 1000) == row["unix_ms"], row
    for row in VECTORS["kinds"]:
        got = firn.read(row["text"], row["kind"])
        assert got.kind == row["kind"] and got.text == row["text"] and got.raw.hex() == row["hex"], (row, got)
        if row["unix_ms"] is not None:
            assert got.unix_us == row["unix_ms"] * 1000, (row, got)
    for row in VECTORS["refused"]:
        refused("", firn.read, row["text"], row["kind"])
    refused("FIRN_EFORMAT", firn.decode, "not base62!", "base62")
    for bad in (-1, 1 << 64):
        try:
            raise AssertionError(firn.encode(bad, "hex"))
        except ValueError:
            pass


def case_vectors_are_those_of_the_golden_tests():
    golden = "".join(open(os.path.join(ROOT, "tests", "golden", n), encoding="utf-8").read()
                     for n in sorted(os.listdir(os.path.join(ROOT, "tests", "golden"))))
    for row in VECTORS["codec64"] + VECTORS["codec128"]:
        for text in row["texts"].values():
            assert f'"{text}"' in golden, text
    for row in VECTORS["kinds"] + VECTORS["snowflake"]:
        assert f'"{row.get("text", row.get("id"))}"' in golden, row


def case_now():
    made = [firn.uuid7() for _ in range(1000)]
    assert made == sorted(made) and len(set(made)) == 1000 and all(u.version == 7 for u in made)
    texts = [firn.ulid() for _ in range(1000)]
    assert texts == sorted(texts) and len(set(texts)) == 1000


def case_node():
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:{folder}/slots"
        got, nodes = [], [firn.Node(url, wait_ms=60000) for _ in range(2)]
        threads = [threading.Thread(target=lambda n=n: got.extend(n.next_n(20000))) for n in nodes]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(got) == len(set(got)) == 40000
        slots = {firn.read(str(i)).fields["node"] for i in got}
        assert len(slots) == 2, slots
        for n in nodes:
            n.close()
        try:
            raise AssertionError(nodes[0].next())
        except ValueError as e:
            assert "closed" in str(e)
    refused("FIRN_EFORMAT", firn.Node, "nowhere://x")


async def prefetched(client):
    async with firn.Prefetch(client, ahead=64) as ids:
        async def some():
            return [await ids.next() for _ in range(100)]
        parts = await asyncio.gather(*(some() for _ in range(20)))
    every = [i for part in parts for i in part]
    assert len(set(every)) == len(every) == 2000


async def prefetch_without_server():
    with firn.Client("firn://127.0.0.1:1/?timeout=200ms") as nobody:
        async with firn.Prefetch(nobody, ahead=4) as ids:
            for _ in range(2):
                try:
                    raise AssertionError(await ids.next())
                except firn.Error as e:
                    assert e.name == "FIRN_EIO", e


def case_client():
    server = servers.Firnd(TEST, TEST.steady("client")).wait_ready()
    with firn.Client(f"firn://{server.snowflake}/?mode=prefetch") as client:
        every = [client.next() for _ in range(100)] + client.next_n(1000)
        assert every == sorted(set(every)), "IDs rise"
        asyncio.run(prefetched(client))
    servers.make_gapless(server.home, "python")
    with firn.Client(f"firn://{server.ticket}/?seq=python") as client:
        first = client.next_keyed("order-1")
        assert client.next_keyed("order-1") == first != client.next_keyed("order-2")
        assert client.next_text().isdigit()
    server.stop()
    asyncio.run(prefetch_without_server())


with servers.Test("python") as TEST:
    for name, case in list(globals().items()):
        if name.startswith("case_"):
            try:
                case()
                TEST.check(True, name)
            except (AssertionError, firn.Error, OSError, servers.NotThere) as e:
                TEST.check(False, f"{name}: {e}")
