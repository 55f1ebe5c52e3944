"""
A collector of spans (OTLP over HTTP with JSON) for the tests of tracing, and the traceparents that they send.
"""
import http.server
import json
import threading

import firnd as f

PARENT = "b7ad6b7169203331"
SERVER, INTERNAL, CLIENT = 2, 1, 3


def trace(n):
    return f"{n:032x}"


def parent(n, flags="01", version="00"):
    return f"{version}-{trace(n)}-{PARENT}-{flags}"


class Collector:
    """What it got, by span; it answers with `status`, or says nothing while `silent`."""

    def __init__(self, port=0, tls=None):
        outer = self
        self.spans, self.requests, self.problems = [], [], []
        self.lock = threading.Lock()
        self.status, self.silent = 200, threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                while outer.silent.is_set():
                    outer.released.wait(0.1)
                status = outer.take(self.path, self.headers, body)
                answer = b"{}"
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # connections that end in the middle are what this test is about

        self.released = threading.Event()
        self.server = Server(("127.0.0.1", port), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        with self.lock:
            self.requests.append((path, headers["Content-Type"]))
            if self.status != 200:
                return self.status
            try:
                for one in json.loads(body)["resourceSpans"]:
                    resource = attributes(one["resource"])
                    for scope in one["scopeSpans"]:
                        self.spans += [{**s, "resource": resource, "of": attributes(s)} for s in scope["spans"]]
            except (ValueError, KeyError, TypeError) as e:
                self.problems.append(f"{e!r}: {body[:500]}")
            return 200

    def of_trace(self, n):
        with self.lock:
            return [s for s in self.spans if s["traceId"] == trace(n)]

    def wait(self, n, spans=1):
        return f.wait_for(f"{spans} spans of trace {n}: {self.spans[-3:]}",
                          lambda: self.of_trace(n) if len(self.of_trace(n)) >= spans else None)

    def close(self):
        self.silent.clear()
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def attributes(value):
    def plain(v):
        return int(v["intValue"]) if "intValue" in v else v["stringValue"]
    return {a["key"]: plain(a["value"]) for a in value["attributes"]}
