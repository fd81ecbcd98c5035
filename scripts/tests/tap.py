# SPDX-License-Identifier: GPL-2.0-only
"""The TAP that tests print which are Python programs; it must not know what they test."""

number = failed = 0


def result(good, name, *more):
    """One result; MORE (texts, or lists of lines) is shown above it if it is not good."""
    if not good:
        show(*more)
    add(good, name)


def show(*more):
    for text in more:
        lines = text if isinstance(text, (list, tuple)) else str(text).splitlines()
        for line in lines:
            print(f'# {line}')


def add(good, name):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)


def end():
    """The plan; the status of the program, which is no good without a result."""
    print(f'1..{number}')
    return 0 if number and not failed else 1
