"""The load generators: wrk for HTTP/1.1, h2load for HTTP/2, and `generator.c` for exact rates, numbers or tokens.

A load with any response other than 2xx is a failure and has no figure: a round of 401s is fast.
"""

import json
import pathlib
import re

from machine import Failed, Unavailable, on_load_core, run

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 64


class Generator:
    """The load generators, all on the load's core."""

    def __init__(self, folder, tokens):
        self.tokens = tokens
        self.program = folder / "generator"
        try:
            run(["gcc", "-O2", "-o", self.program, HERE / "generator.c"])
        except (OSError, Failed) as error:
            raise Unavailable(f"generator.c cannot be compiled: {error}") from None

    def wrk(self, url, seconds, *, token=None, connections=CONNECTIONS, headers=(), body=0):
        """Saturates a server for a while.

        :returns: the number of completed requests."""
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
        for header in [*headers, *([f"Authorization: Bearer {token}"] if token else [])]:
            command += ["-H", header]
        command += ["-s", HERE / "wrk.lua", url, "--", body] if body else [url]
        said = run(on_load_core(command))
        failure = re.search(r"Non-2xx.*|Socket errors.*", said)
        if failure:
            raise Failed(f"wrk of {url}: {failure.group(0)}")
        count = int(re.search(r"(\d+) requests in", said).group(1))
        if count == 0:
            raise Failed(f"wrk of {url}: no responses")
        return count

    def h2load(self, url, seconds, token, connections=4, streams=100):
        """The same over HTTP/2, or over HTTP/1.1 where each connection has one request at a time.

        :returns: the number of completed requests."""
        said = run(on_load_core([
            "h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{seconds}", *(["--h1"] if streams == 1 else []),
            "-H", f"authorization: Bearer {token}", url]))
        counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
        codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
        if not counts or not codes or any(int(n) for n in (*counts.groups()[1:], *codes.groups()[1:])):
            raise Failed(f"h2load of {url}: {counts and counts.group(0)}, {codes and codes.group(0)}")
        if int(counts.group(1)) == 0:
            raise Failed(f"h2load of {url}: no responses")
        return int(counts.group(1))

    def command(self, port, path="/1k", *, first=0, distinct=1, count=0, rate=0, seconds=0,
                connections=CONNECTIONS, headers=(), body=0, tokens=None):
        words = [self.program, "--port", port, "--path", path, "--tokens", tokens or self.tokens.pool,
                 "--first", first, "--distinct", distinct, "--connections", connections]
        words += ["--rate", rate, "--seconds", seconds] if rate else ["--count", count]
        for header in headers:
            words += ["--header", header]
        return on_load_core([str(word) for word in [*words, *(["--body", body] if body else [])]])

    def exact(self, port, path="/1k", **options):
        """A load by `generator.c`; the options are those of ``command``.

        :returns: its report, in which `microseconds` are percentiles of latency."""
        report = json.loads(run(self.command(port, path, **options)))
        check(report, f"load of port {port}")
        return report


def check(report, what):
    if report["errors"] or report["rejections"] or not report["requests"]:
        raise Failed(f"{what}: {report['errors']} errors and {report['rejections']} rejections of {report['requests']} requests")
