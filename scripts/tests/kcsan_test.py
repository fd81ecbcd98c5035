#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests scripts/kcsan.py: which reports it keeps. TAP. Knows its command line only."""
import os
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULE = "=" * 66


def report(title, *frames, stamp="[   12.345678] "):
    lines = [RULE, f"BUG: KCSAN: data-race in {title}", "", "write to 0xffff888003c1a000 of 8 bytes by task 77 on cpu 1:"]
    lines += [f" {f}" for f in frames]
    lines += ["", "value changed: 0x1 -> 0x2", "Reported by Kernel Concurrency Sanitizer on:", "CPU: 1 PID: 77 Comm: relay", RULE]
    return "".join(f"{stamp}{l}\r\n" for l in lines)


OURS = report("etw_relay_get [etw] / etw_relay_reserve [etw]", "etw_relay_get+0x12/0x340 [etw]", "do_syscall_64+0x4a/0xa0")
CORE = report("tick_nohz_idle_stop_tick / tick_sched_timer", "tick_sched_timer+0x5b/0xa0", "do_idle+0x4a/0xa0")
CALLED = report("__wake_up / ep_poll", "__wake_up+0x5b/0xa0", "ep_poll+0x4a/0xa0", "etw_wake+0x1/0x20 [etw]")
DISK = report("null_queue_rq [null_blk] / null_handle_rq", "null_queue_rq+0x5b/0xa0 [null_blk]")
ALONE = report("nothing_known")
PLAIN = "[    1.000000] booted\r\n"

CASES = [
    # name, console, known, status, kept, gone
    ("nothing", PLAIN, "", 0, ["booted"], []),
    ("ours is kept", PLAIN + OURS + PLAIN, "", 1, ["etw_relay_get", "booted"], []),
    ("the core kernel's goes", PLAIN + CORE + PLAIN, "", 0, ["booted"], ["KCSAN"]),
    ("one between two of the core kernel's", CORE + OURS + CORE, "", 1, ["etw_relay_get"], ["tick_nohz"]),
    ("the core kernel called by us is ours", CALLED, "", 1, ["__wake_up"], []),
    ("a module of the kernel's own is the core kernel", DISK, "", 0, [], ["null_queue_rq"]),
    ("without a stack nobody knows", ALONE, "", 1, ["nothing_known"], []),
    ("without stamps", report("etw_x [etw]", "etw_x+0x1/0x2 [etw]", stamp=""), "", 1, ["etw_x"], []),
    ("with callers", report("etw_x [etw]", "etw_x+0x1/0x2 [etw]", stamp="[   12.3][  T77] "), "", 1, ["etw_x"], []),
    ("explained", CALLED, "ep_poll it says why\n", 0, [], ["__wake_up"]),
    ("explained by its first access", CALLED, "__wake_up it says why\n", 0, [], ["__wake_up"]),
    ("an explanation is for whole names", CALLED, "ep_pol it says why\n", 1, ["__wake_up"], []),
    ("an explanation of another leaves it", OURS, "ep_poll it says why\n", 1, ["etw_relay_get"], []),
    ("no explanation without a reason", CALLED, "ep_poll\n", 1, [], ["__wake_up"]),
    ("a report that is cut off stays", CORE[:200], "", 0, ["BUG: KCSAN"], []),
]


def main():
    bad = 0
    print("TAP version 13")
    for number, (name, console, known, status, kept, gone) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as d:
            for file, text in (("console", console), ("known", known)):
                with open(os.path.join(d, file), "w", encoding="utf-8", newline="") as f:
                    f.write(text)
            run = subprocess.run([os.path.join(TOP, "scripts", "kcsan.py"), "--known", os.path.join(d, "known"),
                                  os.path.join(d, "console")], capture_output=True, text=True, check=False)
        ok = run.returncode == status and all(k in run.stdout for k in kept) and not any(g in run.stdout for g in gone)
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {name}")
        if not ok:
            print(f"# status {run.returncode}, output: {run.stdout!r} {run.stderr!r}")
    print(f"1..{len(CASES)}")
    sys.exit(1 if bad else 0)


main()
