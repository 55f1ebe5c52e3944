"""Power cuts: a process that runs with lost_writes.so loses, when told, what it did not sync.

    env = power.env(bin_dir, folder, control)        for subprocess.Popen(..., env=env)
    power.cut(process, control, seed)                0: all that was not synced; else some of it
"""
import os

LIMIT_S = 60


def library(bin_dir):
    return os.path.join(os.path.dirname(os.path.abspath(bin_dir)), "tests", "liblost_writes.so")


def env(bin_dir, folder, control, base=None):
    """The environment of a process whose writes below `folder` can be lost; `control` is a file that does not exist."""
    path = library(bin_dir)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: build the tests first")
    found = dict(os.environ if base is None else base)
    found["LD_PRELOAD"] = " ".join(x for x in (path, found.get("LD_PRELOAD")) if x)
    found["FIRN_LOST_WRITES_DIR"] = os.path.realpath(folder)
    found["FIRN_LOST_WRITES_CONTROL"] = control
    return found


def cut(process, control, seed=0):
    """Ends the process as a power cut would. The folder is then what the disk had."""
    with open(control + ".new", "w", encoding="ascii") as f:
        f.write(f"{seed}\n")
    os.rename(control + ".new", control)
    try:
        code = process.wait(LIMIT_S)
    finally:
        os.unlink(control)
    if code != -9:
        raise RuntimeError(f"the process ended by itself, with {code}, before the power cut")
