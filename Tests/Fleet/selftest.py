#!/usr/bin/env python3
"""Tests of a fleet's pure parts. No process is started."""

import sys
import unittest

sys.dont_write_bytecode = True

import commands
import counting
import screen


class Schedule(unittest.TestCase):
    def test_the_first_request_is_due_at_once(self):
        self.assertEqual(counting.due(10, 100.0, 100.0, 0), 1)

    def test_what_was_missed_is_sent_later_and_timed_from_its_moment(self):
        self.assertEqual(counting.due(10, 100.0, 101.05, 3), 8)
        self.assertAlmostEqual(counting.moment(10, 100.0, 3), 100.3)

    def test_a_rate_of_zero_sends_nothing(self):
        self.assertEqual(counting.due(0, 0.0, 50.0, 0), 0)


class Outcomes(unittest.TestCase):
    def test_a_503_needs_retry_after(self):
        self.assertEqual(counting.outcome(503, {"retry-after": "1"}), "503")
        self.assertEqual(counting.outcome(503, {}), "503 without Retry-After")

    def test_other_statuses_are_failures_by_their_own_name(self):
        self.assertEqual([counting.outcome(status, {}) for status in (200, 204, 401, 500)], ["ok", "ok", "401", "500"])

    def test_a_window_has_what_finished_in_it(self):
        log = counting.Log()
        for finished in (1.0, 2.0, 3.0):
            log.add(finished - 0.5, finished, "session", "ok")
        log.add(2.0, 3.5, "session", "401", "why")
        window = log.windows(2.0, 3.2)["session"]
        self.assertEqual((window.outcomes["ok"], window.failures, window.p99), (2, {}, 0.5))
        self.assertEqual(log.windows(3.2)["session"].failures, {"401": 1})
        self.assertEqual(log.examples[0][3], "why")

    def test_percentiles_are_nearest_rank(self):
        self.assertEqual([counting.percentile(range(1, 101), share) for share in (50, 99, 100)], [50, 99, 100])
        self.assertEqual(counting.percentile([], 99), 0.0)

    def test_times_outside_of_ranges_are_counted(self):
        self.assertEqual(counting.is_between([0.5, 1.5, 4.0, 5.5], [(1, 2), (5, 6)]), 2)


class CopiesOfSessions(unittest.TestCase):
    def setUp(self):
        self.copies = counting.Copies(5.0)

    def test_a_copy_lives_from_the_request_that_read_it(self):
        self.assertFalse(self.copies.is_inside("t", "a", 1.0))
        self.copies.served("t", "a", 1.0, 1.1)
        self.assertTrue(self.copies.is_inside("t", "a", 5.9))
        self.assertFalse(self.copies.is_inside("t", "a", 6.0))
        self.assertFalse(self.copies.is_inside("t", "b", 2.0))

    def test_a_use_does_not_renew_it(self):
        self.copies.served("t", "a", 1.0, 1.1)
        self.copies.served("t", "a", 4.0, 4.1)
        self.assertFalse(self.copies.is_inside("t", "a", 6.1))

    def test_a_read_at_an_unknown_moment_is_not_relied_on(self):
        self.copies.served("t", "a", 1.0, 1.5)
        self.copies.served("t", "a", 6.2, 6.3)
        self.assertFalse(self.copies.is_inside("t", "a", 6.4))
        self.copies.served("t", "a", 11.4, 11.5)
        self.assertTrue(self.copies.is_inside("t", "a", 16.0))


class Metrics(unittest.TestCase):
    TEXT = """# HELP martlet_redis_nodes Redis servers.
martlet_redis_nodes 3
martlet_redis_failures_total{code="redis.timeout"} 2
martlet_redis_failures_total{code="redis.lost"} 1.5e1
"""

    def test_labels_are_added_up(self):
        metrics = counting.read_metrics(self.TEXT)
        self.assertEqual(counting.total(metrics, "martlet_redis_failures_total"), 17)
        self.assertEqual(counting.total(metrics, "martlet_redis_nodes"), 3)
        self.assertIsNone(counting.total(metrics, "martlet_redis_node"))


class Commands(unittest.TestCase):
    def test_a_line_has_several(self):
        self.assertEqual(commands.parse("kill master 2; wait 10; heal"), [("kill", 2), ("wait", 10), ("heal",)])

    def test_numbers_may_be_left_out(self):
        self.assertEqual(commands.parse("reshard; partition; failover; promote; promote keep"), [
            ("reshard", 1000), ("partition", 10, 1), ("failover", 1), ("promote", True), ("promote", False)])

    def test_others_are_named(self):
        for line in ("kill", "reshard many", "wait 1 2", "upgrade"):
            with self.assertRaises(commands.BadCommand):
                commands.parse(line)


class Screens(unittest.TestCase):
    def test_a_second_has_failures_and_who_is_missing(self):
        log = counting.Log()
        log.add(0.0, 1.0, "session", "401")
        line = screen.short(1, {"nodes": [("redis1", "dead"), ("redis4", "master")]}, log.windows(0.0))
        self.assertIn("failed   1", line)
        self.assertIn("masters redis4  redis1 dead", line)


if __name__ == "__main__":
    unittest.main()
