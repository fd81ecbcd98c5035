#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Rules of this tree that no other tool knows; prints TAP. Run at the top of a checkout: lint.py [FILE...]"""
import fnmatch
import os
import re
import subprocess
import sys

# Which file may include which of ours. Name of the layer, its files, and the layers (or files) it may include beside its own;
# inside the module from the ABI up to main.c. A file of the module that no row names is a fault.
LAYERS = [
    ('ABI', ['uapi/linux/*.h'], []),
    ('what lies below', ['kmod/compat.h', 'kmod/objects.[ch]', 'kmod/step.h'], ['ABI']),
    ('pure code', ['kmod/filter.[ch]', 'kmod/clock.[ch]', 'kmod/class.h', 'kmod/payload.[ch]', 'kmod/predicate.[ch]',
                   'kmod/schema.[ch]', 'kmod/schema_make.c', 'kmod/guid.[ch]'], ['ABI', 'what lies below']),
    ('relay', ['kmod/relay.[ch]', 'kmod/relay_mem.[ch]'], ['ABI', 'what lies below', 'pure code']),
    ('session and enable', ['kmod/hook.[ch]', 'kmod/provider.[ch]', 'kmod/write.[ch]', 'kmod/event.h', 'kmod/session.[ch]',
                            'kmod/enable.[ch]', 'kmod/self.[ch]', 'kmod/user.[ch]', 'kmod/registration.[ch]',
                            'kmod/write_user.[ch]'], ['ABI', 'what lies below', 'pure code', 'relay']),
    ('for other modules', ['kmod/etw_module.h', 'kmod/module_provider.c'],
     ['ABI', 'what lies below', 'pure code', 'session and enable']),
    ('providers', ['kmod/providers/*'], ['ABI', 'what lies below', 'kmod/class.h', 'kmod/event.h']),
    ('files', ['kmod/file_*.c', 'kmod/files.h', 'kmod/uarg.[ch]'],
     ['ABI', 'what lies below', 'pure code', 'relay', 'session and enable']),
    ('main', ['kmod/main.c'], ['what lies below', 'relay', 'session and enable', 'kmod/files.h', 'kmod/test.h',
                               'kmod/providers/providers.h']),
    ('tests in the module', ['kmod/kunit/*', 'kmod/test.h', 'selftests/generator/*'],
     ['ABI', 'what lies below', 'pure code', 'relay', 'session and enable', 'kmod/uarg.h']),
    ('libetw', ['userspace/lib/*'], ['ABI']),
    ('etwctl', ['userspace/etwctl/*'], ['ABI', 'userspace/lib/include/*']),
    ('demos', ['userspace/demos/*'], ['ABI', 'userspace/lib/include/*']),
    ('independent count', ['userspace/bpf/*'], []),
    ('tests of user space', ['userspace/tests/*', 'userspace/fuzz/*'], ['ABI', 'libetw', 'etwctl', 'pure code']),
    ('modules that are providers', ['selftests/modules/*'], ['ABI', 'kmod/etw_module.h', 'kmod/compat.h']),
    ('tests of libetw in a guest', ['selftests/provider_lib*.c', 'selftests/cost_provider.c'], ['ABI', 'kselftests', 'userspace/lib/include/*']),
    ('benchmark', ['selftests/bench/*'], ['ABI', 'kselftests', 'kmod/etw_module.h', 'kmod/compat.h', 'userspace/lib/include/*']),
    ('kselftests', ['selftests/*.[ch]', 'selftests/stress/*', 'selftests/fuzz/*'], ['ABI', 'selftests/generator/*.h']),
]
# Where <...> is looked for, of ours.
INCLUDE_DIRS = ['uapi', 'userspace/lib/include']
MAX_COLUMNS = 132


def tracked():
    out = subprocess.run(['git', 'ls-files', '-z', '-co', '--exclude-standard'], check=True, capture_output=True).stdout
    return [f for f in out.decode().split('\0') if f and os.path.exists(f)]


def text(path):
    with open(path, 'rb') as f:
        return f.read().decode('utf-8', 'replace')


def includes(path):
    """The files of ours that a file includes."""
    here = os.path.dirname(path)
    for quote, name in re.findall(r'^\s*#\s*include\s+(["<])([^">]+)[">]', text(path), re.M):
        places = [here, 'kmod' if path.startswith('kmod/') else 'userspace/lib'] if quote == '"' else INCLUDE_DIRS
        for place in places:
            target = os.path.normpath(os.path.join(place, name))
            if os.path.exists(target):
                yield target
                break


