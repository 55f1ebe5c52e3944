#!/usr/bin/env python3
"""
Takes IDs and tickets from firnd with a plain socket: firnd speaks the Redis protocol, and that is not much.

    firn_ids.py 127.0.0.1:9012,127.0.0.1:9022,127.0.0.1:9032 10

It stays with one server while that answers, and goes on to the next when it does not. Asking again is safe: a
Snowflake ID that was lost on its way is simply never used, and a ticket is asked for with a key, to which every server
gives the same number again, so that a gapless sequence has no hole.
"""
import socket
import sys
import time
import uuid

TIMEOUT_S = 2  # to connect, and for an answer
ROUNDS = 4     # over all addresses, PAUSE_S apart
PAUSE_S = 1


class Refused(Exception):
    """An error that another server would answer, too: the command is wrong, or not allowed."""


class Firn:
    def __init__(self, addresses):
        self.addresses = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in addresses)]
        self.stream = None

    def ask(self, *words):
        """One command; its answer as text. ConnectionError when no server gives one."""
        tried = []
        for attempt in range(ROUNDS * len(self.addresses)):
            if attempt > 0 and attempt % len(self.addresses) == 0:
                time.sleep(PAUSE_S)
            try:
                return self._ask_one(words)
            except (OSError, EOFError) as e:
                tried.append(f"{self.addresses[0][0]}:{self.addresses[0][1]}: {e}")
                self._go_on()
        raise ConnectionError("no server answered: " + "; ".join(tried))

    def _ask_one(self, words):
        if not self.stream:
            sock = socket.create_connection(self.addresses[0], TIMEOUT_S)  # the time-out stays
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.stream = sock.makefile("rwb")
            sock.close()  # the stream holds it open
        request = [f"*{len(words)}\r\n"] + [f"${len(w)}\r\n{w}\r\n" for w in words]
        self.stream.write("".join(request).encode())
        self.stream.flush()
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection ended")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-" and rest.startswith("TRYAGAIN"):  # its store is away; nothing was handed out
            raise OSError(rest)
        if kind == b"-":
            raise Refused(rest)
        if kind == b"$":
            body = self.stream.read(int(rest) + 2)
            if len(body) != int(rest) + 2:
                raise EOFError("the connection ended within an answer")
            return body[:-2].decode()
        return rest  # of INCR and the like

    def _go_on(self):
        self.close()
        self.addresses.append(self.addresses.pop(0))

    def close(self):
        if self.stream:
            try:
                self.stream.close()
            except OSError:
                pass  # what could not be sent is asked again elsewhere
        self.stream = None

    def snowflake(self):
        return self.ask("FIRN.NEXT", "snowflake")

    def ticket(self):
        return self.ask("FIRN.NEXT", "ticket", "KEY", str(uuid.uuid4()))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    firn = Firn(sys.argv[1].split(","))
    for _ in range(int(sys.argv[2])):
        print(f"Snowflake ID: {firn.snowflake()}, Ticket ID: {firn.ticket()}", flush=True)
    firn.close()


if __name__ == "__main__":
    main()
