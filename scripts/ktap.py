#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Counts test results: the one place that reads TAP and KTAP and decides what passed, failed and was skipped.

    ktap.py count LOG --token T --tally FILE [--prefix 6.1] [--kernel 6.1] [--skips FILE]
    ktap.py total FILE...

A LOG holds the output of programs between marker lines, which begin with @@ and a token that the programs do not know:

    @@T expect NAME            this program must report
    @@T begin NAME             its output follows
    @@T end NAME STATUS [S]    its exit status, and the seconds it took
    @@T splat NAME TEXT        the kernel complained while it ran
    @@T fail NAME WHY          something beside the programs failed
    @@T skip NAME WHY          a visible skip of something that could not be tried

A unit of counting is one result line at the innermost level. Passed is "ok" without a directive. Failed is "not ok", and
one for each: a program that was expected and did not begin, did not end, printed no plan or another number of results
than its plan or its totals say, or ended with a status that its results do not explain; a splat; a skip that the file of
expected skips does not list; a listed skip that no longer skips. Expected skips are skipped.

The file of expected skips has lines "PATTERN KERNEL REASON"; PATTERN is a shell pattern for PROGRAM/TEST, KERNEL one for
the kernel's version.
"""
import argparse
import fnmatch
import re
import sys

RESULT = re.compile(r'^(?P<indent> *)(?P<not>not )?ok\b(?: +(?P<num>\d+))?(?P<rest>.*)$')
PLAN = re.compile(r'^(?P<indent> *)1\.\.(?P<n>\d+)(?: *# *(?P<skip>[Ss][Kk][Ii][Pp]\S*) *(?P<why>.*))?$')
DIRECTIVE = re.compile(r'(?:^|\s)#\s*(SKIP|TODO|XFAIL)\b\S*:?\s*(.*)$', re.I)
TOTALS = re.compile(r'^# Totals: pass:(\d+) fail:(\d+) xfail:(\d+) xpass:(\d+) skip:(\d+) error:(\d+)')
KSFT_SKIP = 4
# Lines kept before and after a failure.
SAID = 12
# Programs named with their time.
SLOWEST = 8


class Result:
    """kind is one of pass, fail, skip; said are the lines around a failure that may tell its cause."""

    def __init__(self, kind, name, why, said):
        self.kind = kind
        self.name = name
        self.why = why
        self.said = said


class Tally:
    """Results in the order in which they came."""

    def __init__(self):
        self.results = []
        self.took = []          # (seconds, program)

    def add(self, kind, name, why='', said=()):
        self.results.append(Result(kind, name, why, said))

    def count(self, kind):
        return sum(1 for r in self.results if r.kind == kind)


class Level:
    """The results of one depth of indentation that are not yet closed by a line of their parent."""

    def __init__(self, indent):
        self.indent = indent
        self.plan = None
        self.lines = 0
        self.last = 0
        self.complaints = []

    def check(self, where, tally):
        for why in self.complaints:
            tally.add('fail', where, why)
        if self.plan is None:
            tally.add('fail', where, f'no plan for its {self.lines} results')
        elif self.plan != self.lines:
            tally.add('fail', where, f'plan of {self.plan}, but {self.lines} results')


def parse_program(name, lines, status):
    """Counts one program's output. status is its exit status, None when it did not end."""
    tally = Tally()
    levels = [Level(0)]
    totals = None
    plan_skip = None
    # The harness tells the cause before a result, others in comments after it.
    before, after = [], None
    for line in lines:
        line = line.rstrip('\r\n')
        before = before[-SAID + 1:] + [line]
        if after is not None and re.match(r' *#', line) and len(after) < 2 * SAID:
            after.append(line)
        else:
            after = None
        m = TOTALS.match(line)
        if m:
            totals = [int(g) for g in m.groups()]
            continue
        if re.match(r'^ *Bail out!', line):
            tally.add('fail', name, line.strip())
            continue
        m = PLAN.match(line)
        if m:
            level = enter(levels, len(m['indent']), name, tally)
            if level.plan is not None:
                level.complaints.append('a second plan')
            level.plan = int(m['n'])
            if m['skip'] and level.indent == 0:
                plan_skip = m['why'] or 'no reason given'
            continue
        m = RESULT.match(line)
        if not m:
            continue
        said, before = before[:-1], []
        indent = len(m['indent'])
        # Deeper results right before this line are what it sums up: then it is no unit of its own.
        parent = levels[-1].indent > indent
        level = enter(levels, indent, name, tally)
        level.lines += 1
        if m['num']:
            if int(m['num']) != level.last + 1:
                level.complaints.append(f'result {m["num"]} follows result {level.last}')
            level.last = int(m['num'])
        test, directive, why = split_result(m['rest'])
        test = f'{name}/{test or level.lines}'
        if parent:
            # A parent may fail on its own account only.
            if m['not'] and not tally.count('fail'):
                tally.add('fail', test, 'failed although all of its parts passed', said)
        elif directive:
            tally.add('skip', test, f'{directive}: {why or "no reason given"}')
        elif m['not']:
            tally.add('fail', test, '', said)
            after = said
        else:
            tally.add('pass', test)
    while len(levels) > 1:
        levels[-1].check(name, tally)
        levels.pop()
        levels[-1].complaints.append('its last part has no result line of its own')
    if plan_skip and not levels[0].lines:
        tally.add('skip', name, plan_skip)
    elif not levels[0].lines and status == KSFT_SKIP:
        tally.add('skip', name, 'skipped as a whole')
    elif not levels[0].lines:
        tally.add('fail', name, 'no results', before)
    else:
        levels[0].check(name, tally)
    check_totals(name, totals, tally)
    check_status(name, status, tally, before)
    return tally


