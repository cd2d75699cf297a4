#!/usr/bin/env python3
"""Tests of the evaluation of floods, and of the flooder's output. No gateway is needed."""

import base64
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import floods
import probes
import report

HERE = pathlib.Path(__file__).resolve().parent


def results(latencies, failures=0):
    made = probes.Results()
    made.latencies = [one / 1000 for one in latencies]
    if failures:
        made.failures["503"] = failures
    return made


def row(before, half, full, mode="same", own=()):
    flood = floods.Flood("flood", b"", own=own)
    phases = {"before": {"kind": before}, "half": {"kind": half}, "full": {"kind": full}}
    return report.Row(flood, mode, "memory", phases, {}, {})


BOUNDS = HERE.parents[1] / "Sources/MartletCore/Bounds"
# Bounds that one client cannot use up for others: each has its own, or other bounds are before them.
UNDIVIDED = (".own", ".whole")


def bounds():
    """The bounds of the gateway: their names, and how each is divided."""
    names = dict(re.findall(r"^    case (\w+)(?: = \"([\w.]+)\")?$", (BOUNDS / "SharedBound.swift").read_text(), re.MULTILINE))
    cases = (BOUNDS / "SharedBound+Terms.swift").read_text()
    return {
        names[case] or case: terms
        for case, terms in re.findall(r"^        case \.(\w+):\s+BoundTerms\((.*)\)$", cases, re.MULTILINE)}


class Bounds(unittest.TestCase):
    def test_each_bound_that_clients_divide_has_a_row(self):
        found = bounds()
        self.assertGreater(len(found), 60)
        with_row = {name for flood in floods.floods() for name in flood.bounds}
        self.assertEqual(with_row - set(found), set(), "rows of bounds that there are not")
        self.assertEqual(set(floods.WITHOUT_ROW) - set(found), set())
        self.assertEqual(with_row & set(floods.WITHOUT_ROW), set())
        divided = {name for name, terms in found.items() if not any(share in terms for share in UNDIVIDED)}
        self.assertEqual(divided - with_row - set(floods.WITHOUT_ROW), set(), "divided bounds without a row")

    def test_each_bound_is_in_use(self):
        sources = "".join(
            file.read_text() for folder in ("Sources", "Plugins") for file in (HERE.parents[1] / folder).rglob("*.swift")
            if file.parent.name != "Bounds")
        listed = (BOUNDS / "SharedBound.swift").read_text().split("\n}\n", 1)[0]
        cases = re.findall(r"^    case (\w+)", listed, re.MULTILINE)
        unused = {case for case in cases if not re.search(rf"[(\s]\.{case}\b|SharedBound\.{case}\b", sources)}
        self.assertEqual(unused, set(), "bounds of nothing")


