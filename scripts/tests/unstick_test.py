#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests when scripts/unstick.py stores code once more, and when it leaves a machine alone. TAP. The machine is made up."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import unstick  # noqa: E402
from tap import end, result  # noqa: E402  # beside this file

HANDLER = 0xffffffff81c00ba0
IDT = 0xfffffe0000000000
SITE = 0xffffffff810e179e
STACK = 0xffffc90000003dc0
NOP, INT3 = b"\x0f", b"\xcc"
REST = 0xffffffffffffffff
# What the CPU puts on the stack, and what the kernel adds.
HARDWARE = [SITE + 1, unstick.KERNEL_CS, 2, STACK + 256, 0x18]
IN_HANDLER = [0, 0, HANDLER + 0x35] + [7] * 15 + [REST] + HARDWARE
ELSEWHERE = 0xffffffff81a48df7


class Fake:
    """CPUs are (instruction pointer, stack); memory has a byte at SITE. The nth look sees the nth of cpus."""

    looks = written = stopped = 0

    def __init__(self, _=None):
        Fake.looks += 1
        Fake.stopped += 1
        self.cpus_now = Fake.plan[min(Fake.looks, len(Fake.plan)) - 1]

    def cpus(self):
        return ["%02x" % (n + 1) for n in range(len(self.cpus_now))]

    def registers(self, cpu):
        pointer, self.stack = self.cpus_now[int(cpu, 16) - 1]
        self.top = STACK // 4096 * 4096 + 4096 - 8 * len(self.stack) if Fake.short else STACK
        return self.top, pointer

    def read(self, address, length):
        if address == SITE:
            return Fake.memory[:length]
        data = struct.pack("<%dQ" % len(self.stack), *self.stack)
        # Nothing is behind a stack that ends with its page.
        return data[:length] if address == self.top and (length <= len(data) or not Fake.short) else b""

    def write(self, address, data):
        Fake.written += address == SITE and data == Fake.memory
        return True

    def detach(self):
        Fake.stopped -= 1


class Glances:
    def __init__(self, pointers):
        self.pointers = pointers

    def registers(self):
        now = self.pointers.pop(0) if len(self.pointers) > 1 else self.pointers[0]
        return ["%d\nRAX=0\nRIP=%016x RFL=2\nIDT=     %016x 00000fff\n" % (n, p, IDT) for n, p in enumerate(now)]

    def read(self, address, length):
        gate = struct.pack("<HHHHII", HANDLER & 0xffff, 0x10, 0x8e00, HANDLER >> 16 & 0xffff, HANDLER >> 32, 0)
        return gate[:length] if address == IDT + 48 else b""


STUCK = (ELSEWHERE, IN_HANDLER)
AT_ENTRY = (HANDLER, HARDWARE)
BUSY = (ELSEWHERE, [1, 2, 3, REST, 4])
USER = (HANDLER, [0x401000, 0x33, 2, 0x7ffc0000, 0x2b])
LOOKS = [
    # name, what each look sees, the byte in memory, stores
    ("stuck in the handler", [[BUSY, STUCK]], NOP, 1),
    ("stuck, seen at the entry and inside", [[AT_ENTRY, BUSY], [STUCK, BUSY], [AT_ENTRY, STUCK]], NOP, 1),
    ("a real int3", [[STUCK]], INT3, 0),
    ("passing through", [[STUCK], [BUSY]], NOP, 0),
    ("somewhere else", [[BUSY, BUSY]], NOP, 0),
    ("an int3 of user space", [[USER]], NOP, 0),
]


def main():
    print("TAP version 13")
    unstick.Machine = Fake
    unstick.time.sleep = lambda _: None
    for short in (False, True):
        for name, plan, memory, stores in LOOKS:
            Fake.plan, Fake.memory, Fake.short = plan, memory, short
            Fake.looks = Fake.written = Fake.stopped = 0
            sites = unstick.look("there", HANDLER)
            result(Fake.written == stores and len(sites) == stores and not Fake.stopped, f"{name}{', a short stack' if short else ''}")
    result(unstick.int3_handler(Glances([[ELSEWHERE]])) == HANDLER, "the entry for int3")
    for name, glances, want in (
        ("a CPU at the entry twice is suspicious", [[ELSEWHERE, HANDLER], [ELSEWHERE] * 2, [ELSEWHERE, HANDLER + 5], [ELSEWHERE] * 2], True),
        ("once is not", [[ELSEWHERE, HANDLER], [ELSEWHERE] * 2], False),
        ("two CPUs once are not", [[HANDLER, HANDLER], [ELSEWHERE] * 2], False),
        ("beside it is not", [[HANDLER - 1, HANDLER + unstick.HANDLER]], False),
    ):
        result(unstick.suspicious(Glances(glances), HANDLER) == want, name)
    return end()


if __name__ == "__main__":
    sys.exit(main())
