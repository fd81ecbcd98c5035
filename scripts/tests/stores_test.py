#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What selftests/bench/stores promises: a line that two CPUs store to is found, and told from those of a switch. Prints TAP."""
import os
import subprocess
import sys
import tempfile

from tap import end, result  # beside this file

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STORES = os.path.join(TOP, 'selftests', 'bench', 'stores')

KALLSYMS = '''\
ffffffff81000000 T ktime_get_mono_fast_ns
ffffffff81000100 D data
ffffffff81001000 T etw_relay_put
ffffffffc0000000 t etw_module_write\t[etw]
ffffffffc0000100 t etw_relay_reserve\t[etw]
ffffffffc0000200 t etw_relay_put.isra.0\t[etw]
ffffffffc0000300 t etw_self_note\t[etw]
ffffffffc0001000 t run_planted\t[etw_bench]
'''
# Path, CPU, line, instruction, stores: lines of one CPU, one at a switch of two, and the planted counter.
GOOD = '''\
1 0 1000 ffffffffc0000010 5
1 1 2000 ffffffffc0000010 5
1 0 3000 ffffffffc0000110 1
1 1 3000 ffffffffc0000120 1
2 0 1000 ffffffffc0000010 5
2 1 2000 ffffffff81000010 5
3 0 1000 ffffffffc0000010 5
3 1 2000 ffffffffc0000010 5
4 0 1000 ffffffffc0000010 5
4 1 2000 ffffffffc0000010 5
5 0 5000 ffffffffc0001010 9
5 1 5000 ffffffffc0001010 9
'''


def run(work, stores):
    paths = {name: os.path.join(work, name) for name in ('stores', 'kallsyms')}
    for name, text in (('stores', stores), ('kallsyms', KALLSYMS)):
        with open(paths[name], 'w', encoding='utf-8') as f:
            f.write(text)
    done = subprocess.run([STORES, paths['stores'], paths['kallsyms']], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main():
    print('TAP version 13')
    with tempfile.TemporaryDirectory() as work:
        status, out, listing = run(work, GOOD)
        result(status == 0 and 'other lines etw,all 3 3 3 lines' in out and 'etw,shared 0 0' in out, 'lines of one CPU each', status, out)
        result('etw,shared-at-a-switch 1 1' in out and 'at a switch only: 0x3000: CPU 0: etw_relay_reserve 1' in listing,
               'a line of two CPUs at a switch', out, listing)
        result('1 lines of one CPU: ktime_get_mono_fast_ns' in listing, 'functions of the kernel are named', listing)
        status, out, listing = run(work, GOOD + '1 1 1000 ffffffffc0000018 3\n')
        result('etw,shared 1 1' in out and 'shared: 0x1000: CPU 0: etw_module_write 5; CPU 1: etw_module_write 3' in listing,
               'a line of two CPUs on the path', out, listing)
        _, out, listing = run(work, GOOD + '1 1 3000 ffffffffc0000018 3\n')
        result('etw,shared 1 1' in out and 'etw,shared-at-a-switch 0' in out, 'a line of two CPUs at a switch and on the path', out)
        _, out, listing = run(work, GOOD + '21 1 1000 ffffffffc0000210 3\n21 0 2000 ffffffffc0000310 3\n21 0 2000 ffffffff81001000 1\n')
        result('etw,shared-with-other-code 1 1' in out and 'etw,shared-with-other-code-seldom 1 1' in out and
               'elsewhere CPU 0: etw_self_note 3' in listing and 'elsewhere CPU 1: etw_relay_put 3' in listing,
               'lines that the module stores to elsewhere', out, listing)
        status, out, _ = run(work, GOOD.replace('5 1 5000', '5 1 6000'))
        result(status == 1 and 'failed lines the planted shared counter was found 0 times' in out, 'the planted counter is missed', status, out)
        status, out, _ = run(work, GOOD.replace('2 1 2000 ffffffff81000010 5\n', ''))
        result(status == 1 and 'failed lines probe was seen on 1 CPUs' in out, 'a path that one CPU took alone proves nothing', status, out)
    return end()


if __name__ == '__main__':
    sys.exit(main())
