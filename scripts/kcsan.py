#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Divides the data races that a KCSAN kernel reported into ours and the core kernel's. It knows the form of a report and
the lists of known races, nothing of guests.

  scripts/kcsan.py [--known FILE] CONSOLE

Writes CONSOLE to standard output without the reports that are wholly the core kernel's, and a line on standard error about
those. A report is the core kernel's only if it shows so: both accesses, each with a stack, all functions with their names and none of
a module. So one is ours too if who raced is not known (it may be our copy of memory, which is not watched), if a stack or a
name is missing, or if memory was freed that somebody still used: whose it was is not in the stacks. The kernel and its modules are
compiled without calls that leave no frame of the caller (-fno-optimize-sibling-calls), so none of ours is missing from a
stack. One of ours stays unless FILE explains it: lines "FUNCTION REASON", the function of one of the two accesses, or
"FUNCTION<CALLER REASON", which is that function only when CALLER called it; "*" and "?" as in file names. A line that has no reason is an error. Exit status: 0 none of ours is left, 1 some are, 2 usage.
"""
import argparse
import collections
import fnmatch
import re
import sys

STAMP = re.compile(r"^\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")
RULE = re.compile(r"^=+$")
TITLE = re.compile(r"BUG: KCSAN: (?:data-race|assert: race) in (.+)$")
ACCESS = re.compile(r"^(?:race at unknown origin, with )?(?:assert no \w+|read|write|read-write)(?: \([^)]*\))? to 0x[0-9a-f]+ of \d+ bytes by ")
MODULE = re.compile(r" \[([A-Za-z_]\w*)(?: [0-9a-f]+)?\]")
CORE_MODULES = {"null_blk", "brd", "loop"}
FRAME = re.compile(r"^ +(?:\? )?[A-Za-z_][\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+")
# What has no name: of a module that is gone, or nobody's.
NAMELESS = re.compile(r"^ +(?:\? )?0x[0-9a-f]+")
REORDERED = re.compile(r"^ +\+-> reordered to: ")


def text(line):
    return STAMP.sub("", line.rstrip("\r\n"))


def reports(lines):
    """Yields (is a report, lines): what lies between two lines of "=" and has a title."""
    plain, block = [], None
    for line in lines:
        if RULE.match(text(line)) and block is None:
            block = [line]
        elif block is None:
            plain.append(line)
        else:
            block.append(line)
            if RULE.match(text(line)):
                if any(TITLE.search(text(l)) for l in block):
                    if plain:
                        yield False, plain
                        plain = []
                    yield True, block
                    block = None
                else:
                    # Rules of something else.
                    plain += block[:-1]
                    block = [line]
    if plain or block:
        yield False, plain + (block or [])


def functions(title):
    """Those of the two accesses; the second may be unknown."""
    return [re.sub(r"(\.\w+)+$", "", f.strip().split("+")[0].split(" ")[0]) for f in title.split(" / ")]


def accesses(block):
    """As FUNCTION<CALLER, each of the two whose stack is known."""
    stacks = []
    for line in map(text, block):
        if ACCESS.match(line):
            stacks.append([])
        elif FRAME.match(line) and stacks and len(stacks[-1]) < 2:
            stacks[-1] += functions(line.replace("? ", ""))
    return ["<".join(s) for s in stacks]


def is_ours(block):
    """Whatever does not show that it is the core kernel's."""
    stacks = []
    for line in map(text, block):
        title = TITLE.search(line)
        if title and ("assert: race" in line or not " / " in title[1]):
            return True
        if (title or FRAME.match(line) or REORDERED.match(line)) and set(MODULE.findall(line)) - CORE_MODULES:
            return True
        if NAMELESS.match(line):
            return True
        if ACCESS.match(line):
            stacks.append(0)
        elif FRAME.match(line) and stacks:
            stacks[-1] += 1
    return len(stacks) != 2 or not all(stacks)


def read_known(path):
    known = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            function, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit(f"{path}:{number}: {function} has no reason")
            known.append((function, reason.strip()))
    return known


def main():
    parser = argparse.ArgumentParser(usage="scripts/kcsan.py [--known FILE] CONSOLE")
    parser.add_argument("--known")
    parser.add_argument("console")
    args = parser.parse_args()
    known = read_known(args.known) if args.known else []
    core, explained, ours = collections.Counter(), collections.Counter(), 0
    with open(args.console, encoding="utf-8", errors="replace") as f:
        for is_report, lines in reports(f):
            if is_report:
                title = next(TITLE.search(text(l)).group(1) for l in lines if TITLE.search(text(l)))
                names = functions(title)
                if not is_ours(lines):
                    core[" / ".join(names)] += 1
                    continue
                reason = [r for pattern, r in known if any(fnmatch.fnmatchcase(n, pattern) for n in names + accesses(lines))]
                if reason:
                    explained[f"{' / '.join(names)}: {reason[0]}"] += 1
                    continue
                ours += 1
            sys.stdout.writelines(lines)
    for name, n in sorted(core.items()):
        print(f"# KCSAN, core kernel alone: {n} x {name}", file=sys.stderr)
    for name, n in sorted(explained.items()):
        print(f"# KCSAN, explained: {n} x {name}", file=sys.stderr)
    print(f"# KCSAN: {ours} unexplained races of the module, {sum(explained.values())} explained, "
          f"{sum(core.values())} of the core kernel alone in {len(core)} places", file=sys.stderr)
    sys.exit(1 if ours else 0)


if __name__ == "__main__":
    main()