def enter(levels, indent, name, tally):
    while levels[-1].indent > indent:
        if levels[-1].lines or levels[-1].plan is not None:
            levels[-1].check(name, tally)
        levels.pop()
    if levels[-1].indent < indent:
        levels.append(Level(indent))
    return levels[-1]


def split_result(rest):
    """The name, directive and reason of what follows the number."""
    m = DIRECTIVE.search(rest)
    directive = why = ''
    if m:
        directive, why = m[1].upper(), m[2].strip()
        rest = rest[:m.start()]
    # A description after # belongs to the name only in prose; KUnit and kselftest put figures there.
    test = re.sub(r'\s+#.*$', '', rest).strip()
    test = re.sub(r'^-\s*', '', test)
    return re.sub(r'\s+', '_', test), directive, why


def check_totals(name, totals, tally):
    if totals is None:
        return
    # xfail, xpass and error have no column of their own here.
    want = (totals[0] + totals[3], totals[1] + totals[5], totals[2] + totals[4])
    have = (tally.count('pass'), sum(1 for r in tally.results if r.kind == 'fail' and not r.why), tally.count('skip'))
    if want != have:
        tally.add('fail', name, f'its totals (passed, failed, skipped) are {want}, its result lines say {have}')


def check_status(name, status, tally, last):
    if status is None:
        tally.add('fail', name, 'did not end', last)
    elif status == 124:
        tally.add('fail', name, 'ran out of its time', last)
    elif status == KSFT_SKIP and not tally.count('fail') and tally.count('skip'):
        pass
    elif status != 0 and not tally.count('fail'):
        tally.add('fail', name, f'exit status {status}, but no result says why', last)


class Skips:
    def __init__(self, path):
        self.rows = []
        if path:
            with open(path, encoding='utf-8') as f:
                for n, line in enumerate(f, 1):
                    line = line.split('#', 1)[0].strip() if line.lstrip().startswith('#') else line.strip()
                    if not line:
                        continue
                    words = line.split(None, 2)
                    if len(words) != 3:
                        sys.exit(f'{path}:{n}: need PATTERN KERNEL REASON')
                    self.rows.append(words)

    def find(self, test, kernel):
        for pattern, kern, reason in self.rows:
            if fnmatch.fnmatchcase(test, pattern) and fnmatch.fnmatchcase(kernel, kern):
                return reason
        return None

    def outlived(self, test, kernel):
        """The row of exactly this test."""
        return any(p == test and fnmatch.fnmatchcase(kernel, k) for p, k, _ in self.rows)


