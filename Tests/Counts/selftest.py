#!/usr/bin/env python3
"""Tests that counts can fail in both directions, and that callgrind's files and the lists are read correctly."""

import collections
import pathlib
import tempfile
import unittest

import comparing
import conversation
import counting
import hotcode

COMMITTED = {"instructions": 10000, "allocations": 0.0, "references": 19.02, "accesses": 0.0}

CALLGRIND = """\
# callgrind format
version: 1
positions: line
events: Ir
summary: 168

ob=(1) /usr/bin/martlet
fl=(1) ???
fn=(1) $s7MartletA
0 10
+4 5
cfn=(2) swift_retain
calls=3 0
0 60
cob=(2) libc.so
cfi=(2) ???
cfn=(3) malloc
calls=2 +5
* 80
fn=(2)
0 60
fn=(4) $s7MartletA'2
0 3
cfn=(2)
calls=1 0
-1 20
fn=(3)
0 80

totals: 158
"""


def texts(measured=None, thresholds=COMMITTED):
    return [finding.text for finding in comparing.compare("apple", COMMITTED | (measured or {}), thresholds)]


class Thresholds(unittest.TestCase):
    def test_what_is_committed_passes(self):
        self.assertEqual(texts(), [])

    def test_a_little_more_or_less_passes(self):
        for instructions in (9501, 10299):
            self.assertEqual(texts({"instructions": instructions}), [])
        for references in (18.85, 19.19):
            self.assertEqual(texts({"references": references}), [])
        self.assertEqual(texts({"allocations": 0.015}), [])

    def test_more_instructions_fail(self):
        found = texts({"instructions": 10301})
        self.assertEqual(len(found), 1)
        self.assertIn("10,301 user instructions per request; the threshold is 10,000: 3.0% more", found[0])

    def test_far_fewer_instructions_fail_too(self):
        found = texts({"instructions": 9499})
        self.assertEqual(len(found), 1)
        self.assertIn("9,499 user instructions per request; the threshold is 10,000: 5.0% less", found[0])

    def test_one_allocation_per_request_fails(self):
        self.assertIn("1.00 heap allocations per request; the threshold is 0.00: 1.00 more", texts({"allocations": 1})[0])

    def test_one_allocation_in_thirty_requests_fails(self):
        self.assertEqual(len(texts({"allocations": 1 / 30})), 1)

    def test_retains_of_a_batch_of_lines_pass_and_those_of_a_quarter_fail(self):
        for references, count in ((0.08, 0), (0.25, 1)):
            thresholds = {**COMMITTED, "references": 0.0}
            self.assertEqual(len(texts({"references": references}, thresholds)), count)

    def test_a_retain_more_or_less_fails(self):
        self.assertEqual(len(texts({"references": 20.02})), 1)
        self.assertEqual(len(texts({"references": 18.02})), 1)

    def test_an_exclusivity_check_fails(self):
        self.assertEqual(len(texts({"accesses": 0.25})), 1)

    def test_what_has_no_threshold_fails(self):
        self.assertEqual(len(texts(thresholds=None)), 1)
        self.assertEqual(len(texts(thresholds={})), len(comparing.METRICS))


class HotFunctions(unittest.TestCase):
    def findings(self, found, permitted):
        return [f"{one.scenario} {one.text}" for one in comparing.compare_call_sites(found, permitted)]

    def test_clean_functions_pass(self):
        self.assertEqual(self.findings({"parse": []}, {}), [])

    def test_a_call_fails(self):
        found = self.findings({"parse": ["swift_retain", "swift_retain"]}, {})
        self.assertIn("parse has 2 unwanted calls (swift_retain ×2); 0 are permitted", found[0])

    def test_an_excuse_holds_for_its_number_alone(self):
        permitted = {"parse": (1, "its error's path")}
        self.assertEqual(self.findings({"parse": ["swift_release"]}, permitted), [])
        self.assertEqual(len(self.findings({"parse": ["swift_release"] * 2}, permitted)), 1)
        self.assertEqual(len(self.findings({"parse": []}, permitted)), 1)

    def test_an_excuse_needs_a_reason(self):
        self.assertIn("no reason is given", self.findings({"parse": ["malloc"]}, {"parse": (1, "")})[0])

    def test_an_excuse_for_nothing_fails(self):
        self.assertIn("remove it from the list", self.findings({}, {"parse": (1, "its error's path")})[0])

    def test_calls_and_jumps_are_found_in_machine_code(self):
        for line, callee in [
            ("   1a2b:\tcall   2c3d <swift_retain>\n", "swift_retain"),
            ("   1a2b:\tjmp    2c3d <swift_release>\n", "swift_release"),
            ("   1a2b:\tcall   2c3d <malloc@plt>\n", "malloc"),
        ]:
            self.assertEqual(hotcode.CALL.search(line).group(1), callee)
            self.assertTrue(hotcode.UNWANTED.match(callee))
        self.assertIsNone(hotcode.CALL.search("   1a2b:\tjne    2c3d <swift_retain+0x10>\n"))
        self.assertIsNone(hotcode.UNWANTED.match("swift_isUniquelyReferenced_nonNull_native"))

    def test_what_runs_seldom_or_is_not_ours_is_not_hot(self):
        calls = collections.Counter({"$s7MartletA": 100, "$s7MartletB": 50, "$sSS": 100, "malloc": 100})
        profile = counting.Profile(collections.Counter(), calls, collections.Counter())
        result = collections.namedtuple("Result", "profile requests")(profile, 100)
        self.assertEqual(hotcode.hot_symbols([result]), {"$s7MartletA"})


class Callgrind(unittest.TestCase):
    def test_costs_and_calls_are_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "counts"
            path.write_text(CALLGRIND, encoding="utf-8")
            profile = counting.read(path)
        self.assertEqual(profile.own, {"$s7MartletA": 18, "swift_retain": 60, "malloc": 80})
        self.assertEqual(profile.calls, {"swift_retain": 4, "malloc": 2})
        self.assertEqual(profile.edges["$s7MartletA", "swift_retain"], 4)
        self.assertEqual(profile.instructions, 158)
        self.assertEqual(profile.allocations, 2)
        self.assertEqual(profile.called(counting.REFERENCES), 4)

    def test_what_the_allocator_does_inside_is_not_counted_again(self):
        for name in ("_int_malloc", "malloc_usable_size", "free", "swift_slowAlloc"):
            self.assertIsNone(counting.ALLOCATIONS.match(name))
        edges = {
            ("$s7MartletA", "posix_memalign"): 3, ("posix_memalign", "_mid_memalign.constprop.0"): 3,
            ("_mid_memalign.constprop.0", "malloc"): 3, ("malloc", "_int_malloc"): 3,
        }
        self.assertEqual(counting.Profile(None, None, collections.Counter(edges)).allocations, 3)


class Frames(unittest.TestCase):
    def test_a_field_is_a_literal_once_and_an_index_then(self):
        clients = conversation.StreamClients.__new__(conversation.StreamClients)
        clients.indexed = {}
        fields = [(b"a", b"1"), (b"b", b"22")]
        self.assertEqual(clients.block(fields), b"\x40\x01a\x011" + b"\x40\x01b\x0222")
        self.assertEqual(clients.block(fields), b"\xbf\xbe")

    def test_long_lengths_take_more_bytes(self):
        self.assertEqual(conversation.integer(126, 7), b"\x7e")
        self.assertEqual(conversation.integer(127, 7), b"\x7f\x00")
        # RFC 7541, C.1.2
        self.assertEqual(conversation.integer(1337, 5), b"\x1f\x9a\x0a")


if __name__ == "__main__":
    unittest.main()
