#!/usr/bin/env python3
"""
Asks one server for IDs without end, over a few connections, and writes down all that it is told.
Usage: client.py HOST:PORT FILE SEED SECONDS. An answer may take so many seconds. Ends by SIGTERM.
The file is a row of entries: when asked, when answered (seconds of the monotonic clock, which all processes of a machine
share), a result, how many IDs, and the IDs. Only what was answered in full is an ID that somebody has.
"""
import http.client
import random
import signal
import struct
import sys
import threading
import time

ENTRY = struct.Struct("=ddHH")  # asked, answered, result, count
OK, REFUSED, LOST, SLOW, ODD = 0, 1, 2, 3, 4  # or an HTTP status from 400 on
CONNECTIONS = 2
PAUSE_S = 0.004


class Log:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "wb")  # pylint: disable=consider-using-with

    def add(self, asked, result, body=b""):
        with self.lock:
            self.file.write(ENTRY.pack(asked, time.monotonic(), result, len(body) // 8) + body)

    def close(self):
        with self.lock:
            self.file.close()


def read(path):
    """Yields (asked, answered, result, bytes of the IDs, big-endian)."""
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while at + ENTRY.size <= len(data):
        asked, answered, result, count = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        if at + 8 * count > len(data):
            break
        yield asked, answered, result, data[at:at + 8 * count]
        at += 8 * count


def ask(address, log, rng, over, timeout_s):
    host, port = address.rsplit(":", 1)
    c = None
    while not over.is_set():
        asked = time.monotonic()
        try:
            if c is None:
                c = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
                c.connect()
            n = rng.choice((1, 1, 5, 20, 100))
            c.request("GET", f"/generate?n={n}", headers={"Accept": "application/octet-stream"})
            r = c.getresponse()
            body = r.read()
            if r.status == 200:
                log.add(asked, OK if len(body) == 8 * n else ODD, body if len(body) == 8 * n else b"")
            else:
                log.add(asked, r.status)
                over.wait(0.05)
        except (ConnectionRefusedError, TimeoutError, OSError, http.client.HTTPException) as e:
            what = REFUSED if isinstance(e, ConnectionRefusedError) else SLOW if isinstance(e, TimeoutError) else LOST
            log.add(asked, what)
            if c is not None:
                c.close()
            c = None
            over.wait(0.05)
        over.wait(PAUSE_S)


def main():
    address, path, seed, timeout_s = *sys.argv[1:4], float(sys.argv[4])
    over, log = threading.Event(), Log(path)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    threads = [threading.Thread(target=ask, args=(address, log, random.Random(f"{seed}/{i}"), over, timeout_s),
                                daemon=True)
               for i in range(CONNECTIONS)]
    for t in threads:
        t.start()
    over.wait()
    for t in threads:
        t.join(2 * timeout_s)
    log.close()


if __name__ == "__main__":
    main()
