"""The rows about many sessions, and about many routes."""

import concurrent.futures
import os
import socket
import statistics
import time

import growth
from bench import get
from candidates import ROUTES as ROUTES_OF_ALL
from candidates import martlet, write_martlet
from machine import CANDIDATE_CORE, LOAD_CORE, Failed, memory
from row import Row
from rows_cpu import SESSION, start_redis
from rows_process import await_answer

# Sessions whose tokens are presented; the others are copies of them under other names.
OPENED = 2000
# Copies of each script: Redis serves nobody else for some milliseconds.
BATCH = 5000
MISSES = 1000  # a second
STARTS = 11
ROUTES, UPSTREAMS = 10_000, 1000
RELOADS = 9
WAITING = 1000  # requests a second
MEBIBYTE = 1 << 20
# A session and its subject under new names: what a login writes, with its expiry.
COPY = """
local number, pairs_ = tonumber(ARGV[1]), (#ARGV - 2) / 2
for n = number, number + tonumber(ARGV[2]) - 1 do
    local which, tag = n % pairs_, string.format('martlet:{%016x}:', n)
    redis.call('RESTORE', tag .. string.format('s%032x', n), 43200000, ARGV[3 + 2 * which])
    redis.call('RESTORE', tag .. 'u', 43200000, ARGV[4 + 2 * which])
end
"""


class Redis:
    """A connection to Redis, with as much of its protocol as copying needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply()

    def reply(self):
        line = self.stream.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise Failed(f"Redis: {rest.decode(errors='replace')}")
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2]
        return rest

    def memory(self):
        return int(next(line for line in self.call("INFO", "memory").split(b"\r\n") if line.startswith(b"used_memory:"))[12:])

    def close(self):
        self.stream.close()
        self.socket.close()


def copy(redis, count):
    """Copies sessions until there are as many as that.

    :returns: the bytes that Redis holds for each."""
    pairs = []
    for key in redis.call("SCAN", "0", "MATCH", "martlet:{*}:s*", "COUNT", "1000")[1][:50]:
        subject = key[:key.index(b"}") + 1] + b":u"
        pairs += [redis.call("DUMP", key), redis.call("DUMP", subject)]
    before = redis.memory()
    for first in range(0, count, BATCH):
        redis.call("EVAL", COPY, 0, first, min(BATCH, count - first), *pairs)
    return (redis.memory() - before) / count


def many(bench):
    """Misses, a start and the gateway's memory with a few sessions in Redis, and with as many as the option says."""
    settings, tokens, port = growth.sessions(bench, OPENED, "0s", 1, 'accounts: { url: "sqlite:accounts.db" }')
    redis, figures, rows = Redis(port), {}, []
    try:
        few = redis.call("DBSIZE").decode()
        figures["few"] = measured(bench, settings, tokens)
        each = copy(redis, bench.options.sessions)
        figures["many"] = measured(bench, settings, tokens)
    finally:
        redis.close()
    (few50, few99, few_start, few_memory), (many50, many99, many_start, many_memory) = figures["few"], figures["many"]
    what = f"{bench.options.sessions:,} sessions in one Redis"

    def row(title, mine, theirs, unit, bar=None):
        ratio = mine / theirs
        rows.append(Row(
            f"{what}: {title}", f"{mine:.2f} {unit}", f"with {OPENED:,} {theirs:.2f} {unit}", (ratio,) * 3,
            "–" if bar is None else f"≤ {bar} {unit}", None if bar is None else mine <= bar, figures={"martlet": [mine]}))

    rows.append(Row(f"{what}: memory of Redis for each", f"{each:,.0f} bytes", note=f"{few} keys before", figures={"bytes": [each]}))
    row("a miss, p50", many50, few50, "ms")
    row("a miss, p99", many99, few99, "ms", 2)
    row("start to the first 200", many_start, few_start, "ms", 300)
    row("memory of the gateway (PSS)", many_memory, few_memory, "MiB")
    return rows


