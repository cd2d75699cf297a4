"""The rows about latency, at rates far below saturation."""

import json
import statistics
import subprocess

from bench import best_of, ratios
from candidates import haproxy, martlet, nginx
from generators import check
from machine import Failed
from row import Row, milliseconds

RATE = 2000
DISTINCT = 10000


def compare(title, figures, peers):
    peer = best_of(figures, peers)
    ratio = ratios(figures["Martlet"], figures[peer])
    return Row(
        title, milliseconds(figures["Martlet"]), f"{peer} {milliseconds(figures[peer])}", ratio,
        f"≤ 1.00 × {' or '.join(peers)}", ratio[0] <= 1, figures=figures)


def seconds_of(options):
    return max(options.seconds, 2)


def unseen_of_round(options):
    return RATE * (seconds_of(options) + 1)


def latency(bench):
    """A fixed rate with 10,000 tokens in turn, all of them cached."""
    group = [martlet(bench), nginx(bench), haproxy(bench)]
    seconds = seconds_of(bench.options)
    try:
        for candidate in group:
            bench.load.exact(candidate.port, distinct=DISTINCT, count=DISTINCT)
        reports = bench.interleaved(group, lambda candidate: bench.load.exact(
            candidate.port, distinct=DISTINCT, rate=RATE, seconds=seconds)["microseconds"])
    finally:
        bench.stop(*group)
    bench.by_percentile = {
        name: {at: statistics.median(report[at] for report in each) for at in each[0]} for name, each in reports.items()}
    return [
        compare(
            f"latency at {RATE:,} requests per second, {DISTINCT:,} tokens: p{at}",
            {name: [report[at] for report in each] for name, each in reports.items()}, ["nginx", "HAProxy"])
        for at in ("50", "99")
    ]


def hits(bench):
    """The effect of unseen tokens on cached ones: the 99th percentile of hits beside them, and alone."""
    gateway = martlet(bench)
    seconds, first = seconds_of(bench.options), 1
    figures = {"alone": [], "beside": []}
    try:
        bench.load.exact(gateway.port, count=20000)
        for number in range(bench.rounds):
            for name in sorted(figures, reverse=number % 2 == 1):
                other = None
                if name == "beside":
                    amount = unseen_of_round(bench.options)
                    other = subprocess.Popen(
                        bench.load.command(gateway.port, first=first, distinct=amount, rate=RATE, seconds=seconds + 1),
                        stdout=subprocess.PIPE, text=True)
                    first += amount
                try:
                    report = bench.load.exact(gateway.port, rate=RATE, seconds=seconds)
                    figures[name].append(report["microseconds"]["99"])
                    if other:
                        check_other(other)
                finally:
                    if other and other.poll() is None:
                        other.kill()
                        other.wait()
    finally:
        bench.stop(gateway)
    ratio = ratios(figures["beside"], figures["alone"])
    return [Row(
        f"p99 of known tokens, {RATE:,} per second, while {RATE:,} unseen ones per second arrive",
        milliseconds(figures["beside"]), f"alone {milliseconds(figures['alone'])}", ratio, "≤ 2.00 × alone", ratio[0] <= 2,
        figures=figures)]


def check_other(process):
    said, _ = process.communicate(timeout=30)
    if process.returncode != 0:
        raise Failed(f"the unseen tokens' load exited with {process.returncode}")
    check(json.loads(said), "the unseen tokens' load")
