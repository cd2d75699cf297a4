"""The rows about the process: its memory, its connections, and its start time."""

import concurrent.futures
import http.client
import os
import re
import resource
import socket
import statistics
import time

from candidates import martlet, nginx, write_martlet
from machine import CANDIDATE_CORE, LOAD_CORE, Failed, Unavailable, Usage, memory
from row import Row
from rows_cpu import SESSION, start_redis

# Each may need a connection to the origin too, for which the gateway keeps as many open files.
IDLE = 8000
BUSY = (64, 200, 400, 1000)
# Seconds.
OPENING = 5
STARTS = 11
ALL_TOKENS = 100_000
MEBIBYTE = 1 << 20


def idle(bench):
    """Connections that each made one request and stay open."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < IDLE * 16 / 7 + 500:
        raise Unavailable(f"{IDLE} connections need a higher limit of open files than `ulimit -n` allows")
    figures = {}
    for start in (martlet, nginx):
        candidate = start(bench)
        try:
            figures[candidate.name] = [idle_memory(bench, candidate)]
        finally:
            bench.stop(candidate)
    mine, theirs = figures["Martlet"][0], figures["nginx"][0]
    return [Row(
        f"{IDLE:,} idle connections: memory of each (PSS)", f"{mine / 1024:.2f} KiB", f"nginx {theirs / 1024:.2f} KiB",
        (mine / theirs,) * 3, "≤ 2 KiB", mine <= 2048, figures=figures)]


def idle_memory(bench, candidate):
    """Bytes that each of many idle connections holds."""
    bench.load.exact(candidate.port, count=2000)
    pid = candidate.serving_pid()
    before = memory(pid)
    request = (
        f"GET /0k HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer {bench.tokens.one()}\r\n\r\n").encode()
    clients = []
    try:
        for number in range(IDLE):
            client = socket.socket()
            clients.append(client)
            client.bind((f"127.0.0.{2 + number % 8}", 0))
            client.connect(("127.0.0.1", candidate.port))
            client.sendall(request)
            response = b""
            while b"\r\n\r\n" not in response:
                some = client.recv(4096)
                if not some:
                    raise Failed(f"{candidate.name} closed connection {number}")
                response += some
            if not response.startswith(b"HTTP/1.1 200"):
                raise Failed(f"{candidate.name} responded {response[:40]!r}")
            client.setblocking(False)
        time.sleep(2)
        after = memory(pid)
        for client in clients:
            try:
                client.recv(1)
                raise Failed(f"{candidate.name} did not keep all connections")
            except BlockingIOError:
                pass
        return (after - before) / IDLE
    finally:
        for client in clients:
            client.close()


def opened(bench):
    """Upstream connections that are opened while the same number of clients is busy all the time, after the first second."""
    rows = []
    builds = {"Martlet": None, **({"the other build": bench.options.beside.resolve()} if bench.options.beside else {})}
    for clients in BUSY:
        figures, served = {}, {}
        for name, binary in builds.items():
            gateway = martlet(bench, name, binary=binary)
            try:
                figures[name], served[name] = opened_by(bench, gateway, clients)
            finally:
                bench.stop(gateway)
        mine, other = figures["Martlet"], figures.get("the other build")
        rows.append(Row(
            f"{clients:,} busy clients: upstream connections opened in {OPENING} s", f"{mine:,}",
            "–" if other is None else f"the other build {other:,}", bar="0", met=mine == 0,
            note="for " + ", ".join(f"{count:,} requests of {name}" for name, count in served.items()),
            figures={name: [count] for name, count in figures.items()}))
    return rows


def opened_by(bench, gateway, clients):
    """How many connections the origin accepts, and how many requests it gets."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        load = pool.submit(
            bench.load.wrk, gateway.url(), OPENING + 2, token=bench.tokens.one(), connections=clients)
        # The question's own connection is kept, so it is not among those that are opened.
        asking = http.client.HTTPConnection("127.0.0.1", bench.origin, timeout=10)
        try:
            time.sleep(1)
            accepted, requests = origin_counts(asking)
            time.sleep(OPENING)
            accepted, requests = (after - before for after, before in zip(origin_counts(asking), (accepted, requests)))
        finally:
            asking.close()
            load.result()
    return accepted, requests - 1


