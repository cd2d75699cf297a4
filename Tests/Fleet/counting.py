"""Pure parts: when the open loop sends, what is counted of the responses, and how metrics are read."""

import bisect
import collections
import re

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")


def due(rate, began, now, sent):
    """How many requests an open loop has to send at `now` so that none of the schedule is left out."""
    return max(0, int((now - began) * rate) + 1 - sent) if rate > 0 else 0


def moment(rate, began, number):
    """When request `number`, from 0, was to be sent: latencies count from there."""
    return began + number / rate


def percentile(values, share):
    """The nearest-rank percentile; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * share // 100) - 1))] if ordered else 0.0


def outcome(status, fields):
    """The name of a response: `ok`, `503` where it may be repeated, or the status as a failure."""
    if 200 <= status < 300:
        return "ok"
    if status == 503:
        return "503" if "retry-after" in fields else "503 without Retry-After"
    return str(status)


class Window:
    """What a kind of request got in a time."""

    def __init__(self):
        self.outcomes, self.latencies = collections.Counter(), []

    @property
    def failures(self):
        return {name: count for name, count in self.outcomes.items() if name not in ("ok", "503")}

    @property
    def p50(self):
        return percentile(self.latencies, 50)

    @property
    def p99(self):
        return percentile(self.latencies, 99)


class Log:
    """Every response: when it was scheduled and finished, its kind and outcome."""

    KEPT = 1_000_000

    def __init__(self):
        self.rows = collections.deque(maxlen=self.KEPT)
        self.examples = collections.deque(maxlen=200)

    def add(self, scheduled, finished, kind, name, detail=""):
        self.rows.append((finished, scheduled, kind, name))
        if name not in ("ok", "503"):
            self.examples.append((finished, kind, name, detail))

    def windows(self, since, until=float("inf")):
        """By kind, of what finished in that time."""
        found = collections.defaultdict(Window)
        rows = self.rows
        for index in range(len(rows) - 1, -1, -1):
            finished, scheduled, kind, name = rows[index]
            # Rows are in the order in which they were finished.
            if finished < since:
                break
            if finished <= until:
                found[kind].outcomes[name] += 1
                found[kind].latencies.append(finished - scheduled)
        return found

    def times(self, name, since):
        """When responses with an outcome were finished."""
        return [row[0] for row in reversed(self.rows) if row[0] >= since and row[3] == name]


class Copies:
    """Which gateways must have a copy of a session: for `ttl` after a token was read, a request needs no store.

    Only the first request with a token at a gateway surely reads the session. Later a copy may be renewed at any time
    before its end, so nothing is known of the token any more.
    """

    def __init__(self, ttl):
        self.ttl, self.read = ttl, {}

    def is_inside(self, token, instance, finished):
        first = self.read.get((token, instance))
        return first is not None and finished < first + self.ttl

    def served(self, token, instance, sent):
        """The first responses may arrive in another order than that in which the requests were sent."""
        self.read[token, instance] = min(sent, self.read.get((token, instance), sent))

    def served_while_failing(self, token, instance):
        """Whether it was read then, or served from an older copy, is not known: nor what a later response comes from."""
        self.read.setdefault((token, instance), float("-inf"))

    def forget(self, token, instances):
        for instance in instances:
            self.read.pop((token, instance), None)


def read_metrics(text):
    """Samples of the text format, as {(name, labels): value}."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#") and (match := SAMPLE.match(line)):
            try:
                found[match[1], match[2] or ""] = float(match[3])
            except ValueError:
                continue
    return found


def total(metrics, name):
    """The sum over all labels; None if there is no sample."""
    values = [value for (found, _), value in metrics.items() if found == name]
    return sum(values) if values else None


def outside(times, ranges):
    """How many of the times are in none of the ranges."""
    starts = sorted(ranges)
    outside = 0
    for one in times:
        index = bisect.bisect_right(starts, (one, float("inf"))) - 1
        outside += index < 0 or one > starts[index][1]
    return outside
