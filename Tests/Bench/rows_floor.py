"""The part of the cost of a request that is the kernel's, by comparison with a proxy that only copies bytes."""

from bench import ratios
from candidates import floor as bare
from candidates import martlet, nginx
from row import Row, microseconds
from rows_cpu import saturated


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


def line(title, figures, mine, theirs):
    ratio = ratios(figures[mine], figures[theirs])
    return Row(
        title, microseconds(figures[mine]), f"{theirs} {microseconds(figures[theirs])}", ratio,
        figures={name: figures[name] for name in (mine, theirs)})