def measured(bench, settings, tokens):
    """Medians: p50 and p99 of a miss in milliseconds, milliseconds of a start, MiB of the gateway."""
    gateway = martlet(bench, **settings)
    try:
        bench.load.exact(gateway.port, tokens=tokens, distinct=OPENED, count=OPENED)
        reports = [
            bench.load.exact(
                gateway.port, tokens=tokens, distinct=OPENED, rate=MISSES, seconds=max(bench.options.seconds, 5))["microseconds"]
            for _ in range(bench.rounds)]
        held = memory(gateway.serving_pid()) / MEBIBYTE
    finally:
        bench.stop(gateway)
    p50, p99 = (statistics.median(report[at] for report in reports) / 1000 for at in ("50", "99"))
    return p50, p99, statistics.median(starts(bench, settings, tokens)), held


def starts(bench, settings, tokens):
    """Milliseconds from the fork to the first 200 of a session."""
    folder, ports = write_martlet(bench, "Martlet many", **settings)
    with open(tokens) as file:
        token = file.readline().strip()
    request = f"GET /1k HTTP/1.1\r\nHost: bench.example\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    times, cores = [], os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD_CORE})
    try:
        for _ in range(STARTS):
            began = time.perf_counter()
            process = bench.processes.start(
                folder.name, [bench.binary, "run", "--config", folder / "config.yaml"], CANDIDATE_CORE, folder)
            await_answer(process, ports["http"], request)
            times.append((time.perf_counter() - began) * 1000)
            bench.await_ready(process, ports["admin"])
            bench.processes.stop(process)
    finally:
        os.sched_setaffinity(0, cores)
    return times


def reload(bench):
    """How long a reload of many routes takes, and how long a request waits at most meanwhile."""
    upstreams = "".join(
        f'  u{number}: {{ endpoints: ["http://127.0.0.1:{bench.origin}"] }}\n' for number in range(UPSTREAMS))
    routes = "".join(
        f'  - {{ name: r{number}, match: {{ path: /r{number}/** }}, auth: {{ providers: [apple] }}, upstream: u{number % UPSTREAMS} }}\n'
        for number in range(ROUTES))
    gateway = martlet(bench, upstreams=upstreams, routes=routes + ROUTES_OF_ALL)
    try:
        bench.load.exact(gateway.port, count=2000)
        quiet = [waits(bench, gateway) for _ in range(RELOADS)]
        reloads = [reloaded(bench, gateway) for _ in range(RELOADS)]
        busy, times = [], []
        for _ in range(RELOADS):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                load = pool.submit(waits, bench, gateway)
                time.sleep(0.7)
                times.append(reloaded(bench, gateway))
                busy.append(load.result())
    finally:
        bench.stop(gateway)
    taken, wait = statistics.median(reloads), statistics.median(busy)
    title = f"{ROUTES:,} routes, {UPSTREAMS:,} upstreams"
    return [
        Row(
            f"{title}: a reload", f"{taken:.0f} ms", f"under load {statistics.median(times):.0f} ms", bar="≤ 150 ms",
            met=taken <= 150, figures={"milliseconds": reloads, "under load": times}),
        Row(
            f"{title}: the longest wait of a request in 2 s with a reload, {WAITING:,} per second", f"{wait:.2f} ms",
            f"without {statistics.median(quiet):.2f} ms", bar="≤ 5 ms", met=wait <= 5,
            figures={"milliseconds": busy, "without": quiet})]


def reloaded(bench, gateway):
    """Milliseconds until the configuration is in force, as the gateway reports."""
    headers, began = {"Authorization": "Bearer " + bench.admin_token.read_text()}, time.perf_counter()
    status, body = get(gateway.ports["admin"], "/reload", headers, "POST")
    if status != 200:
        raise Failed(f"the reload got {status}: {body[:100]}")
    return (time.perf_counter() - began) * 1000


def waits(bench, gateway):
    """The longest wait of a request, in milliseconds."""
    return bench.load.exact(gateway.port, rate=WAITING, seconds=2)["microseconds"]["100"] / 1000
