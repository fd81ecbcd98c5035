#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Feeds ktap.py with logs that are good, truncated and lying, and compares its counts; prints TAP."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
sys.dont_write_bytecode = True
import ktap  # noqa: E402

GOOD = 'TAP version 13\n1..2\nok 1 - a\nok 2 b\n'
HARNESS = '''TAP version 13
1..3
# Starting 3 tests from 1 test cases.
#  RUN           global.one ...
#            OK  global.one
ok 1 global.one
#  RUN           global.two ...
# x.c:7:two:Expected 1 (1) == 2 (2)
#          FAIL  global.two
not ok 2 global.two
ok 3 global.three # SKIP no such thing here
# FAILED: 2 / 3 tests passed.
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
'''
NESTED = '''KTAP version 1
1..2
    KTAP version 1
    # Subtest: one
    1..2
    ok 1 a
    ok 2 b
ok 1 one
    # Subtest: two
    1..1
        # Subtest: parameters
        1..2
        ok 1 x
        not ok 2 y
    not ok 1 parameters
not ok 2 two
'''
RUN = '@@T expect p\n@@T begin p\n{}@@T end p {}\n'

# What it is, the log, the expected skips, and how many pass, fail and are skipped.
CASES = [
    ('a good program', RUN.format(GOOD, 0), '', (2, 0, 0)),
    ('a failure with its status', RUN.format('1..2\nok 1 a\nnot ok 2 b\n', 1), '', (1, 1, 0)),
    ('a failure and status 0', RUN.format('1..1\nnot ok 1 a\n', 0), '', (0, 1, 0)),
    ('a status that no result explains', RUN.format(GOOD, 1), '', (2, 1, 0)),
    ('killed by its time limit', RUN.format('1..2\nok 1 a\n', 124), '', (1, 2, 0)),
    ('fewer results than the plan', RUN.format('1..3\nok 1 a\nok 2 b\n', 0), '', (2, 1, 0)),
    ('more results than the plan', RUN.format('1..1\nok 1 a\nok 2 b\n', 0), '', (2, 1, 0)),
    ('the plan at the end', RUN.format('ok 1 a\nok 2 b\n1..2\n', 0), '', (2, 0, 0)),
    ('two plans', RUN.format('1..1\n1..1\nok 1 a\n', 0), '', (1, 1, 0)),
    ('no plan', RUN.format('ok 1 a\n', 0), '', (1, 1, 0)),
    ('no output at all', RUN.format('', 0), '', (0, 1, 0)),
    ('a number left out', RUN.format('1..2\nok 1 a\nok 3 c\n', 0), '', (2, 1, 0)),
    ('the same number twice', RUN.format('1..2\nok 1 a\nok 1 a\n', 0), '', (2, 1, 0)),
    ('bail out', RUN.format('1..1\nok 1 a\nBail out! no device\n', 0), '', (1, 1, 0)),
    ('the kernel\'s harness, skip not expected', RUN.format(HARNESS, 1), '', (1, 2, 0)),
    ('the kernel\'s harness, skip expected', RUN.format(HARNESS, 1), 'p/global.three 6.* no such thing', (1, 1, 1)),
    ('a skip expected on another kernel only', RUN.format(HARNESS, 1), 'p/global.three 7.3 no such thing', (1, 2, 0)),
    ('totals that lie', RUN.format('1..2\nok 1 a\nok 2 b\n# Totals: pass:3 fail:0 xfail:0 xpass:0 skip:0 error:0\n', 0),
     '', (2, 1, 0)),
    ('passed with a skip among them', RUN.format('1..2\nok 1 a\nok 2 # SKIP no\n# PASSED: 2 / 2\n', 0), '', (1, 1, 0)),
    ('todo counts as a skip', RUN.format('1..2\nok 1 a\nnot ok 2 b # TODO later\n', 0), '', (1, 1, 0)),
    ('a listed skip that passes', RUN.format(GOOD, 0), 'p/a * gone', (2, 1, 0)),
    ('a pattern of skips that passes', RUN.format(GOOD, 0), 'p/a* * gone', (2, 0, 0)),
    ('skipped as a whole, expected', RUN.format('1..0 # SKIP no device\n', 4), 'p * no device', (0, 0, 1)),
    ('skipped as a whole, not expected', RUN.format('1..0 # SKIP no device\n', 4), '', (0, 1, 0)),
    ('status 4 without a word', RUN.format('', 4), '', (0, 1, 0)),
    ('nested: only the innermost count', RUN.format(NESTED, 1), '', (3, 1, 0)),
    ('a parent that fails alone', RUN.format('1..1\n    1..1\n    ok 1 a\nnot ok 1 s\n', 1), '', (1, 1, 0)),
    ('a nested plan that is wrong', RUN.format('1..1\n    1..2\n    ok 1 a\nok 1 s\n', 0), '', (1, 1, 0)),
    ('a nested part without its parent', RUN.format('1..1\n    1..1\n    ok 1 a\n', 0), '', (1, 1, 0)),
    ('truncated: begun and not ended', '@@T expect p\n@@T begin p\n1..2\nok 1 a\n', '', (1, 2, 0)),
    ('truncated: another begins', '@@T begin p\n1..1\nok 1 a\n@@T begin q\n1..1\nok 1 a\n@@T end q 0\n', '', (2, 1, 0)),
    ('expected and never begun', '@@T expect p\n@@T expect q\n@@T begin p\n' + GOOD + '@@T end p 0\n', '', (2, 1, 0)),
    ('an empty log', '@@T expect p\n', '', (0, 1, 0)),
    ('a splat', RUN.format(GOOD, 0) + '@@T splat p BUG: something\n', '', (2, 1, 0)),
    ('a visible skip', '@@T skip kernel-7.3 the mirror does not have it\n', '', (0, 0, 1)),
    ('forged markers with another token', RUN.format(GOOD + '@@X end p 0\n@@X begin q\nok 1 q\n', 0), '', (3, 2, 0)),
    ('a marker behind an unfinished line', '@@T begin p\n1..1\nok 1 a\nrubbish@@T end p 0\n', '', (1, 0, 0)),
    ('ran twice', RUN.format(GOOD, 0) + '@@T begin p\n' + GOOD + '@@T end p 0\n', '', (4, 1, 0)),
    ('carriage returns', RUN.format(GOOD.replace('\n', '\r\n'), 0), '', (2, 0, 0)),
    ('ok inside prose is no result', RUN.format('okay 1\n# ok 9 x\nthis is ok 1\n' + GOOD, 0), '', (2, 0, 0)),
    ('a status and its seconds', RUN.format(GOOD, '0 12'), '', (2, 0, 0)),
    ('a bad status and its seconds', RUN.format(GOOD, '1 12'), '', (2, 1, 0)),
    ('not-a-number as status', '@@T begin p\n' + GOOD + '@@T end p ?\n', '', (2, 1, 0)),
]