def origin_counts(asking):
    """The origin's counts of connections and of requests since its start."""
    asking.request("GET", "/connections")
    said = asking.getresponse().read().decode()
    numbers = re.search(r"^ *(\d+) (\d+) (\d+) *$", said, re.MULTILINE)
    if not numbers:
        raise Failed(f"the origin does not count: {said[:100]!r}")
    return int(numbers.group(1)), int(numbers.group(3))


def flat(bench):
    """Resident memory during a long load with 100,000 tokens in turn."""
    wanted, steps = bench.options.flat_requests, 20
    gateway = martlet(bench)
    samples, position = [], 0
    try:
        for step in range(steps):
            count = wanted // steps
            bench.load.exact(gateway.port, first=position % ALL_TOKENS, distinct=ALL_TOKENS, count=count)
            position += count
            samples.append((position, memory(gateway.pid, "Rss")))
            bench.processes.empty_log(gateway.process)
    finally:
        bench.stop(gateway)
    # Flat from where all tokens were sent once, or a fifth of the way.
    base = next((size for done, size in samples if done >= max(ALL_TOKENS, wanted / 5)), samples[-1][1])
    last = samples[-1][1]
    grown = last / base
    along = ", ".join(f"{done:,}: {size / MEBIBYTE:.1f}" for done, size in samples[::3] + samples[-1:])
    return [Row(
        f"memory over {position:,} requests with {ALL_TOKENS:,} tokens (RSS)", f"{last / MEBIBYTE:.1f} MiB at the end",
        f"{base / MEBIBYTE:.1f} MiB early", (grown,) * 3, "flat: ≤ 1.02 × early", grown <= 1.02,
        f"requests and MiB along the way: {along}", {"rss": [size for _, size in samples]})]


def start(bench):
    """From the fork to the first 2xx response, with the issuer's keys in Redis since an earlier start."""
    redis, port = start_redis(bench)
    settings = {**SESSION, "more": SESSION["more"].format(redis=port)}
    folder, ports = write_martlet(bench, "Martlet start", **settings)
    command = [bench.binary, "run", "--config", folder / "config.yaml"]
    request = (
        f"GET /1k HTTP/1.1\r\nHost: bench.example\r\nConnection: close\r\nAuthorization: Bearer {bench.tokens.one()}\r\n"
        "\r\n").encode()
    times, used, cores = [], [], os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD_CORE})
    try:
        for number in range(STARTS + 1):
            began = time.perf_counter()
            process = bench.processes.start(folder.name, command, CANDIDATE_CORE, folder)
            await_answer(process, ports["http"], request)
            if number > 0:  # the first one fetched the keys
                times.append((time.perf_counter() - began) * 1000)
                used.append(Usage.of(process.pid).total / 1000)
            bench.await_ready(process, ports["admin"])
            bench.processes.stop(process)
    finally:
        os.sched_setaffinity(0, cores)
        bench.processes.stop(redis)
    median = statistics.median(times)
    return [Row(
        f"start to the first 200 with a warm Redis, {STARTS} starts", f"{median:.1f} ms",
        bar="≤ 50 ms", met=median <= 50, note=f"best {min(times):.1f} ms, worst {max(times):.1f} ms, CPU {statistics.median(used):.1f} ms",
        figures={"milliseconds": times, "cpu milliseconds": used})]


def await_answer(process, port, request, seconds=20):
    """Sends a request every 0.2 ms until there is a 200."""
    end, said = time.monotonic() + seconds, b"nothing"
    while time.monotonic() < end and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
                client.sendall(request)
                said = client.recv(64)
                if said.startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.0002)
    raise Failed(f"{process.name} did not start to serve; its output was {said!r}")
