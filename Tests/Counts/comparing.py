"""Compares counts with the committed thresholds: not more, and not so much less that a threshold protects nothing."""

import dataclasses

GROWTH, SHRINKAGE = 0.03, 0.05
"""By how much instructions may be above a threshold, and below it."""

SLACK, SLACK_OF_MANY = 0.02, 0.01
"""By how much events per request may differ, absolutely or relatively, whichever is more.

Work done once in fifty requests belongs to a time interval or a batch, and a slow machine has more of these.
"""

SLACK_OF_BATCHES = 0.1
"""By how much retains and releases may be above, and everything below: writing a batch of log lines is a dozen of them, a
slow machine has a batch more in a hundred requests, and a call for every request is 1."""

METRICS = {
    "instructions": "user instructions",
    "allocations": "heap allocations",
    "references": "retains and releases",
    "accesses": "exclusivity checks",
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One figure that differs from the committed one."""

    scenario: str
    text: str


def compare(scenario, measured, thresholds):
    """Findings about one scenario; `measured` and `thresholds` have a number for each of `METRICS`."""
    if thresholds is None:
        yield Finding(scenario, "has no thresholds")
        return
    for metric, what in METRICS.items():
        threshold = thresholds.get(metric)
        if threshold is None:
            yield Finding(scenario, f"has no threshold for {what}")
            continue
        value = measured[metric]
        text = f"{number(metric, value)} {what} per request; the threshold is {number(metric, threshold)}"
        if value > upper(metric, threshold):
            yield Finding(scenario, f"{text}: {difference(metric, value, threshold)} more: fix that, or raise it")
        elif value < lower(metric, threshold):
            yield Finding(scenario, f"{text}: {difference(metric, value, threshold)} less: lower it, to keep the improvement")


def upper(metric, threshold):
    return threshold * (1 + GROWTH) if metric == "instructions" else threshold + slack(metric, threshold)


def lower(metric, threshold):
    return threshold * (1 - SHRINKAGE) if metric == "instructions" else threshold - max(SLACK_OF_BATCHES, slack(metric, threshold))


def slack(metric, threshold):
    return max(SLACK_OF_BATCHES if metric == "references" else SLACK, threshold * SLACK_OF_MANY)


def difference(metric, value, threshold):
    change = abs(value - threshold)
    return f"{change / threshold:.1%}" if metric == "instructions" and threshold else f"{change:.2f}"


def number(metric, value):
    return f"{value:,.0f}" if metric == "instructions" else f"{value:,.2f}"


def rounded(measured):
    """A measurement, rounded for committing."""
    return {
        metric: round(measured[metric]) if metric == "instructions" else round(measured[metric], 2) for metric in METRICS
    }


def compare_call_sites(found, permitted):
    """Findings about functions on the path of cached tokens.

    - `found`: for each of them, the names of unwanted functions that it may call, once per call site.
    - `permitted`: for some of them, how many such call sites there may be, and why.
    """
    for name in sorted(found):
        calls = found[name]
        allowed, reason = permitted.get(name, (0, ""))
        listed = ", ".join(f"{call} ×{calls.count(call)}" for call in sorted(set(calls)))
        if len(calls) > allowed:
            yield Finding(name, f"has {len(calls)} unwanted calls ({listed}); {allowed} are permitted")
        elif len(calls) < allowed:
            yield Finding(name, f"has {len(calls)} unwanted calls ({listed or 'none'}); {allowed} are permitted: lower that")
        elif calls and not reason:
            yield Finding(name, f"may make {allowed} unwanted calls, but no reason is given")
    for name in sorted(set(permitted) - set(found)):
        yield Finding(name, "is excused, but is not on the path of cached tokens: remove it from the list")