def layer_of(path):
    """A file's row of LAYERS; a folder's row counts for what is in its folders too."""
    for layer in LAYERS:
        if any(fnmatch.fnmatchcase(path, pattern) and (pattern.endswith('/*') or pattern.count('/') == path.count('/'))
               for pattern in layer[1]):
            return layer
    return None


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


def include_direction(files):
    """What a file includes is of its own layer or of one that its layer may know."""
    for f in files:
        if not f.endswith(('.c', '.h')):
            continue
        layer = layer_of(f)
        if not layer:
            if f.startswith('kmod/'):
                yield f'{f}: no row of LAYERS has it'
            continue
        for g in includes(f):
            other = layer_of(g)
            if other and other[0] != layer[0] and other[0] not in layer[2] and \
                    not any(fnmatch.fnmatchcase(g, pattern) for pattern in layer[2]):
                yield f'{f} ({layer[0]}) includes {g} ({other[0]})'


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
        if b'\0' in data or '/data/' in f or '/seeds/' in f or f.endswith(('.log', '.expected', '.out', '.t')):
            continue
        if re.search(rb'[ \t]+$', data, re.M):
            yield f'{f}: blanks at the end of a line'
        if data and not data.endswith(b'\n'):
            yield f'{f}: no newline at the end'
        if b'\r' in data:
            yield f'{f}: carriage return'


def long_lines(files):
    """No C line is over the limit, but for those whose text for people makes them so: one searches for it in one piece."""
    for f in files:
        if f.endswith(('.c', '.h')):
            for n, line in enumerate(text(f).split('\n'), 1):
                if len(line.expandtabs(8)) > MAX_COLUMNS and len(re.sub(r'"(?:\\.|[^"\\])*"', '', line).expandtabs(8)) > 80:
                    yield f'{f}:{n}: {len(line.expandtabs(8))} columns'


def licences(files):
    """Sources begin with their licence, which is that of their part."""
    for f in files:
        if not re.search(r'\.(c|h|py|sh|map|in|mk|1|3|pml|t)$|/[^.]*$|^[^.]*$', f) or '/traces/' in f or '/data/' in f or '/seeds/' in f:
            continue
        found = re.search(r'SPDX-License-Identifier: (.*?)(?: \*/)?$', '\n'.join(text(f).split('\n')[:3]), re.M)
        wanted = 'GPL-2.0-only'
        if f.startswith('uapi/'):
            wanted = 'GPL-2.0 WITH Linux-syscall-note'
        elif f.startswith('userspace/lib/') or re.fullmatch(r'userspace/man/\w+\.3', f):
            wanted = 'LGPL-2.1-only OR BSD-2-Clause'
        if not found:
            yield f'{f}: no licence in its first lines'
        elif found.group(1) != wanted:
            yield f'{f}: {found.group(1)} instead of {wanted}'


def table(title):
    """The first cells of the table under a title of README.md."""
    section = re.search(rf'^## {title}$(.*?)(?=^## |\Z)', text('README.md'), re.M | re.S)
    rows = re.findall(r'^\| (.*?) \|', section.group(1) if section else '', re.M)
    return [name.strip().strip('`') for row in rows for name in row.split(',') if not re.fullmatch(r"[-:| ]*", name)]


def readme_stages(_):
    """README.md has a row for each stage of scripts/check, and no other."""
    listed = subprocess.run(['scripts/check', '--list'], check=True, capture_output=True, text=True).stdout
    stages = {line.split('\t')[1 if line.count('\t') > 1 else 0] for line in listed.splitlines()}
    rows = set(table('How it is tested')) - {'stage'}
    yield from (f'README.md: no row for the stage {s}' for s in sorted(stages - rows))
    yield from (f'README.md: there is no stage {s}' for s in sorted(rows - stages))


def readme_tree(files):
    """README.md names every directory of the first level, and none that does not exist."""
    rows = set(table('The tree'))
    yield from (f'README.md: there is no {d}' for d in sorted(rows) if not os.path.isdir(d))
    for d in sorted({f.split('/')[0] for f in files if '/' in f and not f.startswith('.')}):
        if not any(row == d or row.startswith(d + '/') for row in {r.rstrip('/') for r in rows}):
            yield f'README.md: {d}/ is not in its tree'


CHECKS = [include_cycles, include_direction, version_tests, machine_names, executable_bits, white_space, long_lines, licences,
          readme_stages, readme_tree]


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
