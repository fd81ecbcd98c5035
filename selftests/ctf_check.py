#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the raw files of a trace directory against the rules every trace must keep (CTF 1.8 and what its readers need).

Reads metadata and packets with a parser of its own: it must share nothing with the module, libetw or babeltrace, whose
mistakes it has to find. TAP on stdout; exit status 0 if every rule holds.

  ctf_check.py [--lossy] [--open] [--events N] [--counts FILE] DIR
      DIR/kernel or DIR; --lossy: losses are no failure; --open: its writer was killed, so streams need not end at one time;
      --events: so many were written; --counts: what etw-count wrote while it ran in the recording
  ctf_check.py --self-test
      a known good trace passes, and each planted fault is found
"""

import argparse
import collections
import json
import os
import re
import struct
import sys
import tempfile

MAGIC = 0xC1FC1FC1
PACKET_HEADER = struct.Struct("<I16sI")
PACKET_CONTEXT = struct.Struct("<QQQQQQI")
HEAD = PACKET_HEADER.size + PACKET_CONTEXT.size


class Broken(Exception):
    """A rule that does not hold, with file and offset."""


# ---------------------------------------------------------------- metadata

TOKEN = re.compile(r"""
    \s+ | /\*.*?\*/ | //[^\n]*
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>-?0[xX][0-9a-fA-F]+|-?\d+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<op>:=|\.\.\.|[{}\[\]();=,<>:])
""", re.X | re.S)


def tokenize(text):
    tokens, at = [], 0
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise Broken("metadata: cannot read %r at offset %d" % (text[at:at + 20], at))
        if m.lastgroup:
            tokens.append((m.lastgroup, m.group(m.lastgroup), at))
        at = m.end()
    return tokens


def unquote(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text[1:-1])


class Metadata:
    """Blocks of a TSDL file. Types are tuples: ("integer", props), ("string", props), ("float", props),
    ("struct", [(name, type, length)], align), ("enum", type, labels), ("variant", tag, [(name, type)]);
    length is None, a number, or the name of the field that holds it."""

    def __init__(self, text):
        self.tokens, self.at = tokenize(text), 0
        self.aliases, self.structs, self.order = {}, {}, []
        self.blocks = {"trace": [], "env": [], "clock": [], "stream": [], "event": []}
        while self.at < len(self.tokens):
            self.top()

    def peek(self, ahead=0):
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else None

    def take(self, want=None):
        if self.at >= len(self.tokens):
            raise Broken("metadata: it ends too early, %s expected" % (want or "more"))
        kind, text, where = self.tokens[self.at]
        if want and text != want:
            raise Broken("metadata: %r at offset %d where %r belongs" % (text, where, want))
        self.at += 1
        return kind, text

    def top(self):
        word = self.peek()
        self.order.append(word)
        if word == "typealias":
            self.take()
            kind = self.type()
            self.take(":=")
            name = self.take()[1]
            if name in self.aliases:
                raise Broken("metadata: typealias %s twice" % name)
            self.aliases[name] = kind
            self.take(";")
        elif word == "struct":
            self.take()
            name = self.take()[1]
            if name in self.structs:
                raise Broken("metadata: struct %s twice" % name)
            self.structs[name] = self.struct_body()
            self.take(";")
        elif word in self.blocks:
            self.take()
            self.take("{")
            block = []
            while self.peek() != "}":
                key = self.take()[1]
                op = self.take()[1]
                if op == "=":
                    kind, text = self.take()
                    value = unquote(text) if kind == "string" else int(text, 0) if kind == "number" else text
                    block.append((key, value, kind))
                elif op == ":=":
                    block.append((key, self.type(), "type"))
                else:
                    raise Broken("metadata: %s %r" % (key, op))
                self.take(";")
            self.take("}")
            self.take(";")
            self.blocks[word].append(block)
        else:
            raise Broken("metadata: unknown block %r" % word)

    def props(self):
        out = {}
        self.take("{")
        while self.peek() != "}":
            key = self.take()[1]
            self.take("=")
            kind, text = self.take()
            out[key] = int(text, 0) if kind == "number" else text
            self.take(";")
        self.take("}")
        return out

    def struct_body(self):
        fields, align = [], 1
        self.take("{")
        while self.peek() != "}":
            kind = self.type()
            name = self.take()[1]
            length = None
            if self.peek() == "[":
                self.take()
                what, text = self.take()
                length = int(text, 0) if what == "number" else text
                self.take("]")
            self.take(";")
            fields.append((name, kind, length))
        self.take("}")
        if self.peek() == "align":
            self.take()
            self.take("(")
            align = int(self.take()[1], 0)
            self.take(")")
        return ("struct", fields, align)

    def type(self):
        word = self.take()[1]
        if word == "integer":
            props = self.props()
            if props.get("align", 1) != 8 or props["size"] % 8:
                raise Broken("metadata: an integer of %s bits, aligned to %s" % (props["size"], props.get("align", 1)))
            return ("integer", props)
        if word == "string":
            return ("string", self.props() if self.peek() == "{" else {})
        if word == "floating_point":
            return ("float", self.props())
        if word == "struct":
            if self.peek() == "{":
                return self.struct_body()
            name = self.take()[1]
            if name not in self.structs:
                raise Broken("metadata: struct %s is not declared" % name)
            return self.structs[name]
        if word == "enum":
            self.take(":")
            base = self.type()
            labels = []
            self.take("{")
            value = 0
            while self.peek() != "}":
                kind, text = self.take()
                label = unquote(text) if kind == "string" else text
                low = high = value
                if self.peek() == "=":
                    self.take()
                    low = high = int(self.take()[1], 0)
                    if self.peek() == "...":
                        self.take()
                        high = int(self.take()[1], 0)
                labels.append((label, low, high))
                value = high + 1
                if self.peek() == ",":
                    self.take()
            self.take("}")
            return ("enum", base, labels)
        if word == "variant":
            self.take("<")
            tag = self.take()[1]
            self.take(">")
            return ("variant", tag, [(n, k) for n, k, _ in self.struct_body()[1]])
        if word in self.aliases:
            return self.aliases[word]
        raise Broken("metadata: type %s is not declared" % word)


def get(block, key, default=None):
    for k, v, _ in block:
        if k == key:
            return v
    return default


def one(meta, name):
    if len(meta.blocks[name]) != 1:
        raise Broken("metadata: %d blocks %s" % (len(meta.blocks[name]), name))
    return meta.blocks[name][0]


# ---------------------------------------------------------------- decoding

def decode_value(kind, length, data, at, end, scope):
    """Value and offset behind it; Broken if it does not fit."""
    if length is not None:
        count = length if isinstance(length, int) else scope[length]
        base = kind[1] if kind[0] == "enum" else kind
        if base[0] == "integer" and base[1]["size"] == 8:
            if at + count > end:
                raise Broken("%d elements do not fit" % count)
            raw = data[at:at + count]
            if base[1].get("encoding"):
                return raw.split(b"\0")[0].decode("utf-8", "replace"), at + count
            if base[1].get("signed") in ("true", 1):
                return [b - 256 if b > 127 else b for b in raw], at + count
            return list(raw), at + count
        out = []
        for _ in range(count):
            v, at = decode_value(kind, None, data, at, end, scope)
            out.append(v)
        return out, at
    if kind[0] == "enum":
        return decode_value(kind[1], None, data, at, end, scope)
    if kind[0] == "integer":
        size = kind[1]["size"] // 8
        if at + size > end:
            raise Broken("an integer of %d bytes does not fit" % size)
        return int.from_bytes(data[at:at + size], "little", signed=kind[1].get("signed") in ("true", 1)), at + size
    if kind[0] == "string":
        stop = data.find(b"\0", at, end)
        if stop < 0:
            raise Broken("a string without its end")
        return data[at:stop].decode("utf-8", "replace"), stop + 1
    if kind[0] == "float":
        size, code = (4, "<f") if kind[1]["mant_dig"] == 24 else (8, "<d")
        if at + size > end:
            raise Broken("a float does not fit")
        return struct.unpack_from(code, data, at)[0], at + size
    if kind[0] == "struct":
        out = {}
        for name, k, n in kind[1]:
            out[name], at = decode_value(k, n, data, at, end, out)
        return out, at
    raise Broken("a %s in an event" % kind[0])


class Event:
    __slots__ = ("cpu", "time", "id", "name", "tid", "pid", "fields", "seq")


class Class:
    def __init__(self, block):
        self.id, self.name = get(block, "id"), get(block, "name")
        self.fields = get(block, "fields")
        self.stream = get(block, "stream_id", 0)
        self.keys = [k for k, _, _ in block]


class Packet:
    __slots__ = ("offset", "begin", "end", "content", "size", "seq", "discarded", "cpu")


class Trace:
    """A trace directory read as written; stops at the first broken rule of metadata or structure."""

    def __init__(self, path):
        self.path = os.path.join(path, "kernel") if os.path.isdir(os.path.join(path, "kernel")) else path
        with open(os.path.join(self.path, "metadata"), "rb") as f:
            self.raw = f.read()
        try:
            self.text = self.raw.decode("ascii")
        except UnicodeDecodeError as e:
            raise Broken("metadata: not ASCII at offset %d" % e.start) from e
        self.meta = Metadata(self.text)
        self.trace, self.env = one(self.meta, "trace"), one(self.meta, "env")
        self.clock, self.stream = one(self.meta, "clock"), one(self.meta, "stream")
        self.uuid = bytes.fromhex(get(self.trace, "uuid", "").replace("-", ""))
        self.classes = {}
        for block in self.meta.blocks["event"]:
            c = Class(block)
            if c.id in self.classes:
                raise Broken("metadata: event id %s twice" % c.id)
            self.classes[c.id] = c
        self.offset = get(self.clock, "offset", 0)

    def files(self):
        names = [n for n in os.listdir(self.path) if re.fullmatch(r"chan\w*_\d+", n)]
        return sorted(names, key=lambda n: int(n.rsplit("_", 1)[1]))

    def packets(self, name, data):
        at = 0
        while at < len(data):
            if at + HEAD > len(data):
                raise Broken("%s: %d bytes at offset %d are no packet" % (name, len(data) - at, at))
            magic, uuid, stream = PACKET_HEADER.unpack_from(data, at)
            if magic != MAGIC:
                raise Broken("%s: magic %#x at offset %d" % (name, magic, at))
            if uuid != self.uuid:
                raise Broken("%s: another trace's uuid at offset %d" % (name, at))
            if stream:
                raise Broken("%s: stream_id %d at offset %d" % (name, stream, at))
            p = Packet()
            p.offset = at
            p.begin, p.end, p.content, p.size, p.seq, p.discarded, p.cpu = PACKET_CONTEXT.unpack_from(
                data, at + PACKET_HEADER.size)
            if p.size % 8 or p.content % 8:
                raise Broken("%s: packet at %d: sizes %d, %d are not whole bytes" % (name, at, p.content, p.size))
            p.size //= 8
            p.content //= 8
            if not HEAD <= p.content <= p.size:
                raise Broken("%s: packet at %d: content %d, size %d bytes" % (name, at, p.content, p.size))
            if p.size > 4 << 20:
                raise Broken("%s: packet at %d: %d bytes are over 4 MiB" % (name, at, p.size))
            if at + p.size > len(data):
                raise Broken("%s: packet at %d: %d bytes, the file ends after %d" % (name, at, p.size, len(data) - at))
            yield p
            at += p.size

    def events(self, name, data, packet):
        at, end = packet.offset + HEAD, packet.offset + packet.content
        time, first = None, True
        while at < end:
            start = at
            where = "%s: record at offset %d" % (name, start)
            if at + 6 > end:
                raise Broken("%s: %d bytes are no record" % (where, end - at))
            ident, low = struct.unpack_from("<HI", data, at)
            # An extended header without need is allowed: it costs 8 bytes, never a wrong time.
            if ident == 0xFFFF:
                if at + 14 > end:
                    raise Broken("%s: its header does not fit" % where)
                ident, stamp = struct.unpack_from("<IQ", data, at + 2)
                at += 14
            else:
                if first:
                    raise Broken("%s: the first of a packet is not extended" % where)
                stamp = time + ((low - time) & 0xFFFFFFFF)
                at += 6
            if time is not None and stamp < time:
                raise Broken("%s: time goes back from %d to %d" % (where, time, stamp))
            if not packet.begin <= stamp <= packet.end:
                raise Broken("%s: time %d outside its packet %d..%d" % (where, stamp, packet.begin, packet.end))
            time, first = stamp, False
            if at + 8 > end:
                raise Broken("%s: its context does not fit" % where)
            e = Event()
            e.cpu, e.time, e.id, e.seq = packet.cpu, stamp, ident, packet.seq
            e.tid, e.pid = struct.unpack_from("<ii", data, at)
            cls = self.classes.get(ident)
            if cls is None:
                raise Broken("%s: event id %d is not declared" % (where, ident))
            e.name = cls.name
            try:
                e.fields, at = decode_value(cls.fields, None, data, at + 8, end, {})
            except Broken as why:
                raise Broken("%s (%s): %s" % (where, cls.name, why)) from why
            yield e

    def read(self, name):
        with open(os.path.join(self.path, name), "rb") as f:
            return f.read()


# ---------------------------------------------------------------- rules

# Fields that readers depend on, in order; ours may follow. c16, str: text; x: hexadecimal, which the others may be too.
FIELDS = {
    "sched_switch": "prev_comm c16, prev_tid i32, prev_prio i32, prev_state i64, next_comm c16, next_tid i32, next_prio i32",
    "sched_waking": "comm c16, tid i32, prio i32, target_cpu i32",
    "sched_wakeup": "comm c16, tid i32, prio i32, target_cpu i32",
    "sched_wakeup_new": "comm c16, tid i32, prio i32, target_cpu i32",
    "sched_migrate_task": "comm c16, tid i32, prio i32, orig_cpu i32, dest_cpu i32",
    "sched_process_exec": "filename str, tid i32, old_tid i32",
    "sched_process_exit": "comm c16, tid i32, prio i32",
    "sched_process_free": "comm c16, tid i32, prio i32",
    "block_rq_insert": "dev u32, sector u64, nr_sector u32, bytes u32, tid i32, rwbs u32, comm c16",
    "block_rq_issue": "dev u32, sector u64, nr_sector u32, bytes u32, tid i32, rwbs u32, comm c16",
    "block_rq_complete": "dev u32, sector u64, nr_sector u32, error i32, rwbs u32",
    "block_bio_queue": "dev u32, sector u64, nr_sector u32, rwbs u32, tid i32, comm c16",
    "x86_exceptions_page_fault_user": "address u64x, ip u64x, error_code u8x",
    "x86_exceptions_page_fault_kernel": "address u64x, ip u64x, error_code u8x",
    "lttng_statedump_start": "",
    "lttng_statedump_end": "",
    "lttng_statedump_process_state": "tid i32, pid i32, ppid i32, name c16, type i32, mode i32, submode i32, status i32, cpu u32",
    "lttng_statedump_block_device": "dev u32, diskname str",
}
# Named fields in any order, where a sequence and namespaces come between.
NAMED = {
    "sched_process_fork": {"parent_comm": "c16", "parent_tid": "i32", "parent_pid": "i32", "child_comm": "c16",
                           "child_tid": "i32", "child_pid": "i32"},
}
ENV = ("hostname", "domain", "sysname", "kernel_release", "kernel_version", "tracer_name", "tracer_major", "tracer_minor",
       "tracer_patchlevel")
RESERVED = ("sys_", "syscall", "exit_syscall", "compat_", "module", "lttng_", "sched_", "block_", "irq_")


def short(kind, length):
    """A field's type as FIELDS writes it."""
    if kind[0] == "enum":
        return short(kind[1], length)
    if kind[0] == "string":
        return "str"
    if kind[0] != "integer":
        return kind[0]
    if kind[1].get("encoding") and length is not None:
        return "c%s" % length
    name = "%s%d" % ("i" if kind[1].get("signed") in ("true", 1) else "u", kind[1]["size"])
    return name + ("x" if kind[1].get("base") in (16, "hex", "x") else "")


