#!/usr/bin/env python3
"""
Asks several servers in turn for gapless tickets without end and writes down every answer and every silence.
Usage: tickets.py FILE SEED SEQUENCE HOST:PORT... Ends by SIGTERM.
The file has a line a request: when asked, when answered (seconds of the monotonic clock), the server, and the number or
"-" with what came instead. A request that was not answered with a number may have taken one all the same.
"""
import http.client
import json
import random
import signal
import sys
import threading
import time

CLIENTS = 4
TIMEOUT_S = 3.0
STAY = 40  # requests to one server before going on to another
PAUSE_S = 0.003


class Log:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "w", encoding="ascii")  # pylint: disable=consider-using-with

    def add(self, asked, server, said):
        with self.lock:
            self.file.write(f"{asked:.6f} {time.monotonic():.6f} {server} {said}\n")
            self.file.flush()

    def close(self):
        with self.lock:
            self.file.close()


def use(address, server, sequence, log, over):
    """One server, until it does not answer well or it is another one's turn. False: it did not."""
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
    try:
        c.connect()
    except OSError:
        return False  # nothing was asked
    try:
        for _ in range(STAY):
            if over.is_set():
                break
            asked = time.monotonic()
            try:
                c.request("GET", f"/generate?seq={sequence}")
                r = c.getresponse()
                body = r.read()
            except (OSError, http.client.HTTPException) as e:
                log.add(asked, server, f"- {type(e).__name__}")
                return False
            if r.status != 200:
                log.add(asked, server, f"- HTTP{r.status}")
                return False
            log.add(asked, server, json.loads(body)["id"])
            over.wait(PAUSE_S)
    finally:
        c.close()
    return True


def ask(addresses, sequence, log, rng, over):
    while not over.is_set():
        server = rng.randrange(len(addresses))
        if not use(addresses[server], server, sequence, log, over):
            over.wait(0.01)


def read(path):
    """[(asked, answered, server, number or None, what came instead)]"""
    out = []
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split()
            if not line.endswith("\n"):
                break
            given = words[3] != "-"
            out.append((float(words[0]), float(words[1]), int(words[2]), int(words[3]) if given else None,
                        "" if given else words[4]))
    return out


def judge(entries, first):
    """
    What is wrong with these answers of one gapless sequence that began at `first`, as texts; and how many holes there are.
    None may come twice. Every number below the highest is somebody's: one that is missing must have been taken by a
    request that got no answer, which began before any answer with a higher number. The same holds for one that comes
    late, to a request that was made after a higher one was there: firnd hands out what it finds that it had taken for
    somebody who has gone. So by each time there must be at least as many requests without an answer as such numbers.
    """
    wrong = []
    given = sorted((e[3], e[0], e[1]) for e in entries if e[3] is not None)
    if not given:
        return ["no ticket at all"], 0
    twice = [a[0] for a, b in zip(given, given[1:]) if a[0] == b[0]]
    if twice:
        wrong.append(f"{len(twice)} tickets come twice: {twice[:10]}")
    if given[0][0] < first:
        wrong.append(f"ticket {given[0][0]} is below the first one, {first}")
    taken, holes = [], 0  # by when each number that needs a cause was taken
    by, above = float("inf"), None  # the first answer with a higher number; that number
    for number, asked, answered in reversed(given):
        missing = above - number - 1 if above is not None else 0
        taken += [by] * (max(missing, 0) + (asked > by))
        holes += max(missing, 0)
        by, above = min(by, answered), number
    holes += given[0][0] - first
    taken += [by] * (given[0][0] - first)
    silent = sorted(e[0] for e in entries if e[3] is None)
    for k, when in enumerate(sorted(taken)):
        if k >= len(silent) or silent[k] > when:
            wrong.append(f"{len(taken)} tickets are missing or late; {k + 1} of them at a time when only "
                         f"{sum(s <= when for s in silent)} requests had got no number")
            break
    return wrong, holes


def main():
    path, seed, sequence = sys.argv[1:4]
    over, log = threading.Event(), Log(path)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    threads = [threading.Thread(target=ask, args=(sys.argv[4:], sequence, log, random.Random(f"{seed}/t{i}"), over),
                                daemon=True) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    over.wait()
    for t in threads:
        t.join(2 * TIMEOUT_S)
    log.close()


if __name__ == "__main__":
    main()
