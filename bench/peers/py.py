"""Times Python's uuid module. Prints KEY, what, median and best ns a call, separated by tabs."""
import time
import uuid

ROUNDS = 9
RUN_NS = 20_000_000

ROWS = [
    ("uuid4", "uuid4()", uuid.uuid4),
    ("uuid4.text", "str(uuid4())", lambda: str(uuid.uuid4())),
    ("uuid1", "uuid1()", uuid.uuid1),
    ("uuid.parse", "UUID(text)", lambda: uuid.UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")),
]


def ns_per_call(call):
    n, start = 0, time.perf_counter_ns()
    while True:
        for _ in range(256):
            call()
        n += 256
        ns = time.perf_counter_ns() - start
        if ns >= RUN_NS:
            return ns / n


for key, what, call in ROWS:
    ns_per_call(call)
    rounds = sorted(ns_per_call(call) for _ in range(ROUNDS))
    print(key, what, f"{rounds[ROUNDS // 2]:.3f}", f"{rounds[0]:.3f}", sep="\t", flush=True)