def parse_log(lines, token, skips, kernel):
    """Counts a whole log."""
    tally = Tally()
    mark = f'@@{token} '
    expected, begun = [], set()
    name, body = None, []

    def close(status):
        for r in parse_program(name, body, status).results:
            if r.kind == 'skip':
                reason = skips.find(r.name, kernel)
                if reason is None:
                    r.kind, r.why = 'fail', f'unexpected skip ({r.why})'
                else:
                    r.why = reason
            tally.results.append(r)
            if r.kind == 'pass' and skips.outlived(r.name, kernel):
                tally.add('fail', r.name, 'is listed as an expected skip, but passed: remove it from the list')

    for line in lines:
        at = line.find(mark)
        if at < 0:
            if name is not None:
                body.append(line)
            continue
        # A program may have left an unfinished line before the marker.
        if at and name is not None:
            body.append(line[:at])
        words = line[at + len(mark):].rstrip('\r\n').split(' ', 2)
        verb, who, rest = words[0], words[1] if len(words) > 1 else '', words[2] if len(words) > 2 else ''
        if verb == 'expect':
            expected.append(who)
        elif verb == 'begin':
            if name is not None:
                close(None)
            if who in begun:
                tally.add('fail', who, 'ran twice')
            name, body = who, []
            begun.add(who)
        elif verb == 'end':
            if who != name:
                tally.add('fail', who, 'ended without having begun')
                continue
            status, _, seconds = rest.partition(' ')
            close(int(status) if status.lstrip('-').isdigit() else None)
            if seconds.isdigit():
                tally.took.append((int(seconds), name))
            name = None
        elif verb in ('splat', 'fail'):
            tally.add('fail', who, ('splat: ' if verb == 'splat' else '') + rest)
        elif verb == 'skip':
            tally.add('skip', who, rest)
        else:
            tally.add('fail', who or 'log', f'unknown marker {verb}')
    if name is not None:
        close(None)
    for who in expected:
        if who not in begun:
            tally.add('fail', who, 'did not run')
    return tally


def count(args):
    skips = Skips(args.skips)
    with open(args.log, encoding='utf-8', errors='replace') as f:
        tally = parse_log(f, args.token, skips, args.kernel)
    prefix = args.prefix + '/' if args.prefix else ''
    for r in tally.results:
        if r.kind == 'fail':
            print(f'not ok {prefix}{r.name}' + (f'   # {r.why}' if r.why else ''))
            for line in r.said:
                print(f'#   {line}')
        elif r.kind == 'skip':
            print(f'# skip {prefix}{r.name}: {r.why}')
    numbers = [tally.count(k) for k in ('pass', 'fail', 'skip')]
    with open(args.tally, 'a', encoding='utf-8') as f:
        f.write('{} {} {} {}\n'.format(args.prefix or args.log, *numbers))
    slow = len(tally.took) > 2 and ', '.join(f'{name} {seconds}' for seconds, name in sorted(tally.took, reverse=True)[:SLOWEST] if seconds)
    print('# {}: {} passed, {} failed, {} skipped'.format(args.prefix or args.log, *numbers))
    if slow:
        print(f'# most of the time, in seconds: {slow}')
    return 0 if numbers[1] == 0 else 1


def total(args):
    sums = [0, 0, 0]
    for path in args.files:
        with open(path, encoding='utf-8') as f:
            for line in f:
                words = line.split()
                if len(words) != 4:
                    sys.exit(f'{path}: not a tally')
                for i in range(3):
                    sums[i] += int(words[i + 1])
    print('{} passed, {} failed, {} skipped'.format(*sums))
    return 0 if sums[1] == 0 and sums[0] > 0 else 1


def main():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(required=True)
    p = sub.add_parser('count')
    p.add_argument('log')
    p.add_argument('--token', required=True)
    p.add_argument('--tally', required=True)
    p.add_argument('--prefix', default='')
    p.add_argument('--kernel', default='')
    p.add_argument('--skips')
    p.set_defaults(run=count)
    p = sub.add_parser('total')
    p.add_argument('files', nargs='+')
    p.set_defaults(run=total)
    args = parser.parse_args()
    sys.exit(args.run(args))


if __name__ == '__main__':
    main()