def rule_directory(t):
    """kernel/ holds metadata and one chan_<cpu> per CPU, nothing else"""
    for name in os.listdir(t.path):
        full = os.path.join(t.path, name)
        if os.path.isdir(full):
            raise Broken("%s: a directory" % name)
        if name != "metadata" and not name.startswith(".") and not re.fullmatch(r"chan\w*_\d+", name):
            if os.path.getsize(full):
                raise Broken("%s: neither metadata nor a stream" % name)
    if os.path.basename(os.path.abspath(t.path)) != "kernel":
        raise Broken("the directory is called %s" % os.path.basename(os.path.abspath(t.path)))
    cpus = [int(n.rsplit("_", 1)[1]) for n in t.files()]
    if not cpus or len(cpus) != len(set(cpus)):
        raise Broken("streams of CPUs %s" % cpus)


def rule_metadata(t):
    """metadata: first line, ASCII, order of blocks, one trace, env, clock and stream"""
    if not t.text.startswith("/* CTF 1.8"):
        raise Broken("metadata starts with %r" % t.text[:12])
    seen = [b for b in t.meta.order if b in t.meta.blocks]
    if seen[:4] != ["trace", "env", "clock", "stream"] or set(seen[4:]) - {"event"}:
        raise Broken("metadata: order of blocks is %s" % seen[:6])
    if (get(t.trace, "major"), get(t.trace, "minor"), get(t.trace, "byte_order")) != (1, 8, "le"):
        raise Broken("metadata: trace block %s" % [(k, v) for k, v, w in t.trace if w != "type"])
    if len(t.uuid) != 16:
        raise Broken("metadata: no trace uuid")


