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
import links
import rules
import services
import translations
import typist

HERE = pathlib.Path(__file__).resolve().parent


def load(name, path):
    """A script without a suffix as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


RUN = load("documents_run", HERE / "run")
SITE = load("documents_site", HERE / "site")
BUILD = load("site_build", HERE.parents[1] / ".tools/site/build")


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


def written(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def html(body, language="en"):
    return f'<html lang="{language}"><body>{body}</body></html>'


class SiteLinks(unittest.TestCase):
    """What is found in a built site."""

    def errors(self, files):
        with tempfile.TemporaryDirectory() as folder:
            written(folder, files)
            return [f"{file}: {text}" for file, text in links.findings_of(pathlib.Path(folder))]

    def test_a_site_whose_links_lead_somewhere_has_no_errors(self):
        page = html('<a href="b/c.html#x">c</a><a href="https://a.test/">out</a><img src="data:image/png;base64,AA==">')
        self.assertEqual(self.errors({"index.html": page, "b/c.html": html('<p id="x"><a href="../index.html#">up</a>')}), [])

    def test_a_link_or_an_anchor_to_nothing_is_an_error(self):
        found = self.errors({"index.html": html('<a href="a.html">a</a><a href="#b">b</a>')})
        self.assertIn("which no browser opens", self.errors({"index.html": html('<a href="doc:Page">a</a>')})[0])
        self.assertEqual(found, ["index.html: links to 'a.html', which does not exist", "index.html: links to '#b', whose anchor does not exist"])

    def test_what_another_host_serves_is_an_error(self):
        for body in ('<script src="https://a.test/a.js"></script>', '<link rel="stylesheet" href="//a.test/a.css">',
                     '<img src="http://a.test/a.png">', '<p style="background: url(https://a.test/a.png)">',
                     "<style>@import 'https://a.test/a.css';</style>"):
            self.assertIn("from another host", " ".join(self.errors({"index.html": html(body)})), body)
        for name, text in (("a.css", "@import url(/b.css);"), ("a.css", "x { background: url('https://a.test/b') }"), ("a.js", "fetch('https://a.test')")):
            self.assertIn("from another host", " ".join(self.errors({"index.html": html(""), name: text})), text)

    def test_a_file_that_is_not_there_is_an_error(self):
        self.assertIn("loads 'a.js', which does not exist", self.errors({"index.html": html('<script src="a.js"></script>')})[0])

    def test_an_id_for_two_elements_is_an_error(self):
        self.assertIn("two elements have the id 'a'", self.errors({"index.html": html('<p id="a"></p><p id="a"></p>')})[0])

    def test_a_page_that_no_page_links_to_is_an_error(self):
        self.assertEqual(self.errors({"index.html": html(""), "a.html": html("")}), ["a.html: no page links to it"])

    def test_a_page_says_its_language(self):
        files = {"index.html": html('<a href="zh-Hans/a.html">a</a>'), "zh-Hans/a.html": html("")}
        self.assertEqual(self.errors(files), ["zh-Hans/a.html: its language is 'en', not 'zh-Hans'"])

    def test_a_wide_page_and_a_search_without_its_page_are_errors(self):
        words, page = SITE.SEARCHES[0]
        seen = [{"address": "a", "words": "", "width": 321, "results": None}, {"address": "b", "words": words, "width": 320, "results": ["x"]}]
        self.assertEqual([file for file, _ in SITE.compared(seen)], ["a", "b"])
        self.assertEqual(list(SITE.compared([{"address": "b", "words": words, "width": 320, "results": [page]}])), [])


class SiteSources(unittest.TestCase):
    """How pages of the repository become those of the site."""

    def stage(self, files, folder):
        root, out = pathlib.Path(folder) / "root", pathlib.Path(folder) / "out"
        out.mkdir()
        written(root, {BUILD.OVERVIEW: "# Over\n\n## Guides\n", "README.md": "# R\n", **files})
        stage = BUILD.Stage(root, out)
        stage.write()
        return stage, out

    def test_links_lead_to_the_pages_of_the_site(self):
        guides = BUILD.CATALOG
        with tempfile.TemporaryDirectory() as folder:
            _, out = self.stage({
                "README.md": f"# R\n[b][B] [a]({guides}A.md#x) `[a]({guides}A.md)`\n```text\n[a]({guides}A.md)\n```\n[o](https://a.test)\n\n[B]: {guides}A.md#y\n",
                guides + "A.md": "# A\n[r](../../../README.md) [d](Decisions/1.md) [e](../../../Examples/x) [j](a.json)\n",
                guides + "Decisions/1.md": "# D\n[a](../A.md)\n", guides + "a.json": "{}", "Examples/x/y.yaml": "a: b\n",
            }, folder)
            first = (out / "index.md").read_text()
            self.assertIn(f"[a](A.md#x) `[a]({guides}A.md)`\n```text\n[a]({guides}A.md)\n```\n[o](https://a.test)\n\n[B]: A.md#y\n", first)
            self.assertIn("[r](index.md) [d](Decisions/1.md) [e](files/Examples/x/index.md) [j](files/", (out / "A.md").read_text())
            self.assertIn("[a](../A.md)", (out / "Decisions/1.md").read_text())
            self.assertIn("(y.yaml)", (out / "files/Examples/x/index.md").read_text())

    def test_a_link_to_nothing_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(BUILD.SiteError):
            self.stage({"A.md": "# A\n[b](B.md)\n"}, folder)

    def test_every_page_is_in_the_navigation_once(self):
        guides = BUILD.CATALOG
        with tempfile.TemporaryDirectory() as folder:
            _, out = self.stage({
                BUILD.OVERVIEW: "# Over\n\n## Reading order\n[l](L.md)\n\n## Guides\n[b](B.md) [b](B.md#x)\n\n## Decisions\n[d](Decisions/1.md)\n",
                guides + "B.md": "# B\n", guides + "L.md": "# L\n", guides + "Decisions/1.md": "# D\n",
                "README.zh-Hans.md": "# R\n", BUILD.CHINESE_OVERVIEW: "# O\n[b](B.md)\n", guides + "zh-Hans/B.md": "# B\n",
            }, folder)
            navigation = (out / "index.md").read_text().split("```{toctree}")[1:]
            listed = [line for tree in navigation for line in tree.splitlines() if line and not line.startswith((":", "`"))]
            self.assertEqual(listed, ["Overview <Martlet>", "B", "zh-Hans/index", "zh-Hans/Martlet", "zh-Hans/B", "Decisions/1", "L"])


class Translations(unittest.TestCase):
    """A page and its translation, which are changed in one respect."""

    ENGLISH = """# Title

