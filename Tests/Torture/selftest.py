#!/usr/bin/env python3
"""Tests of the torture: each checker has to find what it is for, and the injector has to do what it says."""

import collections
import errno
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import checkers
import client
import plan
import session
from stage import Seen

HERE = pathlib.Path(__file__).resolve().parent
SUBJECT = "usr_alice"
LISTENING = '{"event":"listening"}'


def exchange(step="api", credential="valid", status=200, outcome="response", **more):
    path = more.pop("path", f"/v1/small/{step}")
    return client.Exchange(step, credential, path, status, outcome, **{"began": 2.0, "ended": 3.0, **more})


def line(one):
    return json.dumps({"path": one.path, "status": one.status})


def good(**changes):
    """A run in which all went well after an error at 1.0, with some facts changed."""
    exchanges = [
        exchange("public", "", path="/public/small/1", expected=b"small", body=b"small"),
        exchange(), exchange("wrong", "wrong", 401), exchange("ended", "ended", 401)]
    facts = session.Facts(
        call=("martlet-loop", "recvfrom", "redis", 3), error=errno.ECONNRESET, injected=1.0, ready=0.5,
        exchanges=exchanges, subjects={SUBJECT}, logged_out=True, session="ses_1", events=['{"session_id":"ses_1"}'], recovered=True, reloaded=True, terminated=9.0,
        exited=9.5, status=0, busy=0.01, log=LISTENING, descriptors=collections.Counter(redis=5, upstream=2),
        seen=[Seen("public", "/public/small/1", [], "1", b""),
              Seen("api", "/v1/small/api", [f"x-user-id={SUBJECT}"], "", b"")])
    facts.access = [line(one) for one in exchanges]
    for name, value in changes.items():
        setattr(facts, name, value)
    return facts


def with_exchange(one, **changes):
    facts = good(**changes)
    facts.exchanges.append(one)
    facts.access.append(line(one))
    return facts


def with_seen(path, identities, step="api"):
    facts = good()
    facts.seen.append(Seen(step, path, identities, "", b""))
    return facts


STARTED = {"ready": None, "terminated": None, "exchanges": [], "seen": [], "access": []}
# What each checker has to find; the facts of each row are wrong in one respect.
FINDINGS = {
    "crash": [good(status=139)],
    "hang": [good(status=None), good(status=None, ready=None), good(ready=None)],
    "exit_status": [
        good(status=1), good(status=70, terminated=None), good(**STARTED, status=1), good(**STARTED, status=70, log=""),
        good(**STARTED, status=69, injected=None)],
    "identity": [
        with_seen("/v1/small/api", ["x-user-id=usr_forged"]), with_seen("/public/small/1", [f"x-user-id={SUBJECT}"]),
        with_seen("/public/small/1", ["x-auth-email=a@b.c"]), with_seen("/v1/small/wrong", [], "wrong"),
        with_seen("/v1/small/ended", [], "ended"), with_seen("/v1/small/api", [])],
    "acceptance": [with_exchange(exchange("wrong", "wrong", 200)), with_exchange(exchange("ended", "ended", 204)),
                   with_exchange(exchange("ended", "ended", 403))],
    "rejection": [with_exchange(exchange("api", "valid", 401)), with_exchange(exchange("login", "valid", 403)),
                  with_exchange(exchange("public", "", 400))],
    "responses": [with_exchange(exchange(outcome="malformed", fault="status line"))],
    "silence": [with_exchange(exchange(status=0, outcome="silence"))],
    "cause": [
        with_exchange(exchange(status=503, began=0.6, ended=0.7)),
        with_exchange(exchange(status=0, outcome="closed", ended=0.9)),
        with_exchange(exchange(status=502), error=checkers.SHORT), with_exchange(exchange(status=502), error=errno.EINTR),
        with_exchange(exchange(status=503), injected=None)],
    "bodies": [with_exchange(exchange(expected=b"12345", body=b"1234")), with_exchange(exchange(expected=b"12345", body=b"12335")),
               with_exchange(exchange(expected=b"12345", body=b"13", outcome="cut"))],
    "recovery": [good(recovered=False), good(reloaded=False)],
    "access": [good(access=good().access[1:]), good(access=good().access + good().access[:1]), good(access=["{"]),
               good(access=[line(exchange(status=503)), *good().access[:1], *good().access[2:]])],
    "events": [good(events=[]), good(events=['{"session_id":"ses_other"}'])],
    "descriptors": [good(calls={("martlet-io", "close", "closed"): 1})],
    "rest": [good(busy=0.3)],
    "leaks": [good(descriptors=collections.Counter(redis=6)), good(descriptors=collections.Counter(socket=1)),
              good(descriptors=collections.Counter(upstream=5))],
}
REFERENCE = collections.Counter(redis=5)