def layout(kind):
    return [(n, short(k, None) if k[0] != "struct" else "struct", length) for n, k, length in kind[1]]


def rule_structure(t):
    """metadata: packet header and context, record header and context are the ones readers know"""
    header = get(t.trace, "packet.header")
    if not header or layout(header) != [("magic", "u32", None), ("uuid", "u8", 16), ("stream_id", "u32", None)]:
        raise Broken("metadata: packet.header %s" % (header and layout(header)))
    context = get(t.stream, "packet.context")
    want = [(n, "u64", None) for n in ("timestamp_begin", "timestamp_end", "content_size", "packet_size",
                                       "packet_seq_num", "events_discarded")] + [("cpu_id", "u32", None)]
    if not context or layout(context) != want:
        raise Broken("metadata: packet.context %s" % (context and layout(context)))
    head = get(t.stream, "event.header")
    fields = head[1] if head else []
    if len(fields) != 2 or fields[0][0] != "id" or fields[0][1][0] != "enum" or fields[1][0] != "v" or head[2] != 8:
        raise Broken("metadata: event.header is not the known one")
    if fields[0][1][2] != [("compact", 0, 65534), ("extended", 65535, 65535)] or fields[1][1][:2] != ("variant", "id"):
        raise Broken("metadata: event.header's enum %s" % fields[0][1][2])
    alternatives = {n: [(f, k[1]["size"], "map" in k[1]) for f, k, _ in s[1]] for n, s in fields[1][1][2]}
    if alternatives != {"compact": [("timestamp", 32, True)], "extended": [("id", 32, False), ("timestamp", 64, True)]}:
        raise Broken("metadata: event.header's alternatives %s" % alternatives)
    if layout(get(t.stream, "event.context")) != [("_tid", "i32", None), ("_pid", "i32", None)]:
        raise Broken("metadata: event.context %s" % layout(get(t.stream, "event.context")))
    if get(t.stream, "id") != 0:
        raise Broken("metadata: stream id %s" % get(t.stream, "id"))


