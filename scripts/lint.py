#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Rules of this tree that no other tool knows; prints TAP. Run at the top of a checkout: lint.py [FILE...]"""
import os
import re
import subprocess
import sys

# The module's pure parts: they know no kernel object of ours and are compiled on the host too.
PURE = {'filter', 'clock', 'class', 'schema'}


def tracked():
    out = subprocess.run(['git', 'ls-files', '-z', '-co', '--exclude-standard'], check=True, capture_output=True).stdout
    return [f for f in out.decode().split('\0') if f and os.path.exists(f)]


def text(path):
    with open(path, 'rb') as f:
        return f.read().decode('utf-8', 'replace')


def includes(path):
    """The headers of ours that a file names, relative to kmod."""
    here = os.path.dirname(path)
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(path), re.M):
        target = os.path.normpath(os.path.join(here, name))
        if not os.path.exists(target):
            target = os.path.join('kmod', name)
        yield target


def include_cycles(files):
    """Headers under kmod/ include one another in one direction."""
    graph = {f: list(includes(f)) for f in files if f.startswith('kmod/') and f.endswith('.h')}
    done, path = set(), []

    def visit(f):
        if f in path:
            yield ' -> '.join(path[path.index(f):] + [f])
            return
        if f in done or f not in graph:
            return
        path.append(f)
        for g in graph[f]:
            yield from visit(g)
        path.pop()
        done.add(f)

    for f in graph:
        yield from visit(f)


def pure_parts(files):
    """The pure parts of the module include only one another."""
    for f in files:
        stem = os.path.splitext(os.path.basename(f))[0]
        if os.path.dirname(f) != 'kmod' or stem not in PURE:
            continue
        for g in includes(f):
            if os.path.splitext(os.path.basename(g))[0] not in PURE:
                yield f'{f} includes {g}'


def version_tests(files):
    """Tests of the kernel's version are in kmod/compat.h only."""
    for f in files:
        if f.startswith('kmod/') and f != 'kmod/compat.h' and re.search(r'LINUX_VERSION_CODE|KERNEL_VERSION\(', text(f)):
            yield f


def machine_names(files):
    """No file names a place on the machine it was written on, nor the host of a package mirror."""
    top = os.getcwd()
    home = os.path.expanduser('~')
    # directories that every machine has say nothing of this one
    common = {'/', '/home', '/mnt', '/opt', '/root', '/srv', '/tmp', '/usr', '/var'}
    words = [w for w in (top, os.path.dirname(top), home) if w not in common]
    words += ['/home/' + 'user/', 'file:' + '//']
    try:
        out = subprocess.run(['apt-get', 'indextargets', '--format', '$(SITE)'], capture_output=True, text=True,
                             env={**os.environ, 'LC_ALL': 'C'}).stdout
        words += {re.sub(r'^\w+://', '', s).split('/')[0] for s in out.split()}
    except FileNotFoundError:
        pass
    for f in files:
        body = text(f)
        for w in words:
            if len(w) > 3 and re.search(r'(?<![\w./)}*-])' + re.escape(w) + r'(?![\w-])', body):
                yield f'{f}: {w}'


def executable_bits(files):
    """Files that begin with #! are executable, others are not."""
    for f in files:
        if os.path.islink(f):
            continue
        with open(f, 'rb') as fd:
            script = fd.read(2) == b'#!'
        if script != os.access(f, os.X_OK):
            yield f + (' is a script but not executable' if script else ' is executable but no script')


def white_space(files):
    """No trailing blanks, no missing newline at the end, no carriage returns."""
    for f in files:
        with open(f, 'rb') as fd:
            data = fd.read()
        if b'\0' in data or '/data/' in f or f.endswith(('.log', '.expected', '.out', '.t')):
            continue
        if re.search(rb'[ \t]+$', data, re.M):
            yield f'{f}: blanks at the end of a line'
        if data and not data.endswith(b'\n'):
            yield f'{f}: no newline at the end'
        if b'\r' in data:
            yield f'{f}: carriage return'


CHECKS = [include_cycles, pure_parts, version_tests, machine_names, executable_bits, white_space]


def main():
    files = sys.argv[1:] or tracked()
    bad = 0
    print('TAP version 13')
    print(f'1..{len(CHECKS)}')
    for n, check in enumerate(CHECKS, 1):
        found = list(check(files))
        for line in found:
            print(f'# {line}')
        bad += bool(found)
        print(('not ok' if found else 'ok') + f' {n} {check.__name__}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
