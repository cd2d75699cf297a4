"""Tables of reasons: each reason says why it is there, each one that is named is in the code, and each of the code stands on a page.

A rejection protects from a threat, is demanded by a specification (MUST), or resolves an ambiguity. One that does none of these
should not be there, so the last column, `Why`, is never empty.
"""

import re

# The parts of codes whose every literal in the modules below is the reason of a rejection.
ROOMS = (
    "api_key|auth|browser|check|client_cert|digest|dpop|policy|redirect|request|route|router|session|signature|signin|upstream"
)
COMMANDS = ("Sources/MartletCommands/", "Sources/MartletEvents/", "Sources/MartletServer/", "Sources/MartletSimulators/")
# Families that stand for all of their reasons; the others only point to the table of another page.
WHOLE = re.compile(r"\w+\.\w+_…|(?:dpop|json|tls|http2|tunnel)\.…")
NAMED = re.compile(r"`([a-z0-9_]+\.[a-z0-9_…]+)`")
LAST = re.compile(r'(?:"|\.)([a-z0-9_]+)"')
CODE = re.compile(rf'"((?:{ROOMS})\.[a-z0-9_]+)"')
CASES = re.compile(r"^\s*case ([A-Za-z0-9, ]+)", re.MULTILINE)


def check_reasons(root, files):
    """Findings about tables of reasons, as (file, line, rule, text)."""
    sources = {
        file: (root / file).read_text(encoding="utf-8") for file in files
        if file.endswith(".swift") and file.startswith(("Sources/", "Plugins/"))
    }
    known, named, families = words_of(sources.values()), set(), set()
    for page in sorted(file for file in files if file.endswith(".md") and "/Decisions/" not in file):
        text = (root / page).read_text(encoding="utf-8")
        named.update(NAMED.findall(text))
        for line, cells, is_head in rows(text.split("\n")):
            if is_head and cells[-1] != "Why":
                yield page, line, "reason-why", "a table of reasons ends with the column 'Why'"
            elif not is_head and not re.search(r"\w", cells[-1]):
                yield page, line, "reason-why", f"{cells[0]} has no threat, MUST or ambiguity in the column 'Why'"
            for code in NAMED.findall(" ".join(cells[:-1])):
                families.add(code)
                if "…" not in code and code.partition(".")[2] not in known and is_code(cells, code):
                    yield page, line, "reason-named", f"'{code}' is no reason of the code"
    prefixes = tuple(family[:-1] for family in families if WHOLE.fullmatch(family))
    for file, text in sources.items():
        if not file.startswith(COMMANDS):
            for code in sorted(set(CODE.findall(text)) - named):
                if not code.startswith(prefixes):
                    line = text.count("\n", 0, text.index(f'"{code}"')) + 1
                    yield file, line, "reason-named", f"'{code}' stands on no page"


def is_code(cells, code):
    """Whether the name stands in the cell of the reasons, and not as a key in another one."""
    return any(f"`{code}`" in cell for cell in (cells[0], *cells[2:-1]) if cell.startswith("`"))


def rows(lines):
    """The rows of a page's tables of reasons: the number of the line, its cells, and whether it is the head."""
    inside = False
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("| ") else []
        below = lines[number] if number < len(lines) else ""
        if cells and below.startswith("|---"):
            inside = cells[0] == "Reason" or "Reason in the log" in cells or cells[:2] == ["Code", "Status"] or (
                cells[0] == "`code`" and "Reason" in cells)
            if inside:
                yield number, cells, True
        elif inside and cells:
            yield number, cells, False
        elif not line.startswith("|"):
            inside = False


def words_of(texts):
    """Everything that could follow the dot of a code: how literals end, and the names of cases in snake case."""
    found = set()
    for text in texts:
        found.update(LAST.findall(text))
        for names in CASES.findall(text):
            found.update(re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name.strip()) for name in names.split(","))
    return found
