#!/usr/bin/env python3
"""
A plain Snowflake, the control of the chaos test: a fixed worker number and the wall clock. It refuses while the
clock is behind its last ID and when a millisecond is used up, as good ones do, and knows nothing about the time
before its start. The same chaos that firn has to bear must make it repeat itself; else the chaos is too weak to
tell anything.
Usage: naive.py HOST:PORT WORKER
"""
import http.server
import socketserver
import struct
import sys
import threading
import time

EPOCH_MS = 1609459200000


class Snowflake:
    def __init__(self, worker):
        self.worker, self.last, self.seq, self.lock = worker, -1, 0, threading.Lock()

    def next(self):
        """An ID, or None while the clock is behind or stands."""
        with self.lock:
            now = int(time.time() * 1000) - EPOCH_MS
            if now < self.last or (now == self.last and self.seq == 4095):
                return None
            self.seq = self.seq + 1 if now == self.last else 0
            self.last = now
            return now << 22 | self.worker << 12 | self.seq


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    source = None

    def do_GET(self):  # pylint: disable=invalid-name
        n = int(self.path.rsplit("n=", 1)[1]) if "n=" in self.path else 1
        ids = [self.source.next() for _ in range(n)]
        body = b"" if None in ids else b"".join(struct.pack(">Q", i) for i in ids)
        self.send_response(503 if None in ids else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    Answer.source = Snowflake(int(sys.argv[2]))
    with Server((host, int(port)), Answer) as server:
        print("serving", flush=True)
        server.serve_forever(0.05)


if __name__ == "__main__":
    main()
