"""
A wall clock that lies: libfaketime reads it from a file that a test rewrites at run time; the monotonic clock is real.
"""
import glob
import os
import re
import subprocess
import time

import firnd as f

HOUR, DAY = 3600, 86400
YEAR = 365 * DAY


class Clock:
    """The wall clock of the processes started with env()."""

    def __init__(self, test, library):
        self.path = os.path.join(test.dir, "clock")
        self.library = library
        self.set(0)

    def write(self, text):
        with open(self.path + ".new", "w", encoding="ascii") as out:
            out.write(text + "\n")
        os.replace(self.path + ".new", self.path)

    def set(self, offset_s):
        """Running, off by so much."""
        self.write(f"{offset_s:+d}")

    def freeze(self, at=None):
        """Standing; the format of libfaketime is local time."""
        self.write(time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() if at is None else at)))

    def env(self):
        # Without the last one libfaketime 0.9.10 takes the end of a monotonic wait for a wall-clock time.
        return {"LD_PRELOAD": self.library, "FAKETIME_TIMESTAMP_FILE": self.path, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_NO_CACHE": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}


def find_library(test):
    """What to preload, or None with the reason said. A sanitizer's run time has to come first."""
    found = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
    if not found:
        return None, "libfaketime is not installed"
    program = os.path.join(test.bin, "firnd")
    needs = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=f.LIMIT, check=False).stdout
    with open(program, "rb") as text:
        watched = re.search(rb"__[at]san_init", text.read())
    first = [w[2] for w in (line.split() for line in needs.splitlines())
             if len(w) > 2 and w[0].startswith(("libasan", "libtsan", "libubsan"))]
    if watched and not first:
        return None, "its sanitizer is linked in statically, and does not bear libfaketime"
    library = " ".join(first + [found[0]])
    clock = Clock(test, library)
    clock.set(-YEAR)
    try:
        said = subprocess.run([program, "--version"], env={**os.environ, **clock.env()},
                              capture_output=True, text=True, timeout=f.LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return None, "firnd hangs with libfaketime"
    if said.returncode != 0:
        return None, f"firnd does not start with libfaketime: {said.stderr.strip()[:300]}"
    clock.set(0)
    return clock, ""
