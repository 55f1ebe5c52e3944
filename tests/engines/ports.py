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
    """Nobody listens there, and no other test has it. It is ours until this process ends."""
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


def free_ports(count):
    highest = max(_highest(), LOWEST + 5000)
    ports = []
    for _ in range(10000):
        port = random.randrange(LOWEST, highest)
        if _claim(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"no {count} free ports between {LOWEST} and {highest}")


def free_port():
    return free_ports(1)[0]