def rule_env(t):
    """metadata: env has what readers ask for, one blank on each side of ="""
    for key in ENV:
        value = get(t.env, key)
        if value is None:
            raise Broken("metadata: env has no %s" % key)
        if not re.search(r"^\t?%s = " % key, t.text, re.M):
            raise Broken("metadata: env %s is not written `name = value;`" % key)
    want = {"domain": "kernel", "sysname": "Linux", "tracer_name": "lttng-modules", "tracer_major": 2, "tracer_minor": 13}
    for key, value in want.items():
        if get(t.env, key) != value:
            raise Broken("metadata: env %s is %r" % (key, get(t.env, key)))


def rule_clock(t):
    """metadata: one clock, of ns without offset_s or of cycles with it; monotonic has the boot's uuid, another is absolute"""
    freq, offset, seconds = get(t.clock, "freq"), get(t.clock, "offset"), get(t.clock, "offset_s")
    cycles = get(t.clock, "name") == "cycles"
    if not freq or (freq == 1000000000) == cycles or not get(t.clock, "name"):
        raise Broken("metadata: clock %s, %s Hz" % (get(t.clock, "name"), freq))
    if offset is None or (seconds is not None) != cycles or (cycles and not 0 <= offset < freq):
        raise Broken("metadata: clock offset %s, offset_s %s" % (offset, seconds))
    # Readers take only a clock of that name to count from one moment in all traces of a boot, unless told that it is absolute.
    if get(t.clock, "name") == "monotonic":
        if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(get(t.clock, "uuid"))):
            raise Broken("metadata: clock uuid %s" % get(t.clock, "uuid"))
    elif str(get(t.clock, "absolute")).upper() != "TRUE" or get(t.clock, "uuid") is not None:
        raise Broken("metadata: clock %s: absolute %s, uuid %s" % (get(t.clock, "name"), get(t.clock, "absolute"), get(t.clock, "uuid")))


