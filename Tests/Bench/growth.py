"""How the cost of a request grows with routes, claims, header fields, bodies and connections.

User instructions come from callgrind and hardly vary; CPU, which includes the kernel's part, is the median of a few rounds.
A large copy counts as one instruction for each byte, because callgrind counts `rep movsb` in this way: use the CPU of bodies.
"""

import statistics

from candidates import martlet
from report import table
from rows_counts import Counted

ROUNDS = 5
CLAIMS = ("sub", "email", "iss", "aud", "email_verified", "is_private_email", "auth_time", "real_user_status")


def routes(count):
    """The given number of routes, of which the last one is requested."""
    others = "".join(
        f'  - {{ name: r{number}, match: {{ path: /r{number}/** }}, auth: none, upstream: origin }}\n'
        for number in range(count - 1))
    return others + '  - { name: all, match: { path: "/**" }, auth: { providers: [apple] }, upstream: origin }'


def claims(count):
    """One route that sets the given number of headers from claims."""
    headers = ", ".join(
        f'X-Claim-{number}: {{ claim: {CLAIMS[number % len(CLAIMS)]}, default: "" }}' for number in range(count))
    return (
        '  - { name: all, match: { path: "/**" }, auth: { providers: [apple] }, upstream: origin, '
        f'headers: {{ set: {{ {headers} }} }} }}')


def fields(count):
    return [f"X-Field-{number}: some text of usual length" for number in range(count)]


def scenarios():
    """The parameter that grows, its value, the configuration, the load."""
    for count in (1, 100, 10_000):
        yield "routes", f"{count:,}", {"routes": routes(count)}, {}
    for count in (1, 4, 16):
        yield "claims injected", count, {"routes": claims(count)}, {}
    for count in (4, 16, 64):
        yield "header fields of the request", count, {}, {"headers": fields(count)}
    for path, name in (("/0k", "0"), ("/1k", "1 KiB"), ("/64k", "64 KiB"), ("/1m", "1 MiB")):
        yield "response", name, {}, {"path": path}
    for size, name in ((1024, "1 KiB"), (65536, "64 KiB"), (1 << 20, "1 MiB")):
        yield "upload", name, {}, {"path": "/sink", "body": size}
    for count in (1, 64, 1000):
        yield "connections", f"{count:,}", {}, {"connections": count}


def large(load):
    return load.get("path") == "/1m" or load.get("body", 0) > 100_000


def counted(bench, settings, load):
    few, many = (100, 600) if large(load) else (2000, 10000)
    with Counted(bench, **settings) as gateway:
        return gateway.per_request(**{"few": few, "many": many, **load})


def timed(bench, settings, load):
    """Microseconds of CPU for each request."""
    count = 1500 if large(load) else 15000
    gateway = martlet(bench, **settings)
    try:
        def once():
            return bench.load.exact(gateway.port, **{"count": count, **load})["requests"]
        once()
        return statistics.median(bench.cpu(gateway, once) for _ in range(ROUNDS))
    finally:
        bench.stop(gateway)


def measure(bench, say):
    """The table of all scenarios, as Markdown."""
    lines, first = [], {}
    for what, value, settings, load in scenarios():
        say(f"measuring {what}: {value}")
        instructions, cpu = counted(bench, settings, load), timed(bench, settings, load)
        base = first.setdefault(what, (instructions, cpu))
        lines.append([
            what, value, f"{instructions:,.0f}", f"{instructions - base[0]:+,.0f}" if base[0] != instructions else "",
            f"{cpu:.1f} µs", f"{cpu - base[1]:+.1f} µs" if base[1] != cpu else ""])
    head = ["What grows", "To", "User instructions per request", "More than the first", "CPU per request", "More"]
    return table(head, lines)
