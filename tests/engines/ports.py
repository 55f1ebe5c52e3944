"""
Ports for servers that tests start.

They lie below the range from which the kernel gives ports to clients, so none is taken by a connection between being
found and being listened on, nor while a server is down and comes back. And each is claimed, by a name that only one
process can have and that vanishes with it, so two tests that run beside each other never get the same.
"""
import random
import socket

LOWEST = 10000
_claimed = []


def _highest():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            return int(f.read().split()[0])
    except OSError:
        return 32768


def _claim(port):
    """No process listens there, and no other test has it. It is ours until this process ends."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0firn-test-port-{port}")
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))
    except OSError:
        name.close()
        return False
    _claimed.append(name)
    return True


def free_stretch(count):
    """The first of so many ports in a row."""
    highest = max(_highest(), LOWEST + 5000)
    for _ in range(10000):
        first = random.randrange(LOWEST, highest - count)
        if all(_claim(first + i) for i in range(count)):
            return first
    raise RuntimeError(f"no {count} free ports in a row between {LOWEST} and {highest}")


def free_port():
    return free_stretch(1)


def free_ports(count):
    return [free_port() for _ in range(count)]
