"""The rows that count the gateway's work: instructions by callgrind, and its time by perf.

Instructions of the process itself have almost no noise. Pairs of loads of different length are counted on one process, and
the difference between the two is divided by the difference in requests, which excludes startup and shutdown.
"""

import re
import shutil
import statistics
import subprocess

from candidates import martlet
from machine import Failed, Unavailable, Usage, on_load_core, run
from row import Row

FEW, MANY = 2000, 12000
# Work that is due at some time, such as storing when sessions were last used, is in one load of the pairs and not in others.
PAIRS = 3
TIMEOUT = 180


class Counted:
    """A gateway under callgrind."""

    def __init__(self, bench, **settings):
        if not shutil.which("valgrind"):
            raise Unavailable("valgrind is not installed")
        self.bench, self.out = bench, bench.work / "callgrind"
        self.prefix = f"--vgdb-prefix={bench.work}/vgdb"
        for part in bench.work.glob("callgrind*"):
            part.unlink()
        wrapper = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.out}", "--instr-atstart=no", "--fair-sched=yes",
            self.prefix]
        # valgrind cannot read what lld writes for debuggers.
        binary = bench.work / "martlet-counted.stripped"
        if not binary.exists():
            run(["strip", "--strip-debug", "-o", binary, bench.binary])
        self.candidate = martlet(bench, "Martlet counted", binary=binary, wrapper=wrapper, timeout=TIMEOUT, **settings)
        self.parts = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bench.stop(self.candidate)

    def control(self, *words):
        run(["callgrind_control", self.prefix, *words, str(self.candidate.pid)], timeout=60)

    def count(self, load, requests):
        """Instructions during a load of the given number of requests."""
        load(requests)
        self.control("-d")
        self.parts += 1
        text = (self.out.parent / f"{self.out.name}.{self.parts}").read_text()
        totals = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if not totals:
            raise Failed("callgrind counted nothing")
        return int(totals.group(1))

    def per_request(self, path="/1k", few=FEW, many=MANY, **options):
        """User instructions for each request of a load."""
        def load(requests):
            self.bench.load.exact(self.candidate.port, path, count=requests, **options)
        load(few)
        self.control("-i", "on")
        each = []
        for _ in range(PAIRS):
            less, more = self.count(load, few), self.count(load, many)
            each.append((more - less) / (many - few))
        self.control("-i", "off")
        return statistics.median(each)


def instructions(bench):
    """User instructions of a request with a cached token.

    Those of `Tests/Counts` are published, which are of other heads: two figures of one name would differ without a reason."""
    with Counted(bench) as counted:
        each = counted.per_request()
    return [Row(
        "one known token: user instructions per request", f"{each:,.0f}", bar="≤ 6,000", met=each <= 6000,
        is_public=False, figures={"instructions": [each]})]


def loops(bench):
    """The same with one loop and with two: shared state would show as additional instructions."""
    figures = {}
    for workers in (1, 2):
        with Counted(bench, workers=workers) as counted:
            figures[workers] = counted.per_request(few=FEW * workers, many=MANY * workers, connections=64 * workers)
    ratio = figures[2] / figures[1]
    return [Row(
        "two loops beside one: user instructions per request", f"{figures[2]:,.0f}", f"one loop {figures[1]:,.0f}",
        (ratio,) * 3, "within 2 %", abs(ratio - 1) <= 0.02, figures={str(key): [value] for key, value in figures.items()})]


def profile(bench):
    """Where the time of the first row goes: kernel, the gateway, the C libraries."""
    gateway = martlet(bench)
    try:
        bench.load.wrk(gateway.url(), 1, token=bench.tokens.one())
        try:
            shares = sampled(bench, gateway)
            how = "perf, cpu-clock"
        except (Unavailable, Failed) as error:
            before = Usage.of(gateway.pid)
            bench.load.wrk(gateway.url(), max(bench.seconds, 3), token=bench.tokens.one())
            used = Usage.of(gateway.pid) - before
            shares = {"kernel": used.system / (used.user + used.system), "user": used.user / (used.user + used.system)}
            how = f"process times, because {error}"
    finally:
        bench.stop(gateway)
    text = ", ".join(f"{name} {share * 100:.0f} %" for name, share in shares.items())
    return [Row("one known token: where the time goes", text, note=how, figures={"shares": shares})]


def sampled(bench, gateway):
    """Shares of the samples by object."""
    if not shutil.which("perf"):
        raise Unavailable("perf is not installed")
    seconds, data = max(bench.seconds, 3), bench.work / "perf.data"
    perf = subprocess.Popen(
        on_load_core(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-F", "1999", "-o", str(data), "-p", str(gateway.pid),
                      "--", "sleep", str(seconds)]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        bench.load.wrk(gateway.url(), seconds + 1, token=bench.tokens.one())
        _, said = perf.communicate(timeout=30)
    finally:
        if perf.poll() is None:
            perf.kill()
            perf.wait()
    if perf.returncode != 0:
        raise Failed(f"perf says: {said.strip()[-150:]}")
    report = run(["perf", "report", "-i", data, "--stdio", "-q", "--sort", "dso"], stdin=subprocess.DEVNULL)
    shares = {"kernel": 0.0, "Martlet": 0.0, "libc and libcrypto": 0.0, "others": 0.0}
    for share, name in re.findall(r"^\s*([\d.]+)%\s+(\S+)", report, re.MULTILINE):
        if name.startswith(("[kernel", "[k]", "[guest.kernel")):
            kind = "kernel"
        elif name == bench.binary.name:
            kind = "Martlet"
        elif name.startswith(("libc.", "libc-", "libcrypto", "libssl", "libm.", "ld-linux", "[vdso]")):
            kind = "libc and libcrypto"
        else:
            kind = "others"
        shares[kind] += float(share) / 100
    if not shares["kernel"]:
        raise Failed("perf may not look into the kernel here")
    return shares
