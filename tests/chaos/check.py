"""What the clients' files say: duplicates, IDs outside the grants, errors, and how long no client got an ID."""
import array
import bisect
import collections
import sys

import client

NAMES = {client.REFUSED: "connection refused", client.LOST: "connection lost", client.SLOW: "no answer in time",
         client.ODD: "odd answer"}
SEQ_BITS, SLOT_BITS = 12, 10  # of the default layout


class Seen:
    """Everything that the clients of one run were told. `paths`: {node: its client's file}."""

    def __init__(self, paths):
        self.entries = {i: sorted(client.read(p)) for i, p in paths.items()}
        self.ids = {}
        for i, entries in self.entries.items():
            ids = array.array("Q", b"".join(e[3] for e in entries))
            if sys.byteorder == "little":
                ids.byteswap()
            self.ids[i] = ids

    def count(self):
        return sum(len(ids) for ids in self.ids.values())

    def duplicates(self):
        every = []
        for ids in self.ids.values():
            every.extend(ids)
        every.sort()
        return [a for a, b in zip(every, every[1:]) if a == b]

    def errors(self, begin=0.0, end=float("inf"), nodes=None):
        """What went wrong with requests asked or answered between two times, counted by kind."""
        out = collections.Counter()
        for i, entries in self.entries.items():
            if nodes is None or i in nodes:
                out.update(NAMES.get(r, f"HTTP {r}") for asked, answered, r, _ in entries
                           if r != client.OK and answered >= begin and asked <= end)
        return out

    def served(self, begin, end, node):
        return sum(1 for asked, answered, r, _ in self.entries[node] if r == client.OK and begin <= asked and answered <= end)

    def longest_gap(self, nodes):
        """Seconds without any answer with IDs, from the first request to the last."""
        entries = [e for i in nodes for e in self.entries[i]]
        times = sorted(e[1] for e in entries if e[2] == client.OK)
        times = [min(e[0] for e in entries), *times, max(e[1] for e in entries)]
        return max((b - a for a, b in zip(times, times[1:])), default=0.0)

    def outside(self, grants):
        """IDs that no process of their node had a grant for. `grants`: {node: [(slot, from, until)]}."""
        out = []
        for i, ids in self.ids.items():
            ranges = collections.defaultdict(list)
            for slot, begin, end in grants[i]:
                ranges[slot].append((begin, end))
            merged = {}
            for slot, rs in ranges.items():
                rs.sort()
                joined = [list(rs[0])]
                for begin, end in rs[1:]:
                    if begin <= joined[-1][1]:
                        joined[-1][1] = max(joined[-1][1], end)
                    else:
                        joined.append([begin, end])
                merged[slot] = ([r[0] for r in joined], [r[1] for r in joined])
            for number in ids:
                slot, tick = number >> SEQ_BITS & ((1 << SLOT_BITS) - 1), number >> (SEQ_BITS + SLOT_BITS)
                begins, ends = merged.get(slot, ((), ()))
                at = bisect.bisect_right(begins, tick) - 1
                if at < 0 or tick >= ends[at]:
                    out.append((i, number, slot, tick))
        return out


def overlaps(processes):
    """Pairs of processes whose grants overlap. `processes`: {name: [(slot, from, until)]}, without give-back."""
    by_slot = collections.defaultdict(dict)
    for name, grants in processes.items():
        for slot, begin, end in grants:
            b, e = by_slot[slot].get((name, begin), (begin, end))
            by_slot[slot][name, begin] = (b, max(e, end))
    out = []
    for slot, spans in by_slot.items():
        rows = sorted((b, e, name) for (name, _), (b, e) in spans.items())
        out += [(slot, a, b) for a, b in zip(rows, rows[1:]) if a[1] > b[0] and a[2] != b[2]]
    return out