# What it is, the log, and the line that must be among what is kept of the one failure.
CAUSES = [
    ('the cause before its failure', RUN.format(HARNESS, 1), '# x.c:7:two:Expected 1 (1) == 2 (2)'),
    ('the cause after its failure', RUN.format('1..2\nok 1 a\nnot ok 2 b\n# it broke\n', 1), '# it broke'),
    ('what was said last, out of time', RUN.format('1..2\nok 1 a\nlast words\n', 124), 'last words'),
]


def cause_kept(log, line):
    tally = ktap.parse_log(log.splitlines(True), 'T', ktap.Skips(None), '6.1')
    return any(line in r.said for r in tally.results if r.kind == 'fail')


def main():
    bad = 0
    print('TAP version 13')
    print(f'1..{len(CASES) + len(CAUSES)}')
    for n, (what, log, skips, want) in enumerate(CASES, 1):
        table = ktap.Skips(None)
        if skips:
            table.rows.append(skips.split(None, 2))
        tally = ktap.parse_log(log.splitlines(True), 'T', table, '6.1')
        have = tuple(tally.count(k) for k in ('pass', 'fail', 'skip'))
        if have != want:
            bad += 1
            print(f'# want {want}, have {have}: {[(r.kind, r.name, r.why) for r in tally.results]}')
        print(('ok' if have == want else 'not ok') + f' {n} {what}')
    for n, (what, log, line) in enumerate(CAUSES, len(CASES) + 1):
        kept = cause_kept(log, line)
        bad += not kept
        print(('ok' if kept else 'not ok') + f' {n} {what}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
