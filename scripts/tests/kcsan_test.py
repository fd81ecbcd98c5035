#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests scripts/kcsan.py: which reports it keeps. TAP. Knows its command line only."""
import os
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULE = "=" * 66


STAMP = "[   12.345678] "


def report(title, *stacks, stamp=STAMP, kind="data-race", accesses=("write", "read")):
    """Each stack is a list of frames; without a second the other access is not known."""
    lines = [RULE, f"BUG: KCSAN: {kind} in {title}", ""]
    for n, (access, frames) in enumerate(zip(accesses, stacks)):
        unknown = "race at unknown origin, with " if len(stacks) == 1 else ""
        lines += [f"{unknown}{access} to 0xffff888003c1a000 of 8 bytes by {'task 77' if n else 'interrupt'} on cpu {n}:"]
        lines += [f" {f}" for f in frames] + [""]
    lines += ["value changed: 0x1 -> 0x2", "", "Reported by Kernel Concurrency Sanitizer on:", "CPU: 1 PID: 77 Comm: relay", RULE]
    return "".join(f"{stamp}{l}\r\n" for l in lines)


SYSCALL = "do_syscall_64+0x4a/0xa0"
TICK = ["tick_sched_timer+0x5b/0xa0", "do_idle+0x4a/0xa0"]
IDLE = ["tick_nohz_idle_stop_tick+0x5b/0xa0", "do_idle+0x4a/0xa0"]
OURS = report("etw_relay_get [etw] / etw_relay_reserve [etw]", ["etw_relay_get+0x12/0x340 [etw]", SYSCALL],
              ["etw_relay_reserve+0x12/0x340 [etw]", SYSCALL])
ONE_OURS = report("etw_x [etw] / ep_poll", ["ep_poll+0x4a/0xa0", SYSCALL], ["etw_x+0x12/0x340 [etw]", SYSCALL])
CORE = report("tick_nohz_idle_stop_tick / tick_sched_timer", IDLE, TICK)
CALLED = report("__wake_up / ep_poll", ["ep_poll+0x4a/0xa0", SYSCALL], ["__wake_up+0x5b/0xa0", "etw_wake+0x1/0x20 [etw]", SYSCALL])
DISK = report("null_queue_rq [null_blk] / null_handle_rq [null_blk]", ["null_queue_rq+0x5b/0xa0 [null_blk]"],
              ["null_handle_rq+0x5b/0xa0 [null_blk]"])
ALONE = report("nothing_known / nothing_else")
NO_STACK = report("__wake_up / ep_poll", ["ep_poll+0x4a/0xa0", SYSCALL], [])
# One access only, because of what the console lost.
HALF = "".join(l for l in CORE.splitlines(True) if "tick_sched_timer+" not in l and "read to" not in l)
UNKNOWN = report("memchr+0x12/0x40", ["memchr+0x12/0x40", SYSCALL])
UNKNOWN_OURS = report("memchr+0x12/0x40", ["memchr+0x12/0x40", "etw_x+0x12/0x340 [etw]", SYSCALL])
FREED = report("kmem_cache_free / remove_wait_queue", ["remove_wait_queue+0x12/0x40", SYSCALL], ["kmem_cache_free+0x2/0x3", "rcu_core+0x1/0x2"],
               kind="assert: race", accesses=("read (marked)", "assert no accesses"))
GONE = report("__wake_up / ep_poll", ["ep_poll+0x4a/0xa0", SYSCALL], ["__wake_up+0x5b/0xa0", "0xffffffffc0001234", SYSCALL])
REORDERED = report("tick_nohz_idle_stop_tick / tick_sched_timer", IDLE, TICK + [" |", " +-> reordered to: etw_wake+0x1/0x20 [etw]"],
                   accesses=("write", "read (reordered)"))
CORE_REORDERED = report("tick_nohz_idle_stop_tick / tick_sched_timer", IDLE, TICK + [" |", " +-> reordered to: do_idle+0x1/0x20"],
                        accesses=("read-write (marked)", "read (marked, reordered)"))
BUILD_ID = report("a / b", ["a+0x1/0x2"], ["b+0x5b/0xa0", "etw_x+0x5b/0xa0 [etw 0123456789abcdef]"])
PLAIN = "[    1.000000] booted\r\n"

CASES = [
    # name, console, known, status, kept, gone
    ("nothing", PLAIN, "", 0, ["booted"], []),
    ("ours is kept", PLAIN + OURS + PLAIN, "", 1, ["etw_relay_get", "booted"], []),
    ("the core kernel's goes", PLAIN + CORE + PLAIN, "", 0, ["booted"], ["KCSAN"]),
    ("one between two of the core kernel's", CORE + OURS + CORE, "", 1, ["etw_relay_get"], ["tick_nohz"]),
    ("the core kernel called by us is ours", CALLED, "", 1, ["__wake_up"], []),
    ("one access of ours", ONE_OURS, "", 1, ["ep_poll"], []),
    ("an access of the core kernel, a stack that is missing", NO_STACK, "", 1, ["ep_poll"], []),
    ("an access of the core kernel, the other lost", HALF, "", 1, ["tick_nohz"], []),
    ("who raced with the core kernel is not known", UNKNOWN, "", 1, ["memchr"], []),
    ("... and is explained", UNKNOWN, "memchr it says why\n", 0, [], ["memchr"]),
    ("... where one function calls it", UNKNOWN, "memchr<do_syscall_64 it says why\n", 0, [], ["memchr"]),
    ("... but where another calls it", UNKNOWN, "memchr<do_idle it says why\n", 1, ["memchr"], []),
    ("explained where it is called, the second access", CALLED, "__wake_up<etw_wake it says why\n", 0, [], ["__wake_up"]),
    ("... and the core kernel was called by us", UNKNOWN_OURS, "", 1, ["memchr"], []),
    ("freed while the core kernel used it", FREED, "", 1, ["kmem_cache_free"], []),
    ("a function without a name", GONE, "", 1, ["ep_poll"], []),
    ("moved into a function of ours", REORDERED, "", 1, ["tick_nohz"], []),
    ("moved within the core kernel", CORE_REORDERED, "", 0, [], ["tick_nohz"]),
    ("a module's name with a build id", BUILD_ID, "", 1, ["etw_x"], []),
    ("a module of the kernel's own is the core kernel", DISK, "", 0, [], ["null_queue_rq"]),
    ("without a stack nobody knows", ALONE, "", 1, ["nothing_known"], []),
    ("without stamps", report("etw_x [etw] / etw_y [etw]", ["etw_x+0x1/0x2 [etw]"], ["etw_y+0x1/0x2 [etw]"], stamp=""), "", 1, ["etw_x"], []),
    ("with callers", report("etw_x [etw] / etw_y [etw]", ["etw_x+0x1/0x2 [etw]"], ["etw_y+0x1/0x2 [etw]"],
                              stamp="[   12.3][  T77] "), "", 1, ["etw_x"], []),
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
