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


ID = re.compile(r'(?<!\w)activity_id = \[ ((?:\[\d+\] = \d+(?:, )?)+) \]')


def events(directory):
    text = subprocess.run(["babeltrace2", "--clock-seconds", directory + "/kernel"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    for line in text.splitlines():
        m = EVENT.match(line)
        if not m:
            continue
        fields = {k: s if not n else int(n, 0) for k, s, n in FIELD.findall(m[7])}
        activity = ID.search(m[7])
        if activity:
            fields["activity_id"] = bytes(int(n) for n in re.findall(r"= (\d+)", activity[1]))
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


def overlap(spans, others):
    """What of the intervals @spans lies in at least one of @others, as intervals that do not touch."""
    cut = sorted((max(a, c), min(b, d)) for a, b in spans for c, d in others if max(a, c) < min(b, d))
    merged = []
    for a, b in cut:
        if merged and a <= merged[-1][1]:
            merged[-1][1] = max(b, merged[-1][1])
        else:
            merged.append([a, b])
    return merged


def without(spans, others):
    """@spans, which do not touch, but for what lies in @others."""
    for c, d in sorted(others):
        spans = [(x, y) for a, b in spans for x, y in ((a, min(b, c)), (max(a, d), b)) if x < y]
    return spans


def activities(directory):
    """Of those whose events are called ...Start and ...Stop: duration, and time in which all who worked for it slept, one for a disk.

    Who worked for it, from then on: who wrote an event with its id, the parent of who did and ended, and whom these forked.
    Who writes one that is called ...Queued does no longer.
    """
    asleep, deep, reads, waiting, parts = (collections.defaultdict(list) for _ in range(5))
    begin, workers, parent, found = {}, collections.defaultdict(dict), {}, {}
    off, early, running, ended = {}, set(), set(), {}

    def wakes_up(tid, t):
        if tid in off:
            since, state = off.pop(tid)
            asleep[tid].append((since, t))
            if state & 2:
                deep[tid].append((since, t))

    for t, name, _, tid, pid, f in events(directory):
        if name == "sched_switch":
            prev = f["prev_tid"]
            if f["prev_state"] & 0xb0:
                ended[prev] = t
                for since in workers.values():
                    if prev in since and prev in parent:
                        since.setdefault(parent[prev], t)
            elif f["prev_state"] and not f["preempt"] and prev not in early:
                off[prev] = t, f["prev_state"]
            early.discard(prev)
            running.discard(prev)
            wakes_up(f["next_tid"], t)
            running.add(f["next_tid"])
        elif name == "sched_waking":
            wakes_up(f["tid"], t)
            if f["tid"] in running:
                early.add(f["tid"])
        elif name == "sched_wakeup":
            wakes_up(f["tid"], t)
            early.discard(f["tid"])
        elif name == "sched_process_fork" and f["child_tid"] == f["child_pid"]:
            parent[f["child_tid"]] = tid
            for since in workers.values():
                if tid in since:
                    since[f["child_tid"]] = t
        elif name == "lttng_statedump_block_device":
            parts[f["dev"]] = f["disk"]
        elif name == "block_bio_queue" and f["nr_sector"]:
            waiting[parts.get(f["dev"], f["dev"])].append([f["sector"], f["sector"] + f["nr_sector"], f["nr_sector"], tid, t])
        elif name == "block_rq_complete":
            for bio in waiting[f["dev"]]:
                bio[2] -= max(0, min(f["sector"] + f["nr_sector"], bio[1]) - max(f["sector"], bio[0]))
                if bio[2] <= 0:
                    reads[bio[3]].append((bio[4], t))
            waiting[f["dev"]] = [bio for bio in waiting[f["dev"]] if bio[2] > 0]
        elif "activity_id" in f:
            workers[f["activity_id"]].setdefault(tid, t)
            event = name.split(";")[0]
            if event.endswith("Queued"):
                del workers[f["activity_id"]][tid]
            elif event.endswith("Start"):
                begin[f["activity_id"]] = t
            elif event.endswith("Stop") and f["activity_id"] in begin:
                found[f["activity_id"].hex()] = (begin[f["activity_id"]], t, workers.pop(f["activity_id"]))
    for tid, (since, state) in list(off.items()):
        wakes_up(tid, float("inf"))
    waits = {}
    for k, (a, b, since) in found.items():
        spans = overlap([(a, b)], [x for tid, t in since.items() for x in overlap([(t, b)], overlap(deep[tid], reads[tid]))])
        for tid, t in since.items():
            spans = without(spans, without([(t, min(b, ended.get(tid, b)))], asleep[tid]))
        waits[k] = sum(d - c for c, d in spans)
    return {k: b - a for k, (a, b, _) in found.items()}, waits


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
    durations, waits = activities(directory)
    if durations:
        theirs = {a["id"].replace("-", ""): a for a in s["activity"]["activities"] if a["finished"]}
        check("durations of activities", durations, {k: a["duration_ns"] for k, a in theirs.items()})
        check("what they waited for disks, within 1 %", waits, {k: a["disk_ns"] for k, a in theirs.items()}, near)
    if s["fault"]["faults"]:
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
