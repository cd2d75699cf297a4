"""What is published of a run: its figures without bars, which are for the terminal, the commit that was measured, how cost
grows, and the counts of `Tests/Counts`, with which `make lint` compares them."""

import json
import pathlib
import shutil
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / ".bench"
COMMITTED = ROOT / "Tests/Bench/results"
THRESHOLDS = ROOT / "Tests/Counts/thresholds.json"
PLOTS = ("cpu.svg", "latency.svg", "connections.svg")
# What a binary is made of; pages are among the sources, and in no binary.
# What a row says that could not be measured.
NOT_MEASURED = "not measured"
SOURCES = ("Sources", "Plugins", "Package.swift", ":(exclude)*.docc/*")
COUNTS = "## Counts"
METRICS = {
    "instructions": "User instructions", "allocations": "Allocations", "references": "Retains and releases",
    "accesses": "Exclusivity checks",
}


def table(head, lines):
    """A Markdown table whose columns are aligned in a terminal too."""
    cells = [[str(cell).replace("|", "/").replace("\n", " ") for cell in line] for line in [head, *lines]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def git(*words, root=ROOT):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout.strip()


def source_of(binary, is_built=False, root=ROOT):
    """The commit of a binary, and why figures of it may not be published, if so.

    :param is_built: the binary was brought up to date with the sources for this run, whatever its age."""
    try:
        commit, changed = git("rev-parse", "--short", "HEAD", root=root), changes(root)
        committed = int(git("log", "-1", "--format=%ct", "--", *SOURCES, root=root) or 0)
    except (OSError, subprocess.CalledProcessError):
        return {"commit": "unknown", "unpublishable": "git does not know which commit was measured"}
    reason = f"uncommitted changes were measured: {changed}" if changed else ""
    if not reason and not is_built and binary.stat().st_mtime < committed:
        reason = f"{binary.name} is older than the sources of commit {commit}"
    return {"commit": commit, "unpublishable": reason}


def differ(commit, root=ROOT):
    """Whether the sources are others than those of a commit."""
    return bool(git("diff", "--name-only", commit, "--", *SOURCES, root=root))


def changes(root=ROOT):
    """The first of the sources that differ from the commit."""
    return " ".join(git("status", "--porcelain", "--", *SOURCES, root=root).split("\n")[0].split())


def counts_section():
    """The committed counts of every scenario."""
    counts = json.loads(THRESHOLDS.read_text(encoding="utf-8"))
    lines = [
        [name, f"{figures['instructions']:,}", *(f"{figures[metric]:g}" for metric in list(METRICS)[1:])]
        for name, figures in counts.items()]
    about = (
        "What `make counts` holds every change to, for one request of each scenario. These are other heads than those of the "
        "tables above, and include metrics and access log.")
    return f"{COUNTS}\n\n{wrapped(about)}\n\n{table(['Scenario', *METRICS.values()], lines)}\n"


def page(run, growth):
    """results.md of a run and of a measurement of growth, both as they were kept."""
    rows = [row for row in run["rows"] if row["is_public"]]
    notes = "".join("\n" + wrapped(f"* {row['title']}: {row['note']}", "  ") for row in rows if row["note"])
    measured = table(
        ["Row", "Martlet", "Beside", "Ratio: median (best, worst)"],
        [[row["title"], row["martlet"], row["peer"], row["ratio_text"]] for row in rows])
    return "\n\n".join([
        "# Results of the bench", wrapped(run["about"]), measured + ("\n" + notes if notes else ""),
        "## How cost grows", wrapped(growth["about"]), growth["table"],
        counts_section().rstrip("\n"), "## Verification", run["verification"].rstrip("\n")]) + "\n"


def publish(names):
    """Publishes the last run, if it has all rows, and if it and the growth are of a commit."""
    run, growth = kept("results.json"), kept("growth.json")
    reasons = [f"the last run has no {name}" for name in names if name not in run.get("asked", [])]
    reasons += [f"{row['title']} was {row['martlet']}; measure it with --again" for row in run.get("rows", [])
                if row["martlet"].startswith(NOT_MEASURED)]
    reasons += [f".bench has no {name}" for name in PLOTS if not (KEPT / name).exists()]
    if run.get("is_compared"):
        reasons.append("the last run was beside another build")
    if not growth:
        reasons.append("how cost grows was not measured (--growth)")
    reasons += [what["unpublishable"] for what in (run, growth) if what.get("unpublishable")]
    changed = changes()
    if changed:
        reasons.append(f"there are uncommitted changes: {changed}")
    for reason in dict.fromkeys(reasons):
        print(f"bench: not published: {reason}", file=sys.stderr)
    if reasons:
        return 1
    COMMITTED.mkdir(exist_ok=True)
    for name in PLOTS:
        shutil.copy(KEPT / name, COMMITTED / name)
    (COMMITTED / "results.md").write_text(page(run, growth), encoding="utf-8")
    for name in ("results.md", *PLOTS):
        print(COMMITTED / name)
    return 0


def kept(name):
    try:
        return json.loads((KEPT / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def publish_counts():
    """Renews the table of counts in what is published, which needs no run."""
    path = COMMITTED / "results.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(COUNTS + "\n")
    after = rest[rest.index("\n## ") + 1:]
    path.write_text(f"{before}{counts_section()}\n{after}", encoding="utf-8")
    print(path)
    return 0
