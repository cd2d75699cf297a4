#!/usr/bin/env python3
"""Tests of the checks on pages. No gateway is needed."""

import pathlib
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True

import importlib.machinery
import importlib.util

import blocks
import configurations
import rules
import services
import typist

HERE = pathlib.Path(__file__).resolve().parent


def load_run():
    loader = importlib.machinery.SourceFileLoader("documents_run", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


RUN = load_run()


class Silent:
    """A typist that records what it would type."""

    def __init__(self):
        self.typed = []

    def prepare(self, found):
        pass

    def type(self, command, rule):
        self.typed.append(command.text)

    def close(self):
        pass


def read(text, page="README.md"):
    """The errors of a page with this text, and what would be typed."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / page).write_text(text)
        (root / "Makefile").write_text("run: ## runs\n\t@true\n")
        reading, silent = RUN.Reading(), Silent()
        real, RUN.ROOT = RUN.ROOT, root
        try:
            RUN.read_page(page, reading, "run  check", lambda page: silent, lambda block: None)
        finally:
            RUN.ROOT = real
        return reading, silent.typed


class Blocks(unittest.TestCase):
    def test_comments_end_commands_but_not_in_quotes(self):
        block = blocks.Block("a.md", 1, "sh", "curl -d 'a # b' x  # says # so\n# nothing\n$ make a \\\n  b#c\n\n")
        self.assertEqual(
            [(one.text, one.comment) for one in blocks.commands_of(block)],
            [("curl -d 'a # b' x", "says # so"), ("make a    b#c", "")])

    def test_a_block_knows_its_line(self):
        found = blocks.blocks_of("a.md", "one\n\n```sh\nls\n```\n\n  ```yaml\n  a: b\n  ```\n")
        self.assertEqual([(one.line, one.language) for one in found], [(4, "sh"), (8, "yaml")])

    def test_the_head_of_a_configuration_has_commands(self):
        found = blocks.blocks_of("config.yaml", "# Text\n#   martlet run         serves it\n#   no command\nversion: 1\n")
        self.assertEqual([one.text for one in blocks.commands_of(found[1])], ["martlet run"])


class Pages(unittest.TestCase):
    def test_a_known_command_is_typed(self):
        reading, typed = read("```sh\nmartlet check    # ok\n```\n")
        self.assertEqual((reading.errors, typed), ([], ["martlet check"]))

    def test_an_unknown_command_is_an_error(self):
        reading, typed = read("```sh\nmartlet fly\n```\n")
        self.assertEqual(typed, [])
        self.assertEqual(
            reading.errors, ["README.md:2: error: Tests/Documents/rules.py does not say what is expected of `martlet fly`"])

    def test_an_unknown_language_is_an_error(self):
        self.assertIn("a block of ruby", read("```ruby\nputs 1\n```\n")[0].errors[0])

    def test_a_command_in_a_plain_block_is_an_error(self):
        for text in ("curl http://a.test/", "$ martlet run", "martlet user add alice     asks for it"):
            for language in ("", "text"):
                self.assertIn("looks like a command", read(f"```{language}\n{text}\n```\n")[0].errors[0])

    def test_json_has_to_be_json(self):
        self.assertEqual(read('```json\n{"a":"…"}\n```\n')[0].errors, [])
        self.assertIn("this JSON", read("```json\n{a}\n```\n")[0].errors[0])

    def test_a_sentence_names_targets_that_there_are(self):
        self.assertEqual(read("`make run` runs")[0].errors, [])
        self.assertIn("README.md:2: error: there is no `make fly`", read("\n`make fly ARGS=1`")[0].errors)
        self.assertEqual(read("`martlet check --online` asks")[0].errors, [])
        self.assertIn("README.md:1: error: there is no `martlet fly`", read("`martlet fly`")[0].errors)

    def test_an_entry_that_nothing_needs_is_an_error(self):
        reading, _ = read("```sh\nmartlet check\n```\n")
        reading.unused({"README.md"})
        self.assertEqual(
            len(reading.errors), sum(one.page == "README.md" for one in (*rules.RULES, *rules.EXCUSES)) - 1)


class Configurations(unittest.TestCase):
    def test_a_whole_one_stays_as_it_is(self):
        self.assertEqual(configurations.complete("version: 1\nroutes: []\n"), "version: 1\nroutes: []\n")

    def test_a_part_gets_what_it_lacks_and_no_more(self):
        whole = configurations.complete("sessions:\n  access_ttl: 15m\n")
        self.assertEqual(list(configurations.sections(whole)), ["version", "sessions", "routes", "providers", "upstreams"])
        routes = "routes:\n  - { name: a, match: { path: /a }, auth: { providers: [wechat, password] }, upstream: api }\n"
        found = configurations.sections(configurations.complete(routes))
        self.assertEqual(found["routes"], routes)
        self.assertIn("accounts", found)
        self.assertTrue("wechat:" in found["providers"] and "apple:" not in found["providers"])

    def test_addresses_are_those_of_the_run_wherever_they_stand(self):
        ports = services.Ports(1, 2, 3, "http://a", "http://w")
        self.assertEqual(configurations.local_addresses("127.0.0.1:8080 127.0.0.1:9901 127.0.0.1:9000", ports), "127.0.0.1:1 127.0.0.1:2 127.0.0.1:3")
        first, second = (configurations.local_addresses("http://127.0.0.1:9101/x", ports) for _ in range(2))
        self.assertTrue(first == second and ":9101/" not in first)
        self.assertIn('"http://a/auth/keys"', configurations.localized("providers: { a: { kind: apple, audiences: [b] } }\n", ports))
        own = 'providers: { a: { kind: apple, base_url: "http://127.0.0.1:9000" } }\n'
        self.assertNotIn("http://a", configurations.localized(own, ports))

    def test_dots_that_nothing_is_known_for_are_an_error(self):
        stub = types.SimpleNamespace(
            ports=services.Ports(1, 2, 3, "", ""), gateway=None, folder=pathlib.Path("/tmp"), tokens={})
        with self.assertRaises(typist.PageError):
            typist.Typist.substituted(stub, "curl http://127.0.0.1:8080/…")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