def rule_classes(t):
    """metadata: event ids dense from 0, names and field names that every reader takes"""
    if sorted(t.classes) != list(range(len(t.classes))):
        raise Broken("metadata: event ids %s" % sorted(t.classes)[:20])
    for c in t.classes.values():
        if c.stream != 0 or "context" in c.keys or c.fields is None or c.fields[0] != "struct":
            raise Broken("metadata: event %s: keys %s" % (c.name, c.keys))
        if not c.name or '"' in c.name:
            raise Broken("metadata: event name %r" % c.name)
        if ":" in c.name:
            if not re.fullmatch(r"[A-Za-z0-9_.]+:[A-Za-z0-9_.]+;k[0-9a-f]+;", c.name):
                raise Broken("metadata: event name %r is not Provider:Event;keywords;" % c.name)
            if c.name.startswith(RESERVED):
                raise Broken("metadata: event name %r begins like a kernel event" % c.name)
        names = [n for n, _, _ in c.fields[1]]
        if len(names) != len(set(names)):
            raise Broken("metadata: event %s has a field twice" % c.name)
        for n in names:
            if not re.fullmatch(r"_[A-Za-z0-9_]+", n):
                raise Broken("metadata: event %s, field %s" % (c.name, n))


def rule_fields(t):
    """metadata: known events have the fields and types that analyses read"""
    for c in t.classes.values():
        have = [(n[1:], short(k, length)) for n, k, length in c.fields[1]]
        want = [tuple(w.split()) for w in FIELDS.get(c.name, "").split(", ") if w]
        if [(n, k) if w.endswith("x") else (n, k.rstrip("x")) for (n, k), (_, w) in zip(have, want)] != want:
            raise Broken("metadata: %s has %s, not %s" % (c.name, have, want))
        for name, kind in NAMED.get(c.name, {}).items():
            if dict(have).get(name) != kind:
                raise Broken("metadata: %s has no %s %s" % (c.name, kind, name))


class Streams:
    """What the packet rules share: every packet and record, read once."""

    def __init__(self, trace):
        self.trace, self.packets, self.error, self.records = trace, {}, None, 0
        self.record_error = None
        self.by_name = {}
        for name in trace.files():
            self.packets[name] = packets = []
            try:
                data = trace.read(name)
                for p in trace.packets(name, data):
                    packets.append(p)
            except Broken as why:
                self.error = self.error or why
                continue
            last = None
            try:
                for p in packets:
                    for e in trace.events(name, data, p):
                        if last is not None and e.time < last:
                            raise Broken("%s: packet at %d: time goes back from %d to %d" % (name, p.offset, last, e.time))
                        last = e.time
                        self.records += 1
                        self.by_name[e.name] = self.by_name.get(e.name, 0) + 1
            except Broken as why:
                self.record_error = self.record_error or why


def rule_packets(s):
    """packets: magic, uuid, stream, sizes, and nothing behind the last one"""
    if s.error:
        raise s.error


