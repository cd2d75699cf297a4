"""State shared by all rows of a run: its folder, origin, tokens, load, and the candidates it has started."""

import fcntl
import http.client
import secrets
import shutil
import statistics
import time

import candidates
import publication
from generators import Generator
from machine import Failed, Processes, Usage, run
from publication import KEPT
from tokens import Tokens


class Bench:
    """One run."""

    def __init__(self, options):
        self.rounds, self.seconds, self.options = options.rounds, options.seconds, options
        self.binary = options.binary
        # Of the start: what is committed during a run is not what is measured.
        self.source = publication.source_of(self.binary, options.is_built)
        self.work = KEPT / "work"
        self.table = []
        self.peers, self.absent, self.by_candidate, self.by_percentile, self.by_connections = {}, {}, {}, {}, {}
        KEPT.mkdir(exist_ok=True)
        self.lock = open(KEPT / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failed("another run is on in this folder, and both would measure each other") from None
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self.processes = Processes(self.work)

    def prepare(self):
        """Prepares what every row needs, and starts the origin."""
        self.tokens = Tokens(KEPT / "tokens")
        self.load = Generator(self.work, self.tokens)
        self.certificate, self.certificate_key = self.work / "tls.crt.pem", self.work / "tls.key.pem"
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-keyout", self.certificate_key, "-out", self.certificate])
        self.admin_token = self.work / "admin.token"
        self.admin_token.write_text(secrets.token_hex(16))
        self.admin_token.chmod(0o600)
        self.origin_process = candidates.start_origin(self)

    def stop_candidates(self):
        """Ends all processes of a row, so that the next one starts alone."""
        for process in list(self.processes.running):
            if process is not self.origin_process:
                self.processes.stop(process)

    def close(self):
        self.processes.stop_all()
        shutil.rmtree(self.work, ignore_errors=True)

    def stop(self, *group):
        for candidate in group:
            self.processes.stop(candidate.process)

    def await_ready(self, process, port, seconds=20):
        """Waits until a gateway reports that it is ready, which means that it has its issuer's keys."""
        end, said = time.monotonic() + seconds, ""
        while time.monotonic() < end and process.poll() is None:
            try:
                status, said = get(port, "/readyz")
                if status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise Failed(f"{process.name} does not become ready: {said} {self.processes.log(process.name)}")

    def cpu(self, candidate, load):
        """The cost of a load for a candidate: microseconds for each request, of which `load` returns the number."""
        before = Usage.of(candidate.pid)
        count = load()
        return (Usage.of(candidate.pid) - before).total / count

    def interleaved(self, group, measure, rounds=None):
        """Measures all candidates in turn, once per round, each round starting with another one.

        :returns: the figures of each by name, in the order of the rounds."""
        figures = {candidate.name: [] for candidate in group}
        for number in range(rounds or self.rounds):
            shift = number % len(group)
            for candidate in group[shift:] + group[:shift]:
                figures[candidate.name].append(measure(candidate))
        return figures


def get(port, path, headers=None, method="GET", body=None):
    """One request on a new connection: the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace").strip()
    finally:
        connection.close()


def ratios(mine, theirs):
    """The ratio of mine to theirs, by round: the median, the best and the worst."""
    each = [a / b for a, b in zip(mine, theirs)]
    return statistics.median(each), min(each), max(each)


def best_of(figures, names):
    """The name with the lowest median."""
    return min(names, key=lambda name: statistics.median(figures[name]))
