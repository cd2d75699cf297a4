#!/usr/bin/env python3
"""Compares every Chinese page with its English one: the same blocks in the same order, the same code, names and links.

    Tests/Documents/translations.py

README.zh-Hans.md belongs to README.md, and each page of the catalog's zh-Hans folder to the page of the same name above it;
the folder's Martlet.md is an overview of its own, which has to list the others. A link has to lead to the same page as in
English, to its Chinese version where there is one, and to the same heading. Prose is not compared, except for what stands in
backquotes. Lines of Chinese may break only where there is a space: a break is shown as one.
Exit codes: 0 the pages say the same, 1 they do not.
"""

import collections
import dataclasses
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOG = "Sources/MartletServer/Documentation.docc/"
FOLDER = CATALOG + "zh-Hans/"
README, CHINESE_README = "README.md", "README.zh-Hans.md"
OVERVIEW = FOLDER + "Martlet.md"
HEADING = re.compile(r"(#{1,6}) +(.*)")
ITEM = re.compile(r"( *)([*+-]|\d+\.) +")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A link by the label of a definition, which is its text where none is given.
LABELED = re.compile(r"\[([^\[\]]+)\]\[([^\]]*)\]")
DEFINITION = re.compile(r"^\[([^\]]+)\]: +(\S+)$", re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
WIDE = "\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef\u2018-\u201d"
BROKEN = re.compile(rf"[{WIDE}]\n *[{WIDE}]")


@dataclasses.dataclass
class Part:
    """A block of a page: its kind with its shape, the line that it begins on, its text."""

    kind: str
    line: int
    text: str


def parts_of(text):
    """The blocks of a page, in order. A table's kind has its number of rows and columns."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line, start = lines[index], index
        if not line.strip():
            index += 1
            continue
        if line.lstrip().startswith("```"):
            index += 1
            while index < len(lines) and not lines[index].strip() == "```":
                index += 1
            kind, index = "code", index + 1
        elif heading := HEADING.match(line):
            kind, index = f"heading {len(heading.group(1))}", index + 1
        elif line.startswith("|"):
            while index < len(lines) and lines[index].startswith("|"):
                index += 1
            columns = len(re.findall(r"(?<!\\)\|", lines[start + 1] if start + 1 < index else line)) - 1
            kind = f"table of {index - start} rows and {columns} columns"
        else:
            item = ITEM.match(line)
            kind = ("numbered item" if item.group(2)[0].isdigit() else "item") if item else "picture" if line.startswith("![") else "paragraph"
            index += 1
            while index < len(lines) and continues(lines[index], kind):
                index += 1
        yield Part(kind, start + 1, "\n".join(lines[start:index]))


def continues(line, kind):
    """Whether a line belongs to the block before it."""
    if not line.strip() or line.lstrip().startswith("```") or line.startswith("|") or HEADING.match(line):
        return False
    return not ITEM.match(line) and kind != "picture"


def pairs_of(root):
    """Every Chinese page with its English one, which may be missing."""
    found = [(README, CHINESE_README)] if (root / CHINESE_README).exists() else []
    for path in sorted((root / FOLDER).glob("*.md")):
        if FOLDER + path.name != OVERVIEW:
            found.append((CATALOG + path.name, FOLDER + path.name))
    return found


def headings(root, page):
    """The anchors of a page's headings, in order."""
    titles = [HEADING.match(part.text).group(2) for part in parts_of(read(root, page)) if part.kind.startswith("heading")]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def read(root, page):
    return (root / page).read_text(encoding="utf-8")


class Comparison:
    """One page and its translation."""

    def __init__(self, root, english, chinese):
        self.root, self.english, self.chinese = root, english, chinese
        self.chinese_of = {first: second for first, second in pairs_of(root)} | {CATALOG + "Martlet.md": OVERVIEW}
        self.english_of = {second: first for first, second in self.chinese_of.items()}

    def findings(self):
        if not (self.root / self.english).exists():
            yield self.chinese, 1, f"there is no {self.english}"
            return
        first, second = (list(parts_of(read(self.root, page))) for page in (self.english, self.chinese))
        for ours, theirs in zip(first, second):
            if ours.kind != theirs.kind:
                yield self.chinese, theirs.line, f"is a {theirs.kind}, where line {ours.line} of {self.english} is a {ours.kind}"
                return
            yield from self.compared(ours, theirs)
        if len(first) != len(second):
            longer, page = (first, self.english) if len(first) > len(second) else (second, self.chinese)
            yield page, longer[min(len(first), len(second))].line, "is not in the other language"

    def compared(self, ours, theirs):
        where = f"line {ours.line} of {self.english}"
        if ours.kind == "code":
            if ours.text != theirs.text:
                yield self.chinese, theirs.line, f"is not the same code as {where}"
            return
        yield from self.differing(theirs.line, where, "`{}`", self.names(ours.text), self.names(theirs.text))
        yield from self.differing(
            theirs.line, where, "a link to {}", self.links(self.english, ours.text), self.links(self.chinese, theirs.text))
        if broken := BROKEN.search(theirs.text):
            line = theirs.line + theirs.text.count("\n", 0, broken.start())
            yield self.chinese, line, "breaks where there is no space, and the break is shown as one"

    def differing(self, line, where, form, ours, theirs):
        for name in sorted((ours - theirs).keys()):
            yield self.chinese, line, f"lacks {form.format(name)}, which {where} has"
        for name in sorted((theirs - ours).keys()):
            yield self.chinese, line, f"has {form.format(name)}, which {where} lacks"

    def names(self, text):
        return collections.Counter(" ".join(name.split()) for name in SPAN.findall(text))

    def links(self, page, text):
        """What the links of a block lead to, as the English page and the position of its heading."""
        defined = dict(DEFINITION.findall(read(self.root, page)))
        labels = [label or name for name, label in LABELED.findall(text)]
        targets = LINK.findall(text) + [defined.get(label, f"undefined:{label}") for label in labels]
        return collections.Counter(self.goal(page, target) for target in targets)

    def goal(self, page, target):
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if {linked, page} == {self.english, self.chinese} and linked != page:
            return "this page in the other language"
        if page == self.chinese and linked in self.chinese_of:
            return f"{target}, not to its Chinese version"
        named = self.english_of.get(linked, linked)
        if anchor and linked != named or linked in self.chinese_of and anchor:
            known = headings(self.root, linked) if (self.root / linked).exists() else []
            anchor = f"heading {known.index(anchor) + 1}" if anchor in known else f"no heading '{anchor}'"
        return f"{named}#{anchor}" if anchor else named


def overview_findings(root):
    """The overview lists every Chinese page."""
    if not (root / OVERVIEW).exists():
        return
    linked = {posixpath.normpath(posixpath.join(FOLDER, target.partition("#")[0])) for target in LINK.findall(read(root, OVERVIEW))}
    for _, page in pairs_of(root):
        if page not in linked:
            yield OVERVIEW, 1, f"does not list {page}"


def findings_of(root):
    """Every difference, as (file, line, text)."""
    if not (root / CHINESE_README).exists():
        yield README, 1, f"there is no {CHINESE_README}"
    for english, chinese in pairs_of(root):
        yield from Comparison(root, english, chinese).findings()
    yield from overview_findings(root)


def main():
    findings = list(findings_of(ROOT))
    for page, line, text in findings:
        print(f"{page}:{line}: error: {text}", file=sys.stderr)
    print(f"translations: {len(pairs_of(ROOT))} pages compared, {len(findings)} errors")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