[C](zh-Hans/A.md)

Text with `name` and [a heading](#second) of [another page](B.md#part), [twice][B].

```sh
martlet run
```

## Second

* item
* another
  one

| a | `b` |
|---|---|
| c | [d](../../../README.md) |

[B]: B.md#part
"""
    CHINESE = """# 标题

[E](../A.md)

正文，有 `name` 和 [标题](#第二)，属于 [另一页](../B.md#part)，[两次][B]。

```sh
martlet run
```

## 第二

* 一项
* 另一项 A
  项

| 甲 | `b` |
|---|---|
| 丙 | [丁](../../../../README.zh-Hans.md) |

[B]: ../B.md#part
"""

    def findings(self, chinese, english=ENGLISH):
        guides = translations.CATALOG
        with tempfile.TemporaryDirectory() as folder:
            written(folder, {
                "README.md": "# R\n", "README.zh-Hans.md": "# R\n", guides + "A.md": english, guides + "B.md": "# B\n\n## Part\n",
                guides + "zh-Hans/A.md": chinese, guides + "zh-Hans/Martlet.md": "# M\n\n[A](A.md) [R](../../../../README.zh-Hans.md)\n"})
            found = translations.findings_of(pathlib.Path(folder))
            return [f"{page.rsplit('/', 1)[-1]}:{line}: {text}" for page, line, text in found]

    def test_pages_that_say_the_same(self):
        self.assertEqual(self.findings(self.CHINESE), [])

    def test_every_difference_is_found(self):
        for old, new, expected in (
                ("# 标题", "## 标题", "A.md:1: is a heading 2, where line 1 of"),
                ("## 第二\n", "第二\n", "is a paragraph, where line 11 of"),
                ("martlet run", "martlet  run", "A.md:7: is not the same code as line 7"),
                ("```sh", "```bash", "is not the same code"),
                ("有 `name` 和", "有名称和", "lacks `name`, which line 5 of"),
                ("正文，有", "正文，有 `more`", "has `more`, which line 5 of"),
                ("(../B.md#part)", "(../B.md)", "lacks a link to Sources/MartletServer/Documentation.docc/B.md#part"),
                ("，[两次][B]", "，两次", "lacks a link to Sources/MartletServer/Documentation.docc/B.md#part"),
                ("[B]: ../B.md#part", "[B]: ../B.md", "has a link to Sources/MartletServer/Documentation.docc/B.md,"),
                ("(#第二)", "(#标题)", "has a link to Sources/MartletServer/Documentation.docc/A.md#heading 1"),
                ("(#第二)", "(#无)", "no heading '无'"),
                ("(../../../../README.zh-Hans.md)", "(../../../../README.md)", "not to its Chinese version"),
                ("[E](../A.md)", "[E](../B.md)", "lacks a link to this page in the other language"),
                ("* 另一项 A\n  项\n", "", "is a table of 3 rows and 2 columns, where line 14 of"),
                ("| 丙 |", "| 一 | 二 |\n| 丙 |", "is a table of 4 rows and 2 columns, where line 17 of"),
                ("正文，有", "正文，\n有", "A.md:5: breaks where there is no space"),
                ("# 标题\n", "# 标题\n\n多余的段落\n", "lacks a link to this page in the other language")):
            self.assertIn(old, self.CHINESE)
            self.assertTrue(any(expected in one for one in self.findings(self.CHINESE.replace(old, new, 1))), (new, expected))
        self.assertIn("A.md:23: is not in the other language", self.findings(self.CHINESE + "\n多余\n")[0])

    def test_every_chinese_page_is_listed_and_has_an_english_one(self):
        guides = translations.CATALOG
        with tempfile.TemporaryDirectory() as folder:
            written(folder, {"README.md": "# R\n", guides + "zh-Hans/Martlet.md": "# M\n", guides + "zh-Hans/A.md": "# A\n"})
            self.assertEqual([text for _, _, text in translations.findings_of(pathlib.Path(folder))], [
                "there is no README.zh-Hans.md", f"there is no {guides}A.md", f"does not list {guides}zh-Hans/A.md"])


class SearchWords(unittest.TestCase):
    def test_chinese_is_divided_into_characters_and_pairs(self):
        path = BUILD.ROOT / BUILD.HERE / "words.py"
        source = path.read_text().split("class SearchWords")[0].replace("from sphinx.search.en import SearchEnglish", "")
        words = {}
        exec(compile(source, str(path), "exec"), words)
        self.assertEqual(list(words["words_of"]("用 Apple 登录: 401, rate_limits")), ["用", "Apple", "登", "录", "登录", "_401", "rate_limits"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
