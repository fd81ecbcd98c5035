#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares our decoder with babeltrace2, event by event and field by field.

Reads `etwctl dump --json` of a trace and the same trace through babeltrace2's library; every event must have the same
time, CPU, thread, name and fields, with the same values, in the same order on each CPU, and both must come in time order.
It must not know how either reads a trace. TAP on stdout.

  ctf_compare.py [--etwctl PATH] [--lossy] DIR
  ctf_compare.py --self-test DIR             the same, after one value of our output was changed: must then fail
"""

import argparse
import collections
import json
import math
import os
import subprocess
import sys

import bt2

Record = collections.namedtuple("Record", "time cpu tid pid name fields")


class Differs(Exception):
    """The first difference found."""


def ours(etwctl, path, lossy):
    """Events of etwctl dump, in its order."""
    run = subprocess.Popen([etwctl, "dump", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = []
    for line in run.stdout:
        e = json.loads(line)
        if "time" not in e:
            if "error" in e or "damage" in e or ("loss" in e and not lossy):
                raise Differs("etwctl dump says %s" % line.decode().strip())
            continue
        out.append(Record(e["time"], e["cpu"], e["tid"], e["pid"], e["ctf"], list(e["fields"].items())))
    noise = run.stderr.read().decode().strip()
    status = run.wait()
    if status != (5 if lossy else 0) or (noise and not lossy):
        raise Differs("etwctl dump ended with status %d: %s" % (status, noise))
    return out


def plain(value):
    """A babeltrace2 value as Python's own."""
    if isinstance(value, bt2._IntegerFieldConst):
        return int(value)
    if isinstance(value, bt2._RealFieldConst):
        return float(value)
    if isinstance(value, bt2._StringFieldConst):
        return str(value)
    if isinstance(value, bt2._ArrayFieldConst):
        return [plain(v) for v in value]
    if isinstance(value, bt2._StructureFieldConst):
        return [(name, plain(v)) for name, v in value.items()]
    raise Differs("babeltrace2 has a field of type %s" % type(value).__name__)


def payload(event):
    """Fields without the lengths of the sequences that follow them; the library has taken the leading underscores away."""
    fields = plain(event.payload_field) if event.payload_field is not None else []
    out = []
    for i, (name, value) in enumerate(fields):
        if i + 1 < len(fields) and name == "_%s_length" % fields[i + 1][0]:
            if value != len(fields[i + 1][1]):
                raise Differs("%s: %s is %d, it has %d elements" % (event.name, name, value, len(fields[i + 1][1])))
            continue
        out.append((name, value))
    return out


def theirs(path):
    """Events of babeltrace2, in its order."""
    for msg in bt2.TraceCollectionMessageIterator(os.path.join(path, "kernel")):
        if not isinstance(msg, bt2._EventMessageConst):
            if isinstance(msg, (bt2._DiscardedEventsMessageConst, bt2._DiscardedPacketsMessageConst)):
                yield msg
            continue
        e = msg.event
        context = e.common_context_field
        time = msg.default_clock_snapshot
        yield Record(time.value * 10**9 // time.clock_class.frequency, int(e.packet.context_field["cpu_id"]), int(context["tid"]),
                     int(context["pid"]), e.name, payload(e))


def same(a, b):
    """Whether our JSON value @a and babeltrace2's @b are one: bytes are lower-case hex in ours, a list of numbers there."""
    if isinstance(b, list) and isinstance(a, str):
        return a == bytes(v & 0xFF for v in b).hex()
    if isinstance(a, float) or isinstance(b, float):
        return a == b or math.isclose(float(a), float(b), rel_tol=1e-15) or (a != a and b != b)
    if isinstance(a, bool):
        a = int(a)
    return type(a) is type(b) and a == b