class Checkers(unittest.TestCase):
    def test_a_good_run_has_no_findings(self):
        self.assertEqual(checkers.check(good(), REFERENCE), [])

    def test_a_documented_failure_of_the_start_is_no_finding(self):
        for status in checkers.DOCUMENTED_EXITS:
            facts = good(**STARTED, status=status, log="martlet: socket: too many open files")
            self.assertEqual(checkers.check(facts, REFERENCE), [])

    def test_each_checker_finds_what_it_is_for(self):
        names = {checker.__name__ for checker in checkers.CHECKERS} | {"leaks"}
        self.assertEqual(names, set(FINDINGS))
        for name, rows in FINDINGS.items():
            for number, facts in enumerate(rows):
                with self.subTest(name, row=number):
                    self.assertIn(name, [found for found, _ in checkers.check(facts, REFERENCE)])

    def test_an_outage_after_the_failure_is_allowed(self):
        for one in (exchange(status=503), exchange(status=0, outcome="closed"),
                    exchange(expected=b"12345", body=b"12", outcome="cut")):
            one.path = "/v1/small/another"
            self.assertEqual(checkers.check(with_exchange(one), REFERENCE), [])

    def test_what_is_refused_before_it_is_read(self):
        call = ("martlet-loop", "accept4", "public_listener", 2)
        one = exchange("tls", status=503, body=b'{"code":"overloaded"}')
        facts = with_exchange(one, call=call, error=errno.EMFILE)
        facts.access.pop()
        self.assertEqual(checkers.check(facts, REFERENCE), [])
        facts.call = ("martlet-loop", "recvfrom", "public_client", 2)
        self.assertNotEqual(checkers.check(facts, REFERENCE), [])
        one = exchange("metrics", "", 403, path="/metrics", body=b'{"code":"local_only"}')
        self.assertNotEqual(checkers.check(with_exchange(one, call=call), REFERENCE), [])
        call = ("martlet-admin", "getsockname", "admin_client", 2)
        self.assertEqual(checkers.check(with_exchange(one, call=call), REFERENCE), [])

    def test_a_session_may_have_ended_before_its_second_logout(self):
        again = exchange("logout", "unknown", 401, path="/auth/logout")
        self.assertEqual(checkers.check(with_exchange(again), REFERENCE), [])
        again.status = 403
        self.assertNotEqual(checkers.check(with_exchange(again), REFERENCE), [])

    def test_lines_of_a_log_that_could_not_be_written_may_be_lost(self):
        call = ("martlet-log", "write", "access.log", 1)
        self.assertEqual(checkers.check(good(access=[], call=call, error=errno.ENOSPC), REFERENCE), [])
        self.assertNotEqual(checkers.check(good(access=[], call=call, error=errno.EINTR), REFERENCE), [])


class Plans(unittest.TestCase):
    CALLS = {("loop", "recvfrom", "redis"): 40, ("loop", "accept4", "public_listener"): 2, ("log", "write", "access.log"): 9}

    def test_a_sample_has_each_kind_and_only_calls_that_are_made(self):
        chosen = plan.sample(self.CALLS, 12, 1)
        self.assertEqual({call[:3] for call in chosen}, set(self.CALLS))
        self.assertEqual(len(chosen), len(set(chosen)))
        self.assertTrue(all(1 <= call[3] <= self.CALLS[call[:3]] for call in chosen))
        self.assertGreaterEqual(len(chosen), 10)

    def test_each_call_has_every_error(self):
        self.assertEqual(set(plan.errors_of("accept4", "public_listener")), {*plan.ERRORS, errno.ENFILE, errno.ECONNABORTED})
        self.assertIn(plan.SHORT, plan.errors_of("sendto", "redis"))
        self.assertEqual(plan.errors_of("write", "eventfd"), [])

    def test_a_few_runs_are_of_all_calls_and_errors(self):
        runs = plan.runs(plan.sample(self.CALLS, 30, 1))
        kinds = {(call[1], *error) for call, *error in runs}
        few = plan.spread(runs, len(kinds), 1)
        self.assertEqual({(call[1], *error) for call, *error in few}, kinds)
        self.assertEqual(len(plan.spread(runs, 10**6, 1)), len(runs))


