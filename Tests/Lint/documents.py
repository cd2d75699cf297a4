"""Pages: every relative link leads somewhere, every file and test that a page names exists, and lines and words are as agreed."""

import re
import subprocess

from words import words_in_page

COLUMNS = 120

# A link with its target, or the definition of a label that links use.
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: +(\S+)$", re.MULTILINE)
USED = re.compile(r"\[([^\[\]]+)\]\[([^\]]*)\]")
DEFINED = re.compile(r"^\[([^\]]+)\]: ", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
SPAN = re.compile(r"`((?:[^`\n]|\n(?!\n))+)`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?:Sources|Plugins|Tests|\.tools|\.ci)/[\w./+*-]*[\w/*]")
SENTENCE = re.compile(r"(?!martlet )[A-Za-z][\w']*(?:[ ,:;-]+[\w'().:=-]+){3,}")
# The pages on which such a sentence is always the name of a test.
TELLS_TESTS = re.compile(r"(?:^|/)(?:Decisions/[^/]*|ThreatModel|Replication)\.md$")
TEST = re.compile(r"func `([^`]+)`")
FILE = re.compile(r"[\w+-]+(?:/[\w+-]+)*\.(?:swift|md|py|yaml)")
# Names of files that readers have, or will create.
THEIRS = {"config.yaml"}


def check_documents(root, pages=None):
    """Findings about every page, as (file, line, rule, text). `pages` defaults to those that git lists."""
    files = listed(root)
    names = {}
    for file in files:
        names.setdefault(file.rsplit("/", 1)[-1], []).append(file)
    tests = {
        name for file in files if file.startswith("Tests/") and file.endswith(".swift")
        for name in TEST.findall((root / file).read_text(encoding="utf-8"))
    }
    for page in pages if pages is not None else sorted(file for file in files if file.endswith(".md")):
        text = (root / page).read_text(encoding="utf-8")
        prose = FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
        yield from check_links(root, page, prose)
        yield from check_names(root, page, prose, names, tests)


def check_prose(root, page):
    """Findings about the width of lines and about words. Tables and fenced blocks may be wider: they cannot be wrapped."""
    text = (root / page).read_text(encoding="utf-8")
    prose = FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    for number, line in enumerate(prose.split("\n"), 1):
        if len(line) > COLUMNS and not line.lstrip().startswith("|") and " " in line.strip()[:COLUMNS]:
            yield page, number, "page-width", f"{len(line)} columns; at most {COLUMNS}"
    for line, rule, found in words_in_page(prose):
        yield page, line, rule, found


def listed(root):
    """The files of the work tree that git does not ignore; without git all except build products."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")
    if found == [""]:
        found = [path.relative_to(root).as_posix() for path in root.rglob("*")]
        found = [file for file in found if not file.startswith((".build", ".git/"))]
    return [file for file in found if file and (root / file).is_file()]


def check_links(root, page, prose):
    for match in LINK.finditer(prose):
        target = match.group(1) or match.group(2)
        if re.match(r"[a-z]+:", target):
            continue
        line = prose.count("\n", 0, match.start()) + 1
        path, _, fragment = target.partition("#")
        linked = (root / page).parent / path if path else root / page
        if not linked.exists():
            yield page, line, "link", f"'{target}' does not exist"
        elif fragment and fragment not in anchors(linked):
            yield page, line, "link", f"'{target}' names a heading that does not exist"
    yield from check_labels(page, SPAN.sub(lambda match: "\n" * match.group(0).count("\n"), prose))


def check_labels(page, prose):
    """Every label that a link uses is defined, and every one that is defined is used."""
    used = {match.group(2) or match.group(1): match.start() for match in USED.finditer(prose)}
    defined = {match.group(1): match.start() for match in DEFINED.finditer(prose)}
    for one, text in ((used, "is the label of no link"), (defined, "is a label that is not used")):
        for label in one.keys() - (defined if one is used else used).keys():
            yield page, prose.count("\n", 0, one[label]) + 1, "link", f"'{label}' {text}"


def anchors(path):
    """The anchors of headings, as the usual renderers generate them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def check_names(root, page, prose, names, tests):
    for match in SPAN.finditer(prose):
        span, line = " ".join(match.group(1).split()), prose.count("\n", 0, match.start()) + 1
        if "…" in span or "<" in span or PLACEHOLDER.search(span):
            continue
        if PATH.fullmatch(span):
            if not exists(root, span):
                yield page, line, "file-named", f"'{span}' does not exist"
        elif TELLS_TESTS.search(page) and SENTENCE.fullmatch(span):
            if span not in tests:
                yield page, line, "test-named", f"there is no test '{span}'"
        elif FILE.fullmatch(span) and span not in THEIRS:
            last = span.rsplit("/", 1)[-1]
            if not any(("/" + file).endswith("/" + span) for file in names.get(last, [])):
                yield page, line, "file-named", f"there is no file '{span}'"


# The provider that the reader of the guide writes.
PLACEHOLDER = re.compile(r"PartnerProvider")


def exists(root, path):
    if "*" in path:
        return any(root.glob(path))
    return (root / path).exists()