def compare_one(a, b):
    if a[:5] != b[:5]:
        raise Differs("event: etwctl %s, babeltrace2 %s" % (a[:5], b[:5]))
    where = "%s at %d on CPU %d" % (a.name, a.time, a.cpu)
    if [n for n, _ in a.fields] != [n for n, _ in b.fields]:
        raise Differs("%s: fields: etwctl %s, babeltrace2 %s" % (where, [n for n, _ in a.fields], [n for n, _ in b.fields]))
    for (name, x), (_, y) in zip(a.fields, b.fields):
        if not same(x, y):
            raise Differs("%s: %s: etwctl %r, babeltrace2 %r" % (where, name, x, y))


def by_cpu(records):
    out = collections.defaultdict(list)
    for r in records:
        out[r.cpu].append(r)
    return out


def in_order(records, who):
    last = 0
    for r in records:
        if r.time < last:
            raise Differs("%s: %s on CPU %d at %d comes after an event at %d" % (who, r.name, r.cpu, r.time, last))
        last = r.time


class Tests:
    def __init__(self, total):
        self.nr = self.failed = 0
        print("TAP version 13")
        print("1..%d" % total)

    def run(self, name, call):
        self.nr += 1
        try:
            extra = call()
            print("ok %d - %s%s" % (self.nr, name, ": %s" % extra if extra else ""))
            return True
        except Differs as why:
            self.failed += 1
            print("not ok %d - %s: %s" % (self.nr, name, why))
            return False


def spoil(records):
    """Changes the last value of the last event that has an integer among its fields."""
    for i in range(len(records) - 1, -1, -1):
        fields = records[i].fields
        for j in range(len(fields) - 1, -1, -1):
            if isinstance(fields[j][1], int):
                fields[j] = (fields[j][0], fields[j][1] ^ 1)
                return


def compare(args):
    tests = Tests(4)
    state = {"a": [], "b": [], "lost": 0}

    def read_ours():
        state["a"] = ours(args.etwctl, args.dir, args.lossy)
        if args.self_test:
            spoil(state["a"])
        in_order(state["a"], "etwctl dump")
        return "%d events" % len(state["a"])

    def read_theirs():
        for r in theirs(args.dir):
            if isinstance(r, Record):
                state["b"].append(r)
            elif not args.lossy:
                raise Differs("babeltrace2 reports a loss")
            elif isinstance(r, bt2._DiscardedEventsMessageConst) and r.count is not None:
                state["lost"] += r.count
        in_order(state["b"], "babeltrace2")
        return "%d events%s" % (len(state["b"]), ", %d discarded" % state["lost"] if args.lossy else "")

    def counts():
        a, b = (collections.Counter(r.name for r in state[k]) for k in "ab")
        if a != b:
            raise Differs("etwctl %s, babeltrace2 %s" % (dict(a - b), dict(b - a)))
        if not a:
            raise Differs("neither has any event")
        return ", ".join("%s %d" % c for c in sorted(a.items()))

    def fields():
        a, b = by_cpu(state["a"]), by_cpu(state["b"])
        n = 0
        if sorted(a) != sorted(b):
            raise Differs("CPUs: etwctl %s, babeltrace2 %s" % (sorted(a), sorted(b)))
        for cpu, records in a.items():
            for x, y in zip(records, b[cpu]):
                compare_one(x, y)
                n += len(x.fields)
            if len(records) != len(b[cpu]):
                raise Differs("CPU %d: %d and %d events" % (cpu, len(records), len(b[cpu])))
        return "%d events, %d fields" % (len(state["a"]), n)

    tests.run("etwctl dump reads the trace, in time order", read_ours)
    tests.run("babeltrace2 reads the trace, in time order", read_theirs)
    tests.run("both have as many events of each name", counts)
    tests.run("times, CPUs, threads, names, fields and values are equal", fields)
    return tests.failed


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    p.add_argument("--etwctl", default=os.path.join(os.environ.get("ETW_BUILD", os.path.join(top, "build")), "bin", "etwctl"))
    p.add_argument("--lossy", action="store_true", help="losses are expected: both must still show the same events")
    p.add_argument("--self-test", action="store_true")
    p.add_argument("dir")
    args = p.parse_args()
    failed = compare(args)
    if args.self_test:
        return 0 if failed == 1 else 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
