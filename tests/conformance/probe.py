"""
One store_probe process: a handle on a store in a process of its own (see probe.c for the lines it speaks).

    p = Probe(binary, "sqlite:/tmp/x.db", 2000)
    a = p.cas(b"key", None, b"value")     # None is "absent"; as the new value it removes
    a.result                              # "0", "FIRN_ECONFLICT", ...; a.ok is result == "0"
    p.read(b"key").value                  # b"value", or None where there is none
Calls can be left under way: p.send("cas", b"k", None, b"v"); ...; p.answer(). `died` means the process ended.
"""
import os
import select
import subprocess
import time

ANSWER_S = 120  # far more than any call takes: a probe that needs longer hangs, and that is an error


class ProbeError(Exception):
    """The probe itself failed: it ended, hung, or was used wrongly."""


class Answer:
    """One line. What a call does not give stays None."""

    def __init__(self, line):
        words = line.split(" ")
        self.line, self.result, self.ms = line, words[0], int(words[-1])
        self.words = words[1:-1]
        self.text = " ".join(self.words)  # of an error, for people
        self.value = self.store_ms = self.found = self.results = None

    @property
    def ok(self):
        return self.result == "0"

    def __repr__(self):
        return self.line if len(self.line) < 300 else self.line[:300] + "..."


def encode(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        value = value.encode()
    if value == b"":
        return "%"
    return "".join(chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "_./:") else f"%{b:02X}"
                   for b in value)


def decode(word):
    if word == "-":
        return None
    if word == "%":
        return b""
    out, i = bytearray(), 0
    while i < len(word):
        if word[i] == "%":
            out.append(int(word[i + 1:i + 3], 16))
            i += 3
        else:
            out.append(ord(word[i]))
            i += 1
    return bytes(out)


class Probe:
    def __init__(self, binary, url, timeout_ms=2000, options=(), closed=False):
        self.url = url
        if closed:
            options = ("--closed",)
        leaks = {"LSAN_OPTIONS": f"suppressions={os.path.splitext(os.path.abspath(__file__))[0]}.lsan:print_suppressions=0"}
        self.process = subprocess.Popen([binary, *options, url, str(timeout_ms)], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **leaks})
        self.buffer = b""
        self.pending = [] if closed else ["reopen"]
        # Look at .ok: opening may fail, and reopen() tries again. With `closed` it is the first to try.
        self.opened = None if closed else self.answer()

    # ---- calls under way ----
    def send(self, command, *args):
        """Start a call and return at once."""
        words = [command] + [a if isinstance(a, Raw) else encode(a) for a in args]
        self.pending.append(command)
        try:
            self.process.stdin.write((" ".join(words) + "\n").encode())
        except BrokenPipeError as e:
            raise ProbeError(f"the probe on {self.url} ended") from e

    def ready(self, seconds=0.0):
        """Is there an answer, or will there be one within that time?"""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if not select.select([self.process.stdout], [], [], max(0, left))[0]:
                return False
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            if not got:
                raise ProbeError(f"the probe on {self.url} ended, status {self.process.wait()}")
            self.buffer += got
        return True

    def answer(self, seconds=ANSWER_S):
        """The answer of the oldest call under way."""
        if not self.ready(seconds):
            raise ProbeError(f"no answer to {self.pending[0]} within {seconds} s on {self.url}")
        line, _, self.buffer = self.buffer.partition(b"\n")
        command, a = self.pending.pop(0), Answer(line.decode())
        if a.result == "?":
            raise ProbeError(f"{command}: {a}")
        if a.ok and command in ("read", "wait", "instead"):
            a.value, a.store_ms = decode(a.words[0]), int(a.words[1])
        elif a.ok and command == "scan":
            a.found = [tuple(map(decode, w.split("="))) for w in a.words[1:]]
            if len(a.found) != int(a.words[0]):
                raise ProbeError(f"scan counted {a.words[0]} and gave {len(a.found)}")
        elif a.ok and command == "many":
            a.results = a.words
        elif a.ok and command in ("identity", "reopen"):
            a.value = decode(a.words[0])
        return a

    def call(self, command, *args):
        self.send(command, *args)
        return self.answer()

    # ---- the store's methods ----
    def read(self, key, fresh=True):
        return self.call("read", key, *([Raw("fresh")] if fresh else []))

    def cas(self, key, old, new):
        return self.call("cas", key, old, new)

    def many(self, *triples):
        return self.call("many", *[word for triple in triples for word in triple])

    def instead(self, i):
        return self.call("instead", Raw(i))

    def scan(self, prefix, most=None):
        return self.call("scan", prefix, *([] if most is None else [Raw(most)]))

    def page(self, prefix, after, most):
        """Up to `most` registers behind the key `after`."""
        return self.call("scan", prefix, Raw(most), after)

    def wait(self, key, old, wait_ms):
        return self.call("wait", key, old, Raw(wait_ms))

    def identity(self):
        return self.call("identity")

    def reopen(self):
        return self.call("reopen")

    def close(self):
        """End it, politely; by force if it hangs. Its exit status, and safe to call twice."""
        if self.process.stdin.closed:
            return self.process.returncode
        try:
            self.process.stdin.close()
            status = self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        return status

    def kill(self):
        self.process.kill()
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Raw(str):
    """A word that is sent as it is: a number, `fresh`."""

    def __new__(cls, value):
        return super().__new__(cls, str(value))
