# SPDX-License-Identifier: GPL-2.0-only
"""The jobs in production of the benchmark's results: lines of guest/production, their table and their goals, for report.

It knows nothing of how a tracer is run.
"""

NUMBERS = ['untraced', 'untraced_min', 'untraced_max', 'traced', 'traced_min', 'traced_max', 'consumer', 'lost', 'events', 'made']
JOBS = ['build', 'database', 'echo']
RATES = [10000, 100000]
# No tracer one would use, but what the least of one costs: no filter, no level, one event's layout, no schema.
FLOOR = 'relay'


def parse(words):
    """A row of "production TRACER JOB RATE ...", or None."""
    if len(words) != 4 + len(NUMBERS):
        return None
    row = {'tracer': words[1], 'job': words[2], 'rate': int(words[3])}
    row.update((name, None if word == '-' else int(word)) for name, word in zip(NUMBERS, words[4:]))
    return row


def percent(row, what='traced'):
    """How much slower the job is."""
    return 100 * (row[what] - row['untraced']) / row['untraced']


def percent_in_all(row):
    """With the processor time of who takes the events, as if there were one CPU only."""
    return 100 * (row['traced'] + row['consumer'] - row['untraced']) / row['untraced']


def noise(row):
    """How far apart equal runs were, as slow-downs."""
    return 100 * (row['untraced_max'] - row['untraced_min'] + row['traced_max'] - row['traced_min']) / row['untraced']


def table(rows):
    """Markdown: tracers by jobs and rates."""
    if not rows:
        return
    columns = list(dict.fromkeys((r['job'], r['rate']) for r in rows))
    for title, of in (('Slow-down of a job in per cent, untraced in million instructions', percent),
                      ('The same with the processor time of who takes the events', percent_in_all)):
        yield ''
        yield title
        yield ''
        yield '| tracer | ' + ' | '.join(f'{job}, {rate:,}/s' for job, rate in columns) + ' | lost |'
        yield '| --- |' + ' ---: |' * (len(columns) + 1)
        if of is percent:
            base = [next(r for r in rows if (r['job'], r['rate']) == c) for c in columns]
            yield '| untraced | ' + ' | '.join(f"{r['untraced'] / 1e6:,.0f}" for r in base) + ' | |'
        for tracer in dict.fromkeys(r['tracer'] for r in rows):
            mine = {(r['job'], r['rate']): r for r in rows if r['tracer'] == tracer}
            cells = [f'{of(mine[c]):.2f} ±{noise(mine[c]) / 2:.2f}' if c in mine else '' for c in columns]
            lost = [r['lost'] for r in mine.values() if r['lost'] is not None]
            yield f'| {tracer} | ' + ' | '.join(cells) + f' | {sum(lost) if lost else "-"} |'


def of_best_peer(rows, job, rate):
    """Our slow-down as a share of the least of the tracers'; None if either was not measured, or is less than equal runs differ by."""
    rows = [r for r in rows if (r['job'], r['rate']) == (job, rate)]
    mine = [r for r in rows if r['tracer'] == 'etw']
    peers = sorted((r for r in rows if r['tracer'] not in ('etw', FLOOR)), key=percent)
    if not mine or not peers or percent(peers[0]) <= max(noise(mine[0]), noise(peers[0])) / 2:
        return None
    return percent(mine[0]) / percent(peers[0])


def goals():
    """(name, at most, function of the rows)."""
    for job in JOBS:
        for rate in RATES:
            yield (f'{job} at {rate:,}/s, times the best tracer', 1, lambda rows, j=job, r=rate: of_best_peer(rows, j, r))
    yield ('production, events of ours lost', 0, lambda rows: lost(rows))
    yield ('production, events of ours short of those made', 0, lambda rows: short(rows))


def lost(rows):
    counts = [r['lost'] for r in rows if r['tracer'] == 'etw']
    return sum(counts) if counts else None


def short(rows):
    """A slow-down without all the events is none."""
    missing = [max(0, r['made'] - r['events']) for r in rows if r['tracer'] == 'etw' and r['events'] is not None]
    return sum(missing) if missing else None
