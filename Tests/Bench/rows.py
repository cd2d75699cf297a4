"""All rows of the table, by the names under which they can be asked for."""

import rows_cpu
from machine import Failed, Unavailable
from row import missed

ALL = {
    "known": rows_cpu.known,
    "session": rows_cpu.session,
    "rotation": rows_cpu.rotation,
    "unseen": rows_cpu.unseen,
    "connections": rows_cpu.connections,
    "answers": rows_cpu.answers,
    "uploads": rows_cpu.uploads,
    "tls": rows_cpu.tls,
    "http2": rows_cpu.http2,
}


def measure(bench, name):
    """The lines of one name; one that says why, where it could not be measured."""
    try:
        return ALL[name](bench)
    except (Failed, Unavailable, OSError) as error:
        return [missed(name, error)]
    finally:
        bench.stop_candidates()
