"""
What the tests of single stores share: named cases that are counted, an engine and probes that end with their case,
events that are waited for, certificates.

Usage of such a test: tests/store/NAME.py BIN [PART], where BIN/../tests/store_probe is the probe and PART picks cases.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..", "..", "conformance")]
from probe import Probe  # noqa: E402  pylint: disable=wrong-import-position

LIMIT = 180.0  # seconds that anything may take before it counts as failed
PROBE = os.path.join(os.path.abspath(sys.argv[1]), "..", "tests", "store_probe") if len(sys.argv) > 1 else None


def wait_for(what, check, limit=LIMIT):
    """Ask until it is true; returns what it said."""
    end = time.monotonic() + limit
    while True:
        said = check()
        if said:
            return said
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit:.0f} s for: {what}")
        time.sleep(0.01)


def expect(answer, result, *parts):
    """The result of a probe's call, and words that its text must have."""
    assert answer.result == result, f"{result} expected: {answer}"
    for part in parts:
        assert part in answer.text, f"'{part}' expected in: {answer}"


@contextlib.contextmanager
def running(*engines):
    """Started in this order, stopped whatever happens."""
    try:
        for e in engines:
            e.start()
        yield engines[0]
    finally:
        for e in reversed(engines):
            e.stop()


def probe(url, timeout_ms=15000):
    return Probe(PROBE, url, timeout_ms)


def opened(url, timeout_ms=15000):
    p = probe(url, timeout_ms)
    if not p.opened.ok:
        p.close()
        raise AssertionError(f"cannot open: {p.opened}")
    return p


def open_fails(url, result, *parts):
    with probe(url) as p:
        expect(p.opened, result, *parts)


def certificate(folder, name="server"):
    """A self-signed one for 127.0.0.1: its file and that of its key."""
    cert, key = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cert, key


def main(cases, missing):
    """Run each case(folder); the last line counts them."""
    if missing or not PROBE or not os.access(PROBE, os.X_OK):
        print(f"FAIL: {missing or 'give the folder of the programs, with the built store_probe beside it'}")
        print("0 passed, 1 failed")
        sys.exit(1)
    passed = failed = 0
    for case in cases:
        name = case.__name__.removeprefix("case_")
        if len(sys.argv) > 2 and sys.argv[2] not in name:
            continue
        folder, began = tempfile.mkdtemp(prefix="firn-store-"), time.monotonic()
        try:
            case(folder)
            passed += 1
            print(f"ok   {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)
