#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Helps a guest out of a fault of QEMU's translation with one thread per CPU. It knows that fault, the protocol of the
debugger's port and x86-64; nothing of tests.

  scripts/unstick.py [--every SECONDS] MONITOR DEBUGGER       the sockets of QMP and of the debugger's port

The kernel changes its code under way: an int3 over the first byte, the rest, the new first byte. QEMU throws away what it has
translated of that byte before it stores the new one. A CPU that runs into the int3 right between translates it once more, and
nobody throws that away: int3 for ever, of which the memory knows nothing. So the kernel's handler sees no int3 there, returns to
it, and the CPU is lost, sooner or later all. It takes a busy machine to happen, since the thread must be held up between
two instructions.

Now and then this asks where the CPUs are, which does not stop them. Only when one is at the entry for int3 more than once in a short
time it stops the machine a moment, and looks whether a CPU is in that handler each of several times, always from the same
address, and the memory there has no int3. Then it stores what is there once more, upon which QEMU translates anew: nothing the
guest can see changes. A real int3, or a loop of the kernel's own making, is left alone. Each time is said on standard error. Ends when
the machine does.
"""
import argparse
import json
import re
import socket
import struct
import sys
import time

GLANCES = 12            # at where the CPUs are, of which two at the entry for int3 are reason to look
LOOKS = 5
HANDLER = 0x80          # how long the entry of the handler is at most: what it calls returns into it
STACK = 128             # words of the stack that are searched
KERNEL_CS = 0x10


class Gone(Exception):
    """The machine has ended, or does not answer."""


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    try:
        s.connect(path)
    except OSError as e:
        raise Gone from e
    return s


class Monitor:
    """QEMU's own words about a machine that goes on."""

    def __init__(self, path):
        self.file = connect(path).makefile("rw", encoding="utf-8")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, execute, **arguments):
        try:
            self.file.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
            self.file.flush()
            while True:
                line = self.file.readline()
                if not line:
                    raise Gone
                answer = json.loads(line)
                if "return" in answer or "error" in answer:
                    return answer.get("return")
        except (OSError, ValueError) as e:
            raise Gone from e

    def registers(self):
        """A text for each CPU."""
        text = self.ask("human-monitor-command", **{"command-line": "info registers -a"}) or ""
        return re.split(r"(?m)^CPU#", text)[1:]

    def read(self, address, length):
        text = self.ask("human-monitor-command", **{"command-line": "x /%dxb 0x%x" % (length, address)}) or ""
        found = re.findall(r"\b0x([0-9a-f]{2})\b", text)
        return bytes.fromhex("".join(found)) if len(found) == length else b""


class Machine:
    """Stopped from the connection to detach()."""

    def __init__(self, path):
        self.socket = connect(path)
        self.data = b""

    def receive(self):
        while True:
            begin = self.data.find(b"$")
            end = self.data.find(b"#", begin)
            if begin >= 0 and 0 <= end <= len(self.data) - 3:
                packet, self.data = self.data[begin + 1:end], self.data[end + 3:]
                self.send(b"+")
                return packet.decode("latin-1")
            try:
                more = self.socket.recv(65536)
            except OSError as e:
                raise Gone from e
            if not more:
                raise Gone
            self.data += more

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise Gone from e

    def ask(self, packet):
        data = packet.encode("latin-1")
        self.send(b"$%s#%02x" % (data, sum(data) & 0xff))
        return self.receive()

    def cpus(self):
        answer, ids = self.ask("qfThreadInfo"), []
        while answer.startswith("m"):
            ids += answer[1:].split(",")
            answer = self.ask("qsThreadInfo")
        return ids

    def registers(self, cpu):
        """Its stack pointer and instruction pointer; what is read from now on is read as that CPU does."""
        self.ask("Hg" + cpu)
        values = bytes.fromhex(self.ask("g")[:17 * 16])
        return struct.unpack_from("<Q", values, 7 * 8)[0], struct.unpack_from("<Q", values, 16 * 8)[0]

    def read(self, address, length):
        answer = self.ask("m%x,%x" % (address, length))
        return b"" if answer.startswith("E") else bytes.fromhex(answer)

    def write(self, address, data):
        return self.ask("M%x,%x:%s" % (address, len(data), data.hex())) == "OK"

    def detach(self):
        self.ask("D")
        self.socket.close()


def int3_handler(monitor):
    """Where the entry for int3 is, or None as long as there is none."""
    for line in "\n".join(monitor.registers()[:1]).splitlines():
        words = line.split()
        if words[:1] == ["IDT="]:
            gate = monitor.read(int(words[1], 16) + 3 * 16, 12)
            if len(gate) == 12:
                low, _, _, middle, high = struct.unpack("<HHHHI", gate)
                return high << 32 | middle << 16 | low
    return None


def suspicious(monitor, handler):
    """Is a CPU at the entry time and again?"""
    seen = {}
    for n in range(GLANCES):
        if n:
            time.sleep(0.02)
        for number, text in enumerate(monitor.registers()):
            m = re.search(r"\bRIP=([0-9a-f]+)", text)
            if m and handler <= int(m[1], 16) < handler + HANDLER:
                seen[number] = seen.get(number, 0) + 1
    return any(times > 1 for times in seen.values())


def came_from(words, pointer, handler):
    """The address of the int3 because of which a CPU with this stack and instruction pointer is in the handler, or None."""
    inside = handler <= pointer < handler + HANDLER
    if inside and len(words) > 1 and words[1] == KERNEL_CS:
        return words[0] - 1
    for n, word in enumerate(words):
        inside = inside or handler < word < handler + HANDLER
        # The number that stands for no system call, then what the CPU has put there.
        if inside and word == 0xffffffffffffffff and words[n + 2:n + 3] == [KERNEL_CS]:
            return words[n + 1] - 1
    return None


def stuck(machine, handler):
    """Addresses without an int3 at which CPUs have met one."""
    found = set()
    for cpu in machine.cpus():
        stack, pointer = machine.registers(cpu)
        # The stack may end with this page.
        data = machine.read(stack, min(8 * STACK, 4096 - stack % 4096))
        words = list(struct.unpack("<%dQ" % (len(data) // 8), data[:len(data) // 8 * 8]))
        site = came_from(words, pointer, handler)
        if site is not None and machine.read(site, 1) not in (b"", b"\xcc"):
            found.add(site)
    return found


def look(path, handler):
    """The addresses that were stored once more."""
    sites = None
    for n in range(LOOKS):
        if n:
            time.sleep(0.1)
        machine = Machine(path)
        now = stuck(machine, handler)
        sites = now if sites is None else sites & now
        if n == LOOKS - 1:
            for site in sites:
                machine.write(site, machine.read(site, 1))
        machine.detach()
        if not sites:
            break
    return sites


def main():
    parser = argparse.ArgumentParser(usage="scripts/unstick.py [--every SECONDS] MONITOR DEBUGGER")
    parser.add_argument("--every", type=float, default=20)
    parser.add_argument("monitor")
    parser.add_argument("debugger")
    args = parser.parse_args()
    try:
        time.sleep(args.every)
        monitor = Monitor(args.monitor)
        while True:
            handler = int3_handler(monitor)
            if handler and suspicious(monitor, handler):
                for site in look(args.debugger, handler):
                    print("unstick: QEMU ran an int3 at %#x that was no longer there; it was made to look again" % site,
                          file=sys.stderr, flush=True)
            time.sleep(args.every)
    except (Gone, KeyboardInterrupt):
        pass


if __name__ == "__main__":
    main()