def rule_cpu(s):
    """packets: cpu_id is that of the file name"""
    for name, packets in s.packets.items():
        for p in packets:
            if p.cpu != int(name.rsplit("_", 1)[1]):
                raise Broken("%s: packet at %d: cpu_id %d" % (name, p.offset, p.cpu))


def rule_times(s):
    """packets: begin <= end, and none begins before the one before it has ended"""
    for name, packets in s.packets.items():
        end = 0
        for p in packets:
            if p.begin > p.end or p.begin < end:
                raise Broken("%s: packet at %d: %d..%d after %d" % (name, p.offset, p.begin, p.end, end))
            end = p.end


def rule_span(s, is_open):
    """packets: the first of every CPU begins at one time, the last of every CPU ends at one time"""
    begins = {name: p[0].begin for name, p in s.packets.items() if p}
    ends = {name: p[-1].end for name, p in s.packets.items() if p}
    if not begins or len(set(begins.values())) != 1:
        raise Broken("streams begin at %s" % begins)
    if not is_open:
        empty = [name for name, p in s.packets.items() if not p]
        if empty:
            raise Broken("%s has no packet" % empty[0])
        if len(set(ends.values())) != 1:
            raise Broken("streams end at %s" % ends)


def rule_sequence(s, lossy):
    """packets: numbered from 0 without a gap"""
    for name, packets in s.packets.items():
        for i, p in enumerate(packets):
            before = packets[i - 1].seq if i else -1
            if p.seq <= before or (not lossy and p.seq != before + 1):
                raise Broken("%s: packet at %d: number %d after %d" % (name, p.offset, p.seq, before))


def rule_discarded(s, lossy):
    """packets: events_discarded never shrinks, and is 0 when nothing was lost"""
    for name, packets in s.packets.items():
        before = 0
        for p in packets:
            if p.discarded < before or (p.discarded and not lossy):
                raise Broken("%s: packet at %d: %d discarded after %d" % (name, p.offset, p.discarded, before))
            before = p.discarded


def rule_records(s):
    """records: declared, whole, first extended, times inside the packet and never back"""
    if s.record_error:
        raise s.record_error


