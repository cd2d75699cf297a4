#!/usr/bin/env python3
"""Tests of what is read from servers and from the output of tests. No server is started."""

import sys
import unittest

sys.dont_write_bytecode = True

import servers


class Versions(unittest.TestCase):
    def test_redis_and_valkey_name_themselves(self):
        self.assertEqual(servers.version("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64"), "Redis 6.2.14")
        self.assertEqual(servers.version("Valkey server v=9.1.2 sha=00000000:1 malloc=libc"), "Valkey 9.1.2")

    def test_other_programs_are_no_servers(self):
        self.assertIsNone(servers.version("redis-cli 7.0.15"))
        self.assertIsNone(servers.version(""))


class TLS(unittest.TestCase):
    def test_each_server_has_its_own_words_for_a_build_without_it(self):
        self.assertTrue(servers.lacks_tls(">>> 'tls-port \"1\"'\nBad directive or wrong number of arguments"))
        self.assertTrue(servers.lacks_tls("# Missing implement of connection type tls\n# Failed finding TLS support."))
        self.assertFalse(servers.lacks_tls("# No tls-cert-file configured!\n# Failed to configure TLS."))


class Counts(unittest.TestCase):
    def test_the_last_summary_counts(self):
        text = "✔ Test run with 0 tests in 0 suites passed after 0.001 seconds.\n"
        self.assertEqual(servers.counts(text), (0, True))
        text += "✘ Test run with 91 tests in 11 suites failed after 80.5 seconds with 1 issue.\n"
        self.assertEqual(servers.counts(text), (91, False))

    def test_without_a_summary_nothing_ran(self):
        self.assertIsNone(servers.counts("error: no tests found\n"))


if __name__ == "__main__":
    unittest.main()
