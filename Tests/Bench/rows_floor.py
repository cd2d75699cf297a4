"""The part of the cost of a request that is the kernel's, by comparison with a proxy that only copies bytes."""

import statistics

from bench import ratios
from candidates import floor as bare
from candidates import martlet, nginx
from row import Row, microseconds
from rows_cpu import saturated


CONNECTIONS = (1, 16, 64, 256, 1000, 4000)


def floor(bench):
    """The same token over TCP and over a Unix socket to the upstream, beside the bare proxy and nginx."""
    socket = bench.origin_socket
    group = [
        martlet(bench), bare(bench), nginx(bench),
        martlet(bench, "Martlet, unix", endpoint=f"unix:{socket}"), bare(bench, "floor, unix", socket),
        nginx(bench, "nginx, unix", upstream=f"unix:{socket}"),
    ]
    try:
        figures = saturated(bench, group, lambda candidate: candidate.url(), token=bench.tokens.one())
    finally:
        bench.stop(*group)
    return [
        line("one known token, beside a proxy that copies bytes", figures, "Martlet", "floor"),
        line("· nginx beside it", figures, "nginx", "floor"),
        line("upstream on a Unix socket, beside that proxy", figures, "Martlet, unix", "floor, unix"),
        line("· beside nginx with one", figures, "Martlet, unix", "nginx, unix"),
        line("· beside Martlet over TCP", figures, "Martlet, unix", "Martlet"),
    ]


def scale(bench):
    """The same beside the bare proxy, with more and more connections that are all busy; the bare proxy twice, as control."""
    rows = []
    for connections in CONNECTIONS:
        group = [martlet(bench), bare(bench), bare(bench, "floor again"), nginx(bench)]
        if bench.options.beside:
            group.append(martlet(bench, "the other build", binary=bench.options.beside.resolve()))
        try:
            figures = saturated(
                bench, group, lambda candidate: candidate.url(), token=bench.tokens.one(), connections=connections)
        finally:
            bench.stop(*group)
        bench.by_connections[connections] = {name: statistics.median(values) for name, values in figures.items()}
        title = f"one known token, {connections:,} connection{'s' if connections > 1 else ''}"
        rows.append(line(f"{title}, beside a proxy that copies bytes", figures, "Martlet", "floor"))
        rows += [line(f"· {name}", figures, name, "floor") for name in figures if name not in ("Martlet", "floor")]
        rows.append(line("· Martlet beside nginx", figures, "Martlet", "nginx"))
    return rows


def line(title, figures, mine, theirs):
    ratio = ratios(figures[mine], figures[theirs])
    return Row(
        title, microseconds(figures[mine]), f"{theirs} {microseconds(figures[theirs])}", ratio,
        figures={name: figures[name] for name in (mine, theirs)})
