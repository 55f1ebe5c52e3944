#!/usr/bin/env python3
"""
The programs in examples/clients, each against three firnds that share a store, of which one is killed and another is
never there: every line comes, no ID comes twice, and no ticket is missing. Java and Go ask over RESP and over HTTP.
"""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "deploy"))
from firnd import LIMIT, Test, wait_for  # noqa: E402
from world import NODES, World  # noqa: E402

EXAMPLES = os.path.join(ROOT, "examples", "clients")
MODULES = os.path.join(ROOT, "build-test", "examples")  # never in the tree


def node_command(t):
    """The example in a folder of its own, with what its package.json asks for."""
    os.makedirs(MODULES, exist_ok=True)
    with open(os.path.join(MODULES, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other configurations are tested at the same time
        for name in ("package.json", "firn-ids.mjs"):
            shutil.copy(os.path.join(EXAMPLES, "node", name), MODULES)
        if not os.path.isdir(os.path.join(MODULES, "node_modules", "ioredis")):
            p = subprocess.run(["npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"],
                               cwd=MODULES, capture_output=True, timeout=300, check=False)
            t.check(p.returncode == 0, f"npm installs ioredis: {(p.stdout + p.stderr).decode()[-600:]}")
    return ["node", os.path.join(MODULES, "firn-ids.mjs")]


def nobody(w):
    return w.at(9)  # one of the free ports, which nobody uses


def takes(t, command, count, schemes=("", "")):
    """`count` lines of each of two at the same time, while the servers come and go."""
    w = World(t.dir, t.bin, None)
    running = []
    try:
        w.start_nodes()
        addresses = [w.at(10 * n + 2) for n in NODES]
        lines = [[], []]

        def read(p, into):
            for line in p.stdout:
                into.append(line.rstrip("\n"))
        threads = []
        for i in range(2):
            where = [schemes[i] + a for a in [nobody(w)] + addresses[i:] + addresses[:i]]
            p = subprocess.Popen([*command, ",".join(where), str(count)], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
            running.append(p)
            threads.append(threading.Thread(target=read, args=(p, lines[i])))
            threads[-1].start()

        def reach(part):
            wait_for(f"{part} of the lines", lambda: min(map(len, lines)) >= count * part or
                     any(p.poll() is not None for p in running))
        reach(0.2)
        w.node[1].end(signal.SIGKILL)
        reach(0.4)
        w.start_node(1)
        w.wait_ready(1)
        reach(0.6)
        w.node[2].send(signal.SIGTERM)
        for p, thread in zip(running, threads):
            t.equal(p.wait(2 * LIMIT), 0, f"{command[-1]}: exit status")
            thread.join()
        every = [re.fullmatch(r"Snowflake ID: (\d+), Ticket ID: (\d+)", x) for part in lines for x in part]
        wrong = [x for part in lines for x in part if not x.startswith("Snowflake ID: ")]
        if t.check(all(every), f"lines that are none: {wrong[:5]}"):
            t.equal(len({e[1] for e in every}), 2 * count, "distinct Snowflake IDs")
            t.equal(sorted(int(e[2]) for e in every), list(range(100001, 100001 + 2 * count)),
                    "tickets: each once, none missing")
    finally:
        for p in running:
            if p.poll() is None:
                p.kill()
                p.wait()
        w.stop()
        for name in os.listdir(t.dir):
            path = os.path.join(t.dir, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif not name.endswith(".log"):
                os.unlink(path)


def gives_up(t, command):
    """No server at all: an error that names the addresses, and a status."""
    w = World(t.dir, t.bin, None)
    p = subprocess.run([*command, f"{nobody(w)},{w.at(8)}", "1"], capture_output=True, text=True, timeout=LIMIT,
                       check=False)
    said = p.stdout + p.stderr
    t.check(p.returncode != 0 and "no server answered" in said and nobody(w) in said and w.at(8) in said,
            f"{command[-1]} without a server: {p.returncode} {said[-400:]}")


def python(t):
    command = [sys.executable, os.path.join(EXAMPLES, "python", "firn_ids.py")]
    takes(t, command, 500)
    gives_up(t, command)


def node(t):
    command = node_command(t)
    takes(t, command, 500)
    gives_up(t, command)


def java(t):
    if not shutil.which("javac"):
        t.check(False, "the Java example was NOT run: there is no JDK, apt-get install openjdk-17-jdk-headless")
        return
    command = ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", os.path.join(EXAMPLES, "java", "FirnIds.java")]
    takes(t, command, 200, ("", "http://"))
    gives_up(t, command)


def go(t):
    if not shutil.which("go"):
        t.check(False, "the Go example was NOT run: there is no Go, apt-get install golang-go")
        return
    os.makedirs(MODULES, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "firn_ids")
        p = subprocess.run(["go", "build", "-o", program, os.path.join(EXAMPLES, "go", "firn_ids.go")], capture_output=True,
                           text=True, timeout=2 * LIMIT, check=False,
                           env={**os.environ, "GO111MODULE": "off", "GOCACHE": os.path.join(MODULES, "go")})
        if t.check(p.returncode == 0, f"go build: {p.stderr}"):
            takes(t, [program], 500, ("", "http://"))
            gives_up(t, [program])


def shell(t):
    command = ["sh", os.path.join(EXAMPLES, "shell", "firn-ids.sh")]
    takes(t, command, 60)
    gives_up(t, command)


def main():
    with Test("examples") as t:
        for section in (python, node, java, go, shell):
            t.section(section)


if __name__ == "__main__":
    main()
