"""All rows of the table, by their names on the command line."""

import rows_counts
import rows_cpu
import rows_floor
import rows_latency
import rows_process
import rows_scale
from machine import Failed, Unavailable
from row import missed

ALL = {
    "known": rows_cpu.known,
    "floor": rows_floor.floor,
    "scale": rows_floor.scale,
    "instructions": rows_counts.instructions,
    "session": rows_cpu.session,
    "rotation": rows_cpu.rotation,
    "unseen": rows_cpu.unseen,
    "connections": rows_cpu.connections,
    "answers": rows_cpu.responses,
    "uploads": rows_cpu.uploads,
    "latency": rows_latency.latency,
    "hits": rows_latency.hits,
    "checks": rows_cpu.checks,
    "tls": rows_cpu.tls,
    "http2": rows_cpu.http2,
    "forward2": rows_cpu.forward2,
    "opened": rows_process.opened,
    "idle": rows_process.idle,
    "loops": rows_counts.loops,
    "flat": rows_process.flat,
    "start": rows_process.start,
    "many": rows_scale.many,
    "reload": rows_scale.reload,
    "profile": rows_counts.profile,
}


def tokens_needed(options):
    """How many distinct tokens the requested rows use; each unseen one is used once."""
    needs = {
        "rotation": 10_000, "latency": rows_latency.DISTINCT, "flat": rows_process.ALL_TOKENS,
        "unseen": 1 + options.rounds * rows_cpu.UNSEEN,
        "hits": 1 + options.rounds * rows_latency.unseen_of_round(options),
    }
    return max(needs.get(name, 1) for name in options.rows)


def measure(bench, name):
    """The lines of one row; one with the reason, where it could not be measured."""
    try:
        return ALL[name](bench)
    except (Failed, Unavailable, OSError) as error:
        return [missed(name, error)]
    finally:
        bench.stop_candidates()
