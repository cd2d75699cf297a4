"""The output of a run: the tables on the terminal and as Markdown, everything as JSON, and the plots."""

import json

import install
import machine
import plots
import publication
from publication import table, wrapped

# The names in the plot of cost by connections.
SCALED = {"Martlet": "Martlet", "floor": "copies bytes only", "nginx": "nginx"}


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


def machine_text(facts, source):
    return (
        f"Commit {source['commit']}, {facts['date']}; {facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']}; "
        f"{facts['martlet']}")


def about(facts, bench):
    return (
        f"{machine_text(facts, bench.source)}; {', '.join(facts['beside'])}. {bench.rounds} rounds of {bench.seconds} s.")


def write_growth(folder, bench, text):
    """Prints how cost grows and writes it to a folder."""
    said = f"{machine_text(machine.facts(bench.binary), bench.source)}."
    print(text)
    (folder / "growth.md").write_text(f"{wrapped(said)}\n\n{text}\n", encoding="utf-8")
    (folder / "growth.json").write_text(
        json.dumps({**bench.source, "about": said, "table": text}, indent=1, ensure_ascii=False), encoding="utf-8")


def markdown(said, checked, rows):
    notes = "".join("\n" + wrapped(f"* {row.title}: {row.note}", "  ") for row in rows if row.note)
    return f"{wrapped(said)}\n\n{results(rows)}\n{notes}\n\nVerification:\n\n{verification(checked)}"


def write(folder, bench, checked, rows):
    """Prints the table and writes it with the plots to a folder."""
    if bench.options.again:
        return write_again(folder, bench, rows)
    facts = {**machine.facts(bench.binary), "beside": install.versions()}
    print(results(rows))
    for row in rows:
        if row.note:
            print(f"  {row.title}: {row.note}")
    said = about(facts, bench)
    (folder / "results.md").write_text(markdown(said, checked, rows), encoding="utf-8")
    everything = {
        **bench.source, "about": said, "facts": facts, "rounds": bench.rounds, "seconds": bench.seconds,
        "asked": bench.options.rows, "is_compared": bench.options.beside is not None,
        "rows": [kept(row) for row in rows],
        "by_connections": bench.by_connections, "verification": verification(checked),
        "checks": {name: findings or reason for name, findings, reason in checked},
    }
    (folder / "results.json").write_text(json.dumps(everything, indent=1, ensure_ascii=False), encoding="utf-8")
    for name, plot in drawn(bench).items():
        # One of an earlier run would be published as if it were of this one.
        (folder / name).unlink(missing_ok=True)
        if plot:
            (folder / name).write_text(plot, encoding="utf-8")


def kept(row):
    """What is kept of a row."""
    return {
        "title": row.title, "martlet": row.martlet, "peer": row.peer, "ratio": row.ratio, "ratio_text": row.ratio_text,
        "bar": row.bar, "met": row.met, "note": row.note, "is_public": row.is_public, "figures": row.figures}


def write_again(folder, bench, rows):
    """Puts rows into the last run in the place of those that could not be measured in it.

    :raises Unavailable: for a run of other sources, or one that measured them."""
    path = folder / "results.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    names = bench.options.rows
    missing = [number for number, row in enumerate(run["rows"]) if row["title"] in names]
    if publication.differ(run["commit"]) or bench.source["unpublishable"] or len(missing) != len(names):
        raise machine.Unavailable("the last run is of other sources, or has these rows")
    print(results(rows))
    start = missing[0]
    run["rows"] = [row for row in run["rows"] if row["title"] not in names]
    run["rows"][start:start] = [kept(row) for row in rows]
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False), encoding="utf-8")


def drawn(bench):
    """The plots by the names of their files; None where their row was not measured."""
    scaled = {
        said: {number: costs[name] for number, costs in bench.by_connections.items()} for name, said in SCALED.items()}
    return {
        "cpu.svg": bench.by_candidate and plots.bars(
            "CPU per request, one known token (µs, less is better)", bench.by_candidate),
        "latency.svg": bench.by_percentile and plots.percentiles(
            "Latency at 2,000 requests per second (µs, less is better)", bench.by_percentile),
        "connections.svg": bench.by_connections and plots.by_number(
            "CPU per request by connections (µs, less is better)", scaled),
    }
