"""SIGSTOP is not done when kill() returns: a server may still answer what it has before each of its threads stands."""
import glob
import time

LIMIT = 180


def _stands(stat):
    try:
        with open(stat, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "TtZX"
    except OSError:
        return True  # it has ended


def wait_stopped(pids):
    """Until all threads of these processes stand still, or have ended."""
    end = time.monotonic() + LIMIT
    for pid in pids:
        while not all(_stands(s) for s in glob.glob(f"/proc/{pid}/task/*/stat")):
            if time.monotonic() > end:
                raise RuntimeError(f"process {pid} does not stop")
            time.sleep(0.001)
