#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares `etwctl summary --json` of a trace with figures worked out from babeltrace2's text, in another way.

    summary_check.py ETWCTL DIR [DIR ...]        TAP on stdout

It knows the names of events and fields, and nothing of how the summary works. Only for traces without loss.
"""
import collections
import json
import re
import subprocess
import sys

EVENT = re.compile(r"\[(\d+)\.(\d+)\] \([^)]*\) (?:\S+ )?([\w:;.-]+): \{ cpu_id = (\d+) \}, \{ tid = (-?\d+), pid = (-?\d+) \}, \{ ?(.*?) ?\}$")
FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(-?(?:0x)?[0-9A-Fa-f]+)(?=,|$))')     # numbers and texts: no others are used


def events(directory):
    text = subprocess.run(["babeltrace2", "--clock-seconds", directory + "/kernel"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    for line in text.splitlines():
        m = EVENT.match(line)
        if not m:
            continue
        fields = {k: s if not n else int(n, 0) for k, s, n in FIELD.findall(m[7])}
        yield int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4]), int(m[5]), int(m[6]), fields


def work_out(directory):
    """Per process: CPU time, switches, latencies of wake-ups; I/Os by process and operation; faults. First who is who."""
    life = collections.Counter()        # how often a tid was forked: (tid, n) is one thread
    pid_of = {}
    every = list(events(directory))
    for _, name, _, tid, pid, f in every:
        if name == "sched_process_fork":
            life[f["child_tid"]] += 1
            pid_of[f["child_tid"], life[f["child_tid"]]] = f["child_pid"]
        elif name == "lttng_statedump_process_state":
            pid_of.setdefault((f["tid"], life[f["tid"]]), f["pid"])
        elif tid > 0:
            pid_of.setdefault((tid, life[tid]), pid)
    life.clear()

    def who(tid):
        return pid_of.get((tid, life[tid]), tid)

    cpu_ns, switches, faults = (collections.Counter() for _ in range(3))
    wakes = collections.defaultdict(list)
    running, off, left, woken = {}, {}, {}, {}
    waiting, ios = [], collections.defaultdict(list)
    parts, disks = {}, {}
    first = next((t for t, name, *_ in every if name == "sched_switch"), None)
    for t, name, cpu, tid, pid, f in every:
        if name == "sched_process_fork":
            life[f["child_tid"]] += 1
        if name == "sched_switch":
            prev, nxt = f["prev_tid"], f["next_tid"]
            cpu_ns[who(prev)] += t - running.get(cpu, first)
            switches[who(prev)] += 1
            running[cpu] = t
            off[prev], left[prev] = f["prev_state"] != 0, t
            # a wake-up counts if the thread slept before it, or was on its way to sleep: then it waits from there on
            since = woken.pop(nxt, None)
            if nxt and since is not None and off.get(nxt, True):
                wakes[who(nxt)].append(t - max(since, left.get(nxt, since)))
            off[nxt] = None
        elif name == "sched_waking":
            woken[f["tid"]] = t
        elif name == "sched_wakeup" and off.get(f["tid"], True) is None:
            woken.pop(f["tid"], None)
        elif name == "sched_wakeup_new":
            woken[f["tid"]] = t
            off[f["tid"]] = True
        elif name.startswith("x86_exceptions_page_fault"):
            faults[pid] += 1
        elif name == "lttng_statedump_block_device":
            parts[f["dev"]] = f["disk"]
            disks[f["dev"]] = f["diskname"]
        elif name == "block_bio_queue" and f["nr_sector"]:
            kind = "discard" if f["rwbs"] & 2 else "write" if f["rwbs"] & 1 else "read"
            owner = None if kind == "write" and f["comm"].startswith("kworker/") else pid
            waiting.append([parts.get(f["dev"], f["dev"]), f["sector"], f["sector"] + f["nr_sector"], f["nr_sector"], owner, kind, t])
        elif name == "block_rq_complete" and f["nr_sector"]:
            lo, hi = f["sector"], f["sector"] + f["nr_sector"]
            for bio in waiting:
                inside = min(hi, bio[2]) - max(lo, bio[1])
                if bio[0] == f["dev"] and inside > 0:
                    bio[3] -= inside
                    if bio[3] <= 0:
                        ios[bio[4], disks.get(bio[0]), bio[5]].append((t - bio[6], (bio[2] - bio[1]) * 512))
            waiting = [bio for bio in waiting if bio[3] > 0]
        elif name == "block_bio_complete":
            dev, end_of_bio = parts.get(f["dev"], f["dev"]), f["sector"] + f["nr_sector"]
            for bio in waiting:
                if bio[0] == dev and bio[2] == end_of_bio:
                    ios[bio[4], disks.get(bio[0]), bio[5]].append((t - bio[6], (bio[2] - bio[1]) * 512))
                    waiting.remove(bio)
                    break
    # who runs last runs to the last switch of all
    last, end = {}, first
    for t, name, cpu, _, _, f in every:
        if name == "sched_switch":
            last[cpu], end = f["next_tid"], t
    for cpu, tid in last.items():
        cpu_ns[who(tid)] += end - running[cpu]
    return cpu_ns, switches, wakes, ios, faults


def quantile(values, per_mille):
    return sorted(values)[(len(values) * per_mille + 999) // 1000 - 1]


def near(a, b):
    return abs(a - b) <= max(a, b) / 100


def compare(etwctl, directory, report):
    run = subprocess.run([etwctl, "summary", "--json", directory], check=True, stdout=subprocess.PIPE, universal_newlines=True)
    s = json.loads(run.stdout)
    cpu_ns, switches, wakes, ios, faults = work_out(directory)

    def check(what, mine, theirs, same=lambda a, b: a == b):
        wrong = [(k, mine.get(k, 0), theirs.get(k, 0)) for k in sorted(set(mine) | set(theirs), key=str)
                 if not same(mine.get(k, 0), theirs.get(k, 0))]
        report(not wrong and bool(theirs), "%s: %s (%d)" % (directory, what, len(theirs)), wrong[:5])

    def by_pid(rows, value):
        sums = collections.Counter()
        for row in rows:
            sums[row["pid"]] += value(row)
        return +sums

    runs = s["run"]["processes"]
    del cpu_ns[0], switches[0]
    check("CPU time by process", +cpu_ns, by_pid(runs, lambda p: p["cpu_ns"]))
    check("switches by process", +switches, by_pid(runs, lambda p: p["switches"]))
    check("wake-ups by process", {k: len(v) for k, v in wakes.items()}, by_pid(runs, lambda p: p["wakeup"]["count"]))
    # a number that was used again has several rows there, and is one process here
    rows = collections.Counter(p["pid"] for p in runs)
    alone = {p["pid"]: p["wakeup"] for p in runs if rows[p["pid"]] == 1 and p["wakeup"]["count"]}
    for what, key, per_mille in ("median", "median_ns", 500), ("99 %", "p99_ns", 990), ("longest", "max_ns", 1000):
        check("%s of wake-up latency, within 1 %%" % what, {k: quantile(v, per_mille) for k, v in wakes.items() if k in alone},
              {k: v[key] for k, v in alone.items()}, near)
    theirs = {}
    for row in s["disk"]["processes"]:
        for kind in ("read", "write", "discard"):
            if kind in row:
                theirs[row["pid"], row["disk"], kind] = row[kind]
    check("I/Os by process, disk and operation", {k: len(v) for k, v in ios.items()}, {k: v["count"] for k, v in theirs.items()})
    check("bytes", {k: sum(b for _, b in v) for k, v in ios.items()}, {k: v["bytes"] for k, v in theirs.items()})
    check("longest I/O", {k: max(t for t, _ in v) for k, v in ios.items()}, {k: v["latency"]["max_ns"] for k, v in theirs.items()})
    for what, key, per_mille in ("median", "median_ns", 500), ("99 %", "p99_ns", 990):
        check("%s of I/O, within 1 %%" % what, {k: quantile([t for t, _ in v], per_mille) for k, v in ios.items()},
              {k: v["latency"][key] for k, v in theirs.items()}, near)
    check("faults by process", +faults, by_pid(s["fault"]["processes"], lambda p: p["faults"]))


def main():
    count = failed = 0

    def report(ok, what, wrong):
        nonlocal count, failed
        count += 1
        failed += not ok
        print("%sok %d - %s" % ("" if ok else "not ", count, what))
        for row in wrong:
            print("# %s: from the text %s, in the summary %s" % row)

    for directory in sys.argv[2:]:
        compare(sys.argv[1], directory, report)
    print("1..%d" % count)
    return failed != 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