class Clients(unittest.TestCase):
    def test_the_status_of_a_block_of_fields(self):
        self.assertEqual(client.status_of(b"\x88"), 200)
        self.assertEqual(client.status_of(b"\x20\x08\x03401"), 401)
        # Huffman: 5, 0, 3 in 6, 5 and 6 bits.
        bits = "011011" + "00000" + "011001" + "1" * 7
        self.assertEqual(client.status_of(b"\x48\x83" + int(bits, 2).to_bytes(3, "big")), 503)
        self.assertRaises(client.Malformed, client.status_of, b"\x40\x01a\x01b")

    def test_a_head_that_is_none(self):
        self.assertEqual(client.head_of(b"HTTP/1.1 204 No Content\r\nA: b"), (204, {"a": "b"}))
        for head in (b"HTTP/1.0 200 OK", b"HTTP/1.1 two", b"HTTP/1.1 200 OK\r\nname", b"HTTP/1.1 200 OK\r\nname : b"):
            self.assertRaises(client.Malformed, client.head_of, head)


# It opens a file and reads it twice, then lets one thread wait for another's bytes with an edge-triggered epoll.
PROGRAM = """
import os, select, socket, sys
for _ in range(2):
    try:
        file = os.open(sys.argv[1], os.O_RDONLY)
        print(len(os.read(file, 100)), file)
        os.close(file)
    except OSError as error:
        print(error.errno)
ours, theirs = socket.socketpair()
ours.setblocking(False)
poll = select.epoll()
poll.register(ours, select.EPOLLIN | select.EPOLLET)
theirs.sendall(b"12345")
got = []
while sum(got) < 5 and poll.poll(5):
    try:
        got.append(len(ours.recv(100)))
    except BlockingIOError:
        got.append(0)
print(got)
"""


@unittest.skipUnless(platform.machine() == "x86_64", "the injector knows the registers of x86-64 alone")
class Injector(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="martlet-torture-")
        cls.place = pathlib.Path(cls.folder.name)
        subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-o", cls.place / "injector", HERE / "injector.c"], check=True)
        (cls.place / "some.data").write_bytes(b"1234567")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, *target):
        """:returns: what the program printed, and the lines of the report."""
        done = subprocess.run(
            [str(word) for word in (self.place / "injector", self.place / "report", "", *target, "--", sys.executable, "-c",
                                    PROGRAM, self.place / "some.data")], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n", 2), (self.place / "report").read_text().splitlines()

    def thread(self):
        _, report = self.run_program()
        return next(line.split("\t")[1] for line in report if line.startswith("call\t"))

    def test_counts_calls_and_changes_nothing(self):
        printed, report = self.run_program()
        self.assertEqual([text.split()[0] for text in printed[:2]] + printed[2:], ["7", "7", "[5]\n"])
        self.assertEqual([line.split("\t")[4] for line in report if "\topenat\tsome.data\t" in line], ["2"])

    def test_one_call_fails_and_no_other(self):
        printed, report = self.run_program(self.thread(), "openat", "some.data", 2, errno.EMFILE, 0)
        self.assertEqual([text.split()[0] for text in printed[:2]], ["7", str(errno.EMFILE)])
        self.assertEqual(sum(line.startswith("injected ") for line in report), 1)

    def test_all_such_calls_fail_for_a_while(self):
        printed, report = self.run_program(self.thread(), "openat", "some.data", 1, errno.EMFILE, 60_000)
        self.assertEqual(printed[:2], [str(errno.EMFILE)] * 2)
        self.assertEqual(sum(line.startswith("injected ") for line in report), 2)

    def test_a_call_moves_fewer_bytes(self):
        printed, _ = self.run_program(self.thread(), "read", "some.data", 1, 0, 0)
        self.assertEqual([text.split()[0] for text in printed[:2]], ["1", "7"])

    def test_what_was_left_or_came_too_early_is_reported_by_epoll_again(self):
        printed, _ = self.run_program(self.thread(), "recvfrom", "unix", 1, 0, 0)
        self.assertEqual(printed[2], "[1, 4]\n")
        printed, _ = self.run_program(self.thread(), "recvfrom", "unix", 1, errno.EAGAIN, 0)
        self.assertEqual(printed[2], "[0, 5]\n")

    def test_a_file_is_closed_whatever_close_returns(self):
        # The second file has the number of the first one.
        printed, _ = self.run_program(self.thread(), "close", "some.data", 1, errno.EINTR, 0)
        self.assertEqual(printed[1], str(errno.EINTR))
        self.assertEqual(printed[2].split("\n")[0], printed[0])


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--quiet"],
                  verbosity=0 if "--quiet" in sys.argv else 1)