def rule_counts(t, path):
    """as many of each event on each CPU, between its markers, as etw-count counted"""
    theirs, ours = {}, {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            value = json.loads(line)
            if value.get("misses"):
                raise Broken("%s: the count itself missed %d calls" % (path, value["misses"]))
            if "cpu" in value:
                theirs[value["cpu"]] = value["events"]
    if not theirs:
        raise Broken("%s: no counts" % path)
    for name in t.files():
        data, inside, counts = t.read(name), None, collections.Counter()
        for p in t.packets(name, data):
            for e in t.events(name, data, p):
                comm = e.fields.get("_prev_comm") if e.name == "sched_switch" else None
                if inside is None and comm == "etw-count-begin":
                    inside = True
                elif inside and comm == "etw-count-end":
                    inside = False
                elif inside:
                    counts[e.name] += 1
        if inside is False:
            ours[int(name.rsplit("_", 1)[1])] = counts
    if set(ours) != set(theirs):
        raise Broken("CPUs with both markers: trace %s, etw-count %s" % (sorted(ours), sorted(theirs)))
    for cpu, events in theirs.items():
        for name, n in events.items():
            if ours[cpu][name] != n:
                raise Broken("CPU %d, %s: trace %d, etw-count %d" % (cpu, name, ours[cpu][name], n))
    return ", ".join("%s %d" % (name, sum(e[name] for e in theirs.values())) for name in next(iter(theirs.values())))


def check(path, lossy=False, is_open=False, events=None, counts=None, out=print):
    """Runs all rules; number of those broken."""
    rules = [(r.__doc__, r) for r in (rule_directory, rule_metadata, rule_structure, rule_env, rule_clock, rule_classes,
                                      rule_fields)]
    total = len(rules) + 7 + (events is not None) + (counts is not None)
    test, broken = 0, 0

    def result(doc, call):
        nonlocal test, broken
        test += 1
        try:
            more = call()
            out("ok %d - %s%s" % (test, doc, ": %s" % more if more else ""))
        except Broken as why:
            broken += 1
            out("not ok %d - %s: %s" % (test, doc, why))

    out("TAP version 13")
    out("1..%d" % total)
    try:
        trace = Trace(path)
    except (Broken, OSError) as why:
        for doc, _ in rules:
            def give_up():
                raise Broken(str(why))
            result(doc, give_up)
        out("Bail out! %s" % why)
        return broken
    for doc, rule in rules:
        result(doc, lambda rule=rule: rule(trace))
    s = Streams(trace)
    result(rule_packets.__doc__, lambda: rule_packets(s))
    result(rule_cpu.__doc__, lambda: rule_cpu(s))
    result(rule_times.__doc__, lambda: rule_times(s))
    result(rule_span.__doc__, lambda: rule_span(s, is_open))
    result(rule_sequence.__doc__, lambda: rule_sequence(s, lossy))
    result(rule_discarded.__doc__, lambda: rule_discarded(s, lossy))
    result(rule_records.__doc__, lambda: rule_records(s))
    if events is not None:
        def rule_events():
            if s.records != events:
                raise Broken("%d records, %d written" % (s.records, events))
        result("as many records as were written", rule_events)
    if counts is not None:
        result(rule_counts.__doc__, lambda: rule_counts(trace, counts))
    out("# %d records in %d packets of %d streams" % (s.records, sum(map(len, s.packets.values())), len(s.packets)))
    return broken


# ---------------------------------------------------------------- self-test

SAMPLE = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8_t;
typealias integer { size = 16; align = 8; signed = false; } := u16_t;
typealias integer { size = 32; align = 8; signed = false; } := u32_t;
typealias integer { size = 64; align = 8; signed = false; } := u64_t;
typealias integer { size = 32; align = 8; signed = true; } := s32_t;
typealias integer { size = 64; align = 8; signed = true; } := s64_t;
trace {
	major = 1;
	minor = 8;
	uuid = "8a6f0c5e-2b1d-4e7a-9c3f-5d0e1b2a3c4d";
	byte_order = le;
	packet.header := struct { u32_t magic; u8_t uuid[16]; u32_t stream_id; };
};
env {
	hostname = "box";
	domain = "kernel";
	sysname = "Linux";
	kernel_release = "6.1.0-57-amd64";
	kernel_version = "#1 \\"SMP\\"";
	tracer_name = "lttng-modules";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_patchlevel = 0;
};
clock {
	name = monotonic;
	uuid = "11111111-2222-4333-8444-555555555555";
	description = "CLOCK_MONOTONIC";
	freq = 1000000000;
	precision = 1;
	offset = 1700000000000000000;
};
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp_t;
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := stamp32_t;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text_t;
struct etw_packet {
	stamp_t timestamp_begin; stamp_t timestamp_end; u64_t content_size; u64_t packet_size;
	u64_t packet_seq_num; u64_t events_discarded; u32_t cpu_id;
};
struct etw_event {
	enum : u16_t { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> { struct { stamp32_t timestamp; } compact; struct { u32_t id; stamp_t timestamp; } extended; } v;
} align(8);
stream {
	id = 0;
	event.header := struct etw_event;
	packet.context := struct etw_packet;
	event.context := struct { s32_t _tid; s32_t _pid; };
};
event {
	name = "sched_switch"; id = 0; stream_id = 0;
	fields := struct {
		text_t _prev_comm[16]; s32_t _prev_tid; s32_t _prev_prio; s64_t _prev_state;
		text_t _next_comm[16]; s32_t _next_tid; s32_t _next_prio; u8_t _preempt;
	};
};
event {
	name = "Demo:Started;k1;"; id = 1; stream_id = 0; loglevel = 4;
	fields := struct {
		u32_t _count; string { encoding = UTF8; } _what; u32_t __data_length; u8_t _data[ __data_length ];
	};
};
"""
SAMPLE_PACKET = bytes.fromhex("""
c11ffcc1 8a6f0c5e2b1d4e7a9c3f5d0e1b2a3c4d 00000000
e803000000000000 2823000000000000 b005000000000000 c005000000000000
0000000000000000 0000000000000000 00000000
ffff 00000000 d007000000000000 00000000 00000000
737761707065722f3000000000000000 00000000 14000000 0000000000000000
61000000000000000000000000000000 07000000 14000000 00
0100 b80b0000 07000000 07000000
05000000 686900 02000000 01ff 0000""")
SAMPLE_EMPTY = bytes.fromhex("""
c11ffcc1 8a6f0c5e2b1d4e7a9c3f5d0e1b2a3c4d 00000000
e803000000000000 2823000000000000 6002000000000000 8002000000000000
0000000000000000 0000000000000000 01000000 00000000""")


def faults():
    """Name, and a function that changes (metadata text, chan_0, chan_1, extra files)."""

    def poke(at, value, size):
        def change(t):
            d = bytearray(t["chan_0"])
            d[at:at + size] = value.to_bytes(size, "little")
            t["chan_0"] = bytes(d)
        return change

    def meta(old, new):
        def change(t):
            assert old in t["metadata"], old
            t["metadata"] = t["metadata"].replace(old, new)
        return change

    def second(at, value, size):
        def change(t):
            d = bytearray(SAMPLE_PACKET)
            d[24:32] = (9000).to_bytes(8, "little")
            d[32:40] = (9500).to_bytes(8, "little")
            d[82:90] = (9100).to_bytes(8, "little")
            d[157:161] = (9200).to_bytes(4, "little")
            d[56] = 1
            d[at:at + size] = value.to_bytes(size, "little")
            t["chan_0"] += bytes(d)
            e = bytearray(t["chan_1"])
            e[32:40] = (9500).to_bytes(8, "little")
            t["chan_1"] = bytes(e)
        return change

    yield "wrong magic", poke(0, 1, 4)
    yield "another uuid", poke(4, 1, 1)
    yield "stream_id 1", poke(20, 1, 4)
    yield "content over the packet", poke(40, 200 * 8, 8)
    yield "packet over the end of the file", poke(48, 200 * 8, 8)
    yield "first packet has number 1", poke(56, 1, 8)
    yield "events discarded", poke(64, 1, 8)
    yield "cpu_id of another CPU", poke(72, 1, 4)
    yield "begins at another time than the others", poke(24, 999, 8)
    yield "ends at another time than the others", poke(32, 9001, 8)
    yield "first record outside the packet", poke(82, 999, 8)
    yield "last record outside the packet", poke(32, 2999, 8)
    yield "time inversion in a packet", poke(82, 3001, 8)
    yield "first record not extended", poke(76, 0, 2)
    yield "record id not declared", poke(155, 2, 2)
    yield "string without its end", lambda t: t.update(chan_0=t["chan_0"][:173] + b"hihihihih" + t["chan_0"][182:])
    yield "sequence longer than the record", poke(176, 3, 4)
    yield "file cut in its last packet", lambda t: t.update(chan_0=t["chan_0"][:-1])
    yield "bytes behind the last packet", lambda t: t.update(chan_0=t["chan_0"] + b"\0" * 10)
    yield "time inversion between packets", second(82, 8000, 8)
    yield "packet begins before the end of the one before", second(24, 8999, 8)
    yield "gap in the packet numbers", second(56, 2, 8)
    yield "discard counter shrinks", lambda t: (second(0, MAGIC, 4)(t), poke(64, 1, 8)(t))
    yield "a side file", lambda t: t.update(index=b"x")
    yield "no stream at all", lambda t: (t.pop("chan_0"), t.pop("chan_1"))
    yield "first line missing", meta("/* CTF 1.8 */", "/* ctf */")
    yield "not ASCII", meta('"box"', '"b\xf6x"')
    yield "no clock offset", meta("\toffset = 1700000000000000000;\n", "")
    yield "another clock that is not absolute", meta("name = monotonic;", "name = boottime;")
    yield "a counter's clock of nanoseconds", meta("name = monotonic;", "name = cycles; absolute = TRUE;")
    yield "another frequency", meta("freq = 1000000000;", "freq = 2596135000;")
    yield "no clock uuid", meta('\tuuid = "11111111-2222-4333-8444-555555555555";\n', "")
    yield "an address that is not hexadecimal", lambda t: t.update(metadata=t["metadata"] + """event {
	name = "x86_exceptions_page_fault_user"; id = 2; stream_id = 0;
	fields := struct { u64_t _address; u64_t _ip; u8_t _error_code; };
};
""")
    yield "another tracer name", meta("lttng-modules", "etw")
    yield "env without hostname", meta('\thostname = "box";\n', "")
    yield "event id twice", meta("id = 1;", "id = 0;")
    yield "event ids with a hole", meta("id = 1;", "id = 2;")
    yield "field without underscore", meta("u32_t _count", "u32_t count")
    yield "field of another type", meta("s64_t _prev_state", "s32_t _prev_state")
    yield "fields in another order", meta("s32_t _prev_tid; s32_t _prev_prio;", "s32_t _prev_prio; s32_t _prev_tid;")
    yield "no tid in the context", meta("s32_t _tid; s32_t _pid;", "s32_t _pid; s32_t _tid;")
    yield "event name with a minus", meta("Demo:Started;k1;", "De-mo:Started;k1;")


def self_test():
    cases = [("the sample as it is", lambda t: None, False)] + [(n, f, True) for n, f in faults()]
    failed = 0
    print("TAP version 13")
    print("1..%d" % len(cases))
    for i, (name, change, bad) in enumerate(cases, 1):
        trace = {"metadata": SAMPLE, "chan_0": SAMPLE_PACKET, "chan_1": SAMPLE_EMPTY}
        change(trace)
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "kernel")
            os.mkdir(path)
            for file, data in trace.items():
                with open(os.path.join(path, file), "wb") as f:
                    f.write(data.encode("latin-1") if isinstance(data, str) else data)
            lines = []
            broken = check(top, out=lines.append)
        why = next((line for line in lines if line.startswith("not ok")), "")
        ok = bool(broken) == bad
        failed += not ok
        print("%s %d - %s%s" % ("ok" if ok else "not ok", i, name, " # found: " + why.split(" - ", 1)[1] if bad and why else ""))
        if not ok and not bad:
            print("# " + why)
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--lossy", action="store_true")
    p.add_argument("--open", action="store_true", dest="is_open")
    p.add_argument("--events", type=int)
    p.add_argument("--counts")
    p.add_argument("--self-test", action="store_true")
    p.add_argument("dir", nargs="?")
    args = p.parse_args()
    if args.self_test:
        return 1 if self_test() else 0
    if not args.dir:
        p.error("DIR is missing")
    return 1 if check(args.dir, args.lossy, args.is_open, args.events, args.counts) else 0


if __name__ == "__main__":
    sys.exit(main())