class Evaluation(unittest.TestCase):
    quiet, slow, lost = results([1] * 99 + [9]), results([1] * 90 + [30] * 10), results([1] * 8, failures=2)

    def test_what_a_repetition_does_not_show_again_was_the_machine(self):
        felt = row(self.quiet, self.slow, self.quiet)
        felt.repetition = row(self.quiet, self.quiet, self.quiet)
        self.assertEqual(felt.findings(5), {})
        felt.repetition = row(self.quiet, self.slow, self.quiet)
        self.assertEqual(felt.findings(5), {"kind": "p99"})

    def test_who_loses_a_tenth_of_its_successes_felt_it(self):
        self.assertEqual(row(self.quiet, self.quiet, self.quiet).findings(5), {})
        self.assertEqual(row(self.quiet, self.quiet, self.lost).findings(5), {"kind": "success"})
        self.assertEqual(row(self.quiet, self.lost, self.quiet).findings(5), {"kind": "success"})

    def test_a_p99_counts_at_half_the_rate_and_beyond_the_floor(self):
        self.assertEqual(row(self.quiet, self.slow, self.quiet).findings(5), {"kind": "p99"})
        self.assertEqual(row(self.quiet, self.slow, self.quiet).findings(25), {})
        self.assertEqual(row(self.quiet, self.quiet, self.slow).findings(5), {})

    def test_a_stall_in_one_round_is_not_taken_for_a_flood(self):
        stalled = probes.joined([{"kind": one} for one in (self.quiet, results([1] * 90 + [300] * 10), self.quiet)])["kind"]
        self.assertEqual(stalled.count, 300)
        self.assertEqual(row(self.quiet, stalled, self.quiet).findings(5), {})
        slow = probes.joined([{"kind": one} for one in (self.slow, self.quiet, self.slow)])["kind"]
        self.assertEqual(row(self.quiet, slow, self.quiet).findings(5), {"kind": "p99"})

    def test_what_rounds_vary_by_is_not_taken_for_a_flood(self):
        def phase(*slowest):
            return probes.joined([{"kind": results([1] * 99 + [one])} for one in slowest])["kind"]

        # The medians differ by 20 ms, and the rounds overlap.
        self.assertEqual(row(phase(8, 40, 9, 45, 10), phase(30, 9, 8, 50, 41), self.quiet).findings(5), {})
        self.assertEqual(row(phase(8, 40, 9, 12, 10), phase(30, 29, 28, 50, 41), self.quiet).findings(5), {"kind": "p99"})
        self.assertEqual(report.chance([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 1 / 252)
        self.assertEqual(report.chance([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]), 1)
        self.assertGreater(report.chance([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]), 0.4)

    def test_a_kind_may_feel_its_own_flood_from_its_own_address_alone(self):
        self.assertEqual(row(self.quiet, self.lost, self.lost, own=("kind",)).findings(5), {})
        self.assertEqual(row(self.quiet, self.lost, self.lost, mode="other", own=("kind",)).findings(5), {"kind": "success"})


class Flooder(unittest.TestCase):
    """Against a socket that reads and never responds."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = pathlib.Path(cls.folder.name) / "flooder"
        subprocess.run(["gcc", "-O2", "-o", cls.program, HERE / "flooder.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def sent(self, template, *options):
        """The bytes that one connection receives."""
        path = pathlib.Path(self.folder.name) / "template"
        path.write_bytes(template)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            command = [self.program, "--port", listener.getsockname()[1], "--template", path, "--seconds", 0.3, *options]
            flooder = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)
            connection, _ = listener.accept()
            received = b""
            while part := receive(connection):
                received += part
            connection.close()
            return received, json.loads(flooder.communicate()[0])

    def flood(self, name):
        return next(flood for flood in floods.floods() if flood.name == name)

    def test_requests_differ_in_what_is_filled_in_and_in_nothing_else(self):
        template = self.flood("WeChat code").template(names_address=True)
        received, said = self.sent(template, "--connections", 1, "--depth", 4)
        requests = received.split(b"POST ")[1:]
        self.assertEqual((len(requests), len(set(requests)), said["sent"]), (4, 4, 4))
        self.assertEqual({len(one) + 5 for one in requests}, {len(template)})
        for one in requests:
            self.assertRegex(one, rb"\r\nX-Forwarded-For: 100\.1\d\d\.1\d\d\.1\d\d\r\n(?s:.*)app=ios&code=bad[0-9A-Za-z]{20}$")

    def test_a_token_of_an_unknown_key_is_a_token(self):
        received, _ = self.sent(self.flood("unknown key").template(False), "--connections", 1, "--depth", 2)
        headers = [json.loads(decoded(part)) for part in re.findall(rb"Bearer ([\w-]+)\.", received)]
        self.assertEqual({one["alg"] for one in headers}, {"RS256"})
        self.assertEqual(len({one["kid"] for one in headers}), 2)

    def test_basic_credentials_have_users_of_their_own(self):
        received, _ = self.sent(self.flood("wrong Basic").template(False), "--connections", 1, "--depth", 2)
        pairs = [decoded(part) for part in re.findall(rb"Basic ([\w+/=]+)", received)]
        self.assertEqual(len(set(pairs)), 2)
        for pair in pairs:
            self.assertRegex(pair, rb"^flood[a-z]{13}:wrong pass$")

    def test_tokens_have_the_length_of_the_gateways_own(self):
        for name, prefix, length in (("unknown mat_", b"mat_", 75), ("wrong refresh", b"mrt_", 86)):
            received, _ = self.sent(self.flood(name).template(False), "--connections", 1, "--depth", 2)
            # The next request follows a body directly.
            tokens = re.findall(prefix + rb"[\w-]+", received.replace(b"POST ", b" POST "))
            self.assertEqual((len(set(tokens)), {len(one) for one in tokens}), (2, {4 + length}))

    def test_what_is_held_is_sent_once_and_never_ended(self):
        received, said = self.sent(self.flood("half head").template(False), "--held", 1, "--trickle")
        self.assertEqual(received, b"GET /public/x HTTP/1.1\r\nHost: a.test\r\nX-Half: ")
        self.assertEqual((said["connections"], said["sent"]), (1, 1))

    def test_a_rate_is_kept(self):
        _, said = self.sent(b"x", "--held", 1, "--churn", "--rate", 10)
        self.assertLessEqual(said["connections"], 5)


def receive(connection):
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def decoded(part):
    return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
