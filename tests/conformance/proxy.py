"""
A TCP proxy that breaks connections at a chosen byte.

    x = Proxy(("127.0.0.1", 2379)); x.address     # "127.0.0.1:40001"
    x.arm("reply", 17)          # after 17 more bytes of replies: cut this connection, both ways
    x.arm("reply", 17, hold=True)   # ... or let nothing more through on that side until release()
A cut happens once; later connections pass, as after a short loss of the network.
"""
import socket
import struct
import threading
import time

CHUNK = 65536
FIN_LATE_S = 1.0  # where bytes were late, the end of the connection is late too


class Proxy:
    def __init__(self, target):
        self.target = target
        self.lock = threading.Condition()
        self.flowing = {"request": threading.Event(), "reply": threading.Event()}  # clear: that side is held
        for event in self.flowing.values():
            event.set()
        self.open = set()
        self.bytes = {"request": 0, "reply": 0}
        self.cuts = self.cutting = 0  # cut, of those not ended yet
        self.side, self.left, self.hold = None, 0, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, side, after, hold=False):
        with self.lock:
            self.side, self.left, self.hold = side, after, hold

    def release(self):
        """Let everything through again, also what was held. What was cut has ended then: a client that has its whole
        answer, with the cut right behind it, would else ask once more on that connection."""
        with self.lock:
            self.side = None
            self.lock.wait_for(lambda: self.cutting == 0, 10)
        for event in self.flowing.values():
            event.set()

    def count(self):
        """Bytes since the last count(): (requests, replies)."""
        with self.lock:
            was = (self.bytes["request"], self.bytes["reply"])
            self.bytes = {"request": 0, "reply": 0}
        return was

    def close(self):
        self.listener.close()
        self.release()
        with self.lock:
            for s in self.open:
                _reset(s)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, timeout=10)
                server.settimeout(None)
            except OSError:
                _reset(client)
                client.close()
                continue
            with self.lock:
                self.open |= {client, server}
            pair = [client, server]
            for side, frm, to in (("request", client, server), ("reply", server, client)):
                threading.Thread(target=self._pump, args=(side, frm, to, pair), daemon=True).start()

    def _allow(self, side, size):
        """How many of `size` bytes may pass now, and whether the connection is cut behind them."""
        with self.lock:
            meets = self.side == side and size >= self.left
            if meets:
                size, self.side = self.left, None
                self.cuts += 1
                self.cutting += not self.hold
                if self.hold:
                    self.flowing[side].clear()
            elif self.side == side:
                self.left -= size
            self.bytes[side] += size
            return size, meets and not self.hold

    def _pump(self, side, frm, to, pair):
        late = cut = False
        try:
            while True:
                data = frm.recv(CHUNK)
                if not data:
                    break
                n, cut = self._allow(side, len(data))
                to.sendall(data[:n])
                if cut:
                    break
                if n < len(data) or not self.flowing[side].is_set():
                    late = True
                    self.flowing[side].wait()
                    to.sendall(data[n:])
            if late:
                time.sleep(FIN_LATE_S)
        except OSError:
            pass
        with self.lock:
            for s in pair:
                if s in self.open:
                    self.open.discard(s)
                    _reset(s)
            self.cutting -= cut
            self.lock.notify_all()


def _reset(s):
    """End a connection so that both its ends notice at once."""
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
