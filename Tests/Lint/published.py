"""What is published about instructions is what `Tests/Counts` holds every change to: a table of the bench's results, and pages."""

import json
import re

RESULTS, THRESHOLDS = "Tests/Bench/results/results.md", "Tests/Counts/thresholds.json"
PAGES = ("README.md", "README.zh-Hans.md", "Sources/MartletServer/Documentation.docc/Benchmarks.md")
TOLERANCE = 0.03
# Allocations and the like are none where none are; a batch of log lines more is no difference.
SLACK = 0.1
COLUMNS = {"User instructions": "instructions", "Allocations": "allocations", "Retains and releases": "references",
           "Exclusivity checks": "accesses"}
# A number is of the scenario in the parentheses behind it, and without them of one known Apple token.
NAMED = re.compile(r"(?<![\w.,])(\d[\d,]*)\s+(?:user\s+instructions|条用户(?:态)?指令)(?:\*\*)?(?:\s*[(（]`([^`]+)`[)）])?")
USUAL = "apple"
REMEDY = "; Tests/Bench/run --counts renews the table"


def check_published(root):
    """Findings about published counts, as (file, line, rule, text)."""
    counts = json.loads((root / THRESHOLDS).read_text(encoding="utf-8"))
    yield from check_table(counts, (root / RESULTS).read_text(encoding="utf-8"))
    for page in PAGES:
        yield from check_page(counts, page, (root / page).read_text(encoding="utf-8"))


def check_table(counts, text):
    """The table has every scenario, and the figures of each."""
    missing, columns = set(counts), []
    for line, cells in rows(text):
        if cells[0] == "Scenario":
            columns = cells
        elif cells[0] in counts:
            if "User instructions" in columns:
                missing.discard(cells[0])
            for column, cell in zip(columns[1:], cells[1:]):
                figure = counts[cells[0]].get(COLUMNS.get(column))
                if figure is None or differs(cell, figure):
                    found = f"{cells[0]}: {column} {cell}, but {THRESHOLDS} has {figure}{REMEDY}"
                    yield RESULTS, line, "published-counts", found
        else:
            yield RESULTS, line, "published-counts", f"{THRESHOLDS} has no scenario '{cells[0]}'{REMEDY}"
    for name in sorted(missing):
        yield RESULTS, 1, "published-counts", f"scenario '{name}' of {THRESHOLDS} is missing{REMEDY}"


def rows(text):
    """The rows of the table with scenarios, its head first: the number of the line, and its cells."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("| ") else []
        inside = bool(cells) and (inside or cells[0] == "Scenario") or (inside and line.startswith("|-"))
        if inside and cells:
            yield number, cells


def check_page(counts, page, text):
    for match in NAMED.finditer(text):
        number, scenario = match.group(1), match.group(2) or USUAL
        figure = counts.get(scenario, {}).get("instructions")
        if figure is None or differs(number, figure):
            line = text.count("\n", 0, match.start()) + 1
            yield page, line, "published-counts", f"{number} user instructions of '{scenario}', but {THRESHOLDS} has {figure}"


def differs(text, figure):
    try:
        return abs(float(text.replace(",", "")) - figure) > max(SLACK, figure * TOLERANCE)
    except ValueError:
        return True
