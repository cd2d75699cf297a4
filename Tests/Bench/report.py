"""The output of a run: the tables on the terminal and as Markdown, everything as JSON, and the plots."""

import json
import shutil
import textwrap

import machine
import plots
from bench import KEPT, ROOT

COMMITTED = ROOT / "Tests/Bench/results"
GROWTH = "growth.md"
FILES = ("results.md", "cpu.svg", "latency.svg")


def table(head, lines):
    """A Markdown table whose columns are aligned in a terminal too."""
    cells = [[str(cell).replace("|", "/").replace("\n", " ") for cell in line] for line in [head, *lines]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def verification(lines):
    """Whether the verifying candidates verify, one line for each."""
    cases = next((list(findings) for _, findings, _ in lines if findings), [])
    rows = []
    for name, findings, reason in lines:
        if findings is None:
            rows.append([name, *["–"] * len(cases), reason])
        else:
            rows.append([name, *[findings.get(case, ("–", False))[0] for case in cases], reason or "verifies"])
    return table(["Candidate", *cases, "Result"], rows) + "\n"


def results(rows):
    return table(
        ["Row", "Martlet", "Best peer", "Ratio: median (best, worst)", "Bar", "Result"],
        [[row.title, row.martlet, row.peer, row.ratio_text, row.bar, row.result] for row in rows])


def machine_text(facts):
    return (
        f"{facts['date']}; {facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']}; {facts['martlet']}")


def write_growth(folder, binary, text):
    """Prints how cost grows and writes it to a folder."""
    print(text)
    (folder / GROWTH).write_text(f"{machine_text(machine.facts(binary))}.\n\n{text}\n", encoding="utf-8")


def markdown(facts, options, checked, rows):
    about = (
        f"{machine_text(facts)}; {facts['nginx']}; {facts['haproxy']}; {facts['openssl']}. "
        f"{options.rounds} rounds of {options.seconds} s.")
    notes = "".join("\n" + wrapped(f"* {row.title}: {row.note}", "  ") for row in rows if row.note)
    return f"{wrapped(about)}\n\n{results(rows)}\n{notes}\n\nVerification:\n\n{verification(checked)}"


def write(folder, bench, checked, rows):
    """Prints the table and writes it with the plots to a folder."""
    facts = machine.facts(bench.binary)
    print(results(rows))
    for row in rows:
        if row.note:
            print(f"  {row.title}: {row.note}")
    (folder / "results.md").write_text(markdown(facts, bench.options, checked, rows), encoding="utf-8")
    everything = {
        "facts": facts, "rounds": bench.rounds, "seconds": bench.seconds, "asked": bench.options.rows,
        "rows": [
            {"title": row.title, "martlet": row.martlet, "peer": row.peer, "ratio": row.ratio, "bar": row.bar,
             "met": row.met, "note": row.note, "figures": row.figures} for row in rows],
        "checks": {name: findings or reason for name, findings, reason in checked},
    }
    (folder / "results.json").write_text(json.dumps(everything, indent=1, ensure_ascii=False), encoding="utf-8")
    if bench.by_candidate:
        (folder / "cpu.svg").write_text(plots.bars(
            "CPU per request, one known token (µs, less is better)", bench.by_candidate), encoding="utf-8")
    if bench.by_percentile:
        (folder / "latency.svg").write_text(plots.lines(
            "Latency at 2,000 requests per second (µs, less is better)", bench.by_percentile), encoding="utf-8")


def publish(names):
    """Copies the output of the last run to the committed folder, if it has all rows, and the last measurement of growth."""
    try:
        asked = json.loads((KEPT / "results.json").read_text(encoding="utf-8"))["asked"]
    except (OSError, ValueError, KeyError):
        asked = []
    missing = [name for name in names if name not in asked] + [name for name in FILES if not (KEPT / name).exists()]
    if missing:
        print(f"bench: the last run has no {', '.join(missing)}; run the whole table first")
        return 1
    COMMITTED.mkdir(exist_ok=True)
    for name in [*FILES, *([GROWTH] if (KEPT / GROWTH).exists() else [])]:
        shutil.copy(KEPT / name, COMMITTED / name)
        print(COMMITTED / name)
    return 0
