#!/usr/bin/env python3
"""Tests of a fleet's pure parts. No process is started."""

import sys
import unittest

sys.dont_write_bytecode = True

import commands
import copying
import counting
import measures
import planted
import processes
import redis_nodes
import screen


class Schedule(unittest.TestCase):
    def test_the_first_request_is_due_at_once(self):
        self.assertEqual(counting.due(10, 100.0, 100.0, 0), 1)

    def test_what_was_missed_is_sent_later_and_timed_from_its_moment(self):
        self.assertEqual(counting.due(10, 100.0, 101.05, 3), 8)
        self.assertAlmostEqual(counting.moment(10, 100.0, 3), 100.3)

    def test_a_rate_of_zero_sends_nothing(self):
        self.assertEqual(counting.due(0, 0.0, 50.0, 0), 0)


class Versions(unittest.TestCase):
    def test_a_server_tells_its_version(self):
        self.assertEqual(redis_nodes.version("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64"), (6, 2))
        self.assertEqual(redis_nodes.version("Valkey server v=9.1.2 sha=00000000:1"), (9, 1))
        self.assertIsNone(redis_nodes.version("redis-cli 7.0.15"))

    def test_the_bus_of_an_old_server_has_no_option(self):
        port, bus, options = redis_nodes.cluster_ports(False)
        self.assertEqual((bus, options), (port + 10000, ()))
        port, bus, options = redis_nodes.cluster_ports(True)
        self.assertEqual(options, ("--cluster-port", bus))


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
        self.assertEqual(counting.outside([0.5, 1.5, 4.0, 5.5], [(1, 2), (5, 6)]), 2)


class CopiesOfSessions(unittest.TestCase):
    def setUp(self):
        self.copies = counting.Copies(5.0)

    def test_a_copy_lives_from_the_request_that_read_it(self):
        self.assertFalse(self.copies.is_inside("t", "a", 1.0))
        self.copies.served("t", "a", 1.0)
        self.assertTrue(self.copies.is_inside("t", "a", 5.9))
        self.assertFalse(self.copies.is_inside("t", "a", 6.0))
        self.assertFalse(self.copies.is_inside("t", "b", 2.0))

    def test_nothing_is_known_of_a_copy_that_may_have_been_renewed(self):
        self.copies.served("t", "a", 1.0)
        for sent in (4.0, 7.0, 30.0):
            self.copies.served("t", "a", sent)
            self.assertFalse(self.copies.is_inside("t", "a", max(sent, 6.1)))

    def test_nothing_is_known_of_a_copy_that_was_first_used_while_a_master_failed(self):
        self.copies.served_while_failing("t", "a")
        self.copies.served("t", "a", 1.0)
        self.assertFalse(self.copies.is_inside("t", "a", 2.0))
        self.copies.served("t", "b", 1.0)
        self.copies.served_while_failing("t", "b")
        self.assertTrue(self.copies.is_inside("t", "b", 5.9))

    def test_responses_may_change_their_order(self):
        self.copies.served("t", "a", 1.2)
        self.copies.served("t", "a", 1.0)
        self.assertFalse(self.copies.is_inside("t", "a", 6.1))

    def test_a_token_is_forgotten(self):
        self.copies.served("t", "a", 1.0)
        self.copies.forget("t", ["a", "b"])
        self.assertFalse(self.copies.is_inside("t", "a", 2.0))


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

    def test_rates_are_of_known_kinds(self):
        self.assertEqual(commands.parse_rates("session=1000,login=0"), {"session": 1000, "login": 0})
        for text in ("sessions=1", "session", "login=many"):
            with self.assertRaises(commands.BadCommand):
                commands.parse_rates(text)

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


class Forgeries(unittest.TestCase):
    def test_fields_have_kinds(self):
        self.assertEqual([planted.kind_of(name) for name in (b"12d", b"d", b"a:ff", b"x")], ["record part", "d", "a", "x"])

    def test_one_bit_is_changed(self):
        self.assertEqual(planted.flipped(b"abc"), b"acc")

    def test_only_with_a_seal_a_planted_session_is_wrong(self):
        rows = [("a session of a stranger's making", "200/200", 0), ("another session's record in one's own", "401/401", 0),
                ("keys of a stranger's issuer", "503", 0)]
        self.assertEqual(planted.judge(rows, False), [])
        self.assertEqual(planted.judge(rows, True), ["a session of a stranger's making: 200/200, not 401/401"])
        rows[1] = (rows[1][0], "200/401", 0)
        self.assertEqual(planted.judge(rows, False), ["another session's record was believed"])


class Copies(unittest.TestCase):
    def test_rows_are_read_by_table(self):
        text = "accounts: 30 rows, SHA-256 ab\nusers: 2 rows, SHA-256 cd\nverified\n"
        self.assertEqual(copying.rows_of(text), {"accounts": 30, "users": 2})


class Judging(unittest.TestCase):
    def log(self, *rows):
        log = counting.Log()
        for finished, kind, name in rows:
            log.add(finished, finished, kind, name)
        return log.windows(0.0)

    def test_503_is_right_in_its_time_alone(self):
        windows = self.log((1.5, "session", "503"), (4.0, "session", "503"), (1.5, "direct", "503"))
        later = [(1.5, "session"), (4.0, "session"), (1.5, "direct")]
        self.assertEqual(measures.judge(windows, later, [(1.0, 3.0)], ("direct",)), [
            "direct: 1 × 503", "session: 1 × 503 outside of the failover"])

    def test_a_401_is_never_right(self):
        self.assertEqual(
            measures.judge(self.log((1.0, "session", "401"), (1.0, "login", "ok")), [], [(0, 9)], ()), ["session: 1 × 401"])

    def test_growth_is_of_connections_descriptors_and_memory(self):
        before, after = processes.Resources(0), processes.Resources(0)
        before.connections, after.connections = {"redis": 9, "clients": 5}, {"redis": 12, "clients": 50}
        before.resident, after.resident = 100, 110
        self.assertEqual(measures.grown(before, after), ["redis connections 9 → 12"])
        after.resident, after.others = 120, 5
        self.assertEqual(len(measures.grown(before, after)), 3)

    def test_the_table_says_fail(self):
        text = measures.table([("one", "0", "0", []), ("two", "0", "1", ["1 × 401"])])
        self.assertIn("ok    one", text)
        self.assertIn("FAIL  two", text)
        self.assertIn("wrong: 1 × 401", text)


if __name__ == "__main__":
    unittest.main()
