#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Divides the data races that a KCSAN kernel reported into ours and the core kernel's. It knows the form of a report and
the lists of known races, nothing of guests.

  scripts/kcsan.py [--known FILE] CONSOLE

Writes CONSOLE to standard output without the reports that are wholly the core kernel's, and a line on standard error about
those. A report is ours if a function of a module is in one of its stacks, or if nothing is known of a stack. One of ours stays
unless FILE explains it: lines "FUNCTION REASON", the function of one of the two accesses, "*" and "?" as in file names. A
line that has no reason is an error. Exit status: 0 none of ours is left, 1 some are, 2 usage.
"""
import argparse
import collections
import fnmatch
import re
import sys

STAMP = re.compile(r"^\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")
RULE = re.compile(r"^=+$")
TITLE = re.compile(r"BUG: KCSAN: (?:data-race|assert: race) in (.+)$")
MODULE = re.compile(r" \[(\w+)\]$")
CORE_MODULES = {"null_blk", "brd", "loop"}
FRAME = re.compile(r"^ ?\??\s*([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+")


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


def is_ours(block):
    frames = [f for f in map(text, block) if FRAME.match(f)]
    modules = {m.group(1) for m in map(MODULE.search, frames) if m}
    return not frames or bool(modules - CORE_MODULES)


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
                reason = [r for pattern, r in known if any(fnmatch.fnmatchcase(n, pattern) for n in names)]
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
