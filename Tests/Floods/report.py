"""The results of a run: which kinds each flood affected, as text and as JSON."""

import itertools

# Kinds may lose this share of their successes, and their p99 may grow by it.
SHARE = 0.10
# A p99 has grown when its rounds differ from those before by more than chance would make them in one of so many cases.
CHANCE = 1 / 20


def has_lost(before, during):
    return during.success < before.success * (1 - SHARE)


def is_slower(before, during, floor):
    was, became = before.percentile(0.99), during.percentile(0.99)
    if was is None or became is None or became <= was * (1 + SHARE) or became - was <= floor:
        return False
    return chance(before.each_round(0.99), during.each_round(0.99)) <= CHANCE


def chance(before, during):
    """How likely it is that values of the same kind differ as much: the exact rank-sum test of Wilcoxon, one-sided.

    0 where there are too few values to tell."""
    both = before + during

    def greater(chosen):
        """In how many pairs the chosen value is greater than one that was not chosen; ties count half."""
        rest = [both[index] for index in range(len(both)) if index not in chosen]
        return sum((both[index] > other) + (both[index] == other) / 2 for index in chosen for other in rest)

    found = greater(range(len(before), len(both)))
    orders = list(itertools.combinations(range(len(both)), len(during)))
    if len(orders) * CHANCE < 1:
        return 0
    return sum(greater(chosen) >= found for chosen in orders) / len(orders)


class Row:
    """One flood of one run: the results of each kind before it, at half its rate, and at its highest rate.

    Without the first two, latencies are not evaluated: at the highest rate every request waits for the machine."""

    def __init__(self, flood, mode, store, phases, made, sizes):
        self.flood, self.mode, self.store = flood, mode, store
        self.phases, self.made, self.sizes = phases, made, sizes
        self.repetition = None

    def may_feel(self, kind):
        """Whether a kind may be rejected: the flood's own one, where both have the same address, or the same key."""
        return (self.mode == "same" or self.flood.by_key) and kind in self.flood.own

    def findings(self, floor):
        """The kinds that it affected but should not have, with the effect; where the row was repeated, in both runs."""
        found = self.own_findings(floor)
        if self.repetition is None:
            return found
        again = self.repetition.own_findings(floor)
        return {kind: reason for kind, reason in found.items() if kind in again}

    def own_findings(self, floor):
        before, found = self.phases["before"], {}
        for kind in before:
            floods = [self.phases[name][kind] for name in ("half", "full") if name in self.phases]
            if any(has_lost(before[kind], during) for during in floods):
                found[kind] = "success"
            elif "half" in self.phases and is_slower(before[kind], self.phases["half"][kind], floor):
                found[kind] = "p99"
        return {kind: reason for kind, reason in found.items() if not self.may_feel(kind)}

    def facts(self, floor):
        return {
            "flood": self.flood.name, "mode": self.mode, "store": self.store, "own": list(self.flood.own), "made": self.made,
            "gateway": self.sizes, "felt": self.findings(floor),
            "phases": {
                name: {kind: results.facts() for kind, results in kinds.items()} for name, kinds in self.phases.items()},
        }

    def text(self, floor):
        found = self.findings(floor)
        lines = [f"── {self.flood.name}, {MODES[self.mode]}, store {self.store}"]
        lines += [f"   {name:6} {flood_text(made)}" for name, made in self.made.items()]
        lines.append(f"   gateway {sizes_text(self.sizes)}")
        lines.append(" " * 19 + "".join(f"{name + ': success':>20}{'median':>9}{'p99 ms':>9}" for name in self.phases))
        for kind in self.phases["before"]:
            figures = "".join(figures_text(kinds[kind]) for kinds in self.phases.values())
            lines.append(f"   {kind:16}{figures}{self.remark(kind, found)}")
        return "\n".join(lines)

    def remark(self, kind, found):
        failures = {}
        for kinds in self.phases.values():
            for reason, count in kinds[kind].failures.items():
                failures[reason] = failures.get(reason, 0) + count
        words = ["FELT: " + found[kind]] if kind in found else []
        words += ["its own"] if self.may_feel(kind) else []
        words += [f"{count}× {reason}" for reason, count in sorted(failures.items())]
        return "  " + "; ".join(words) if words else ""


MODES = {
    "same": "from the same address",
    "other": "from another network",
    "many": "from many networks, named by a proxy",
}


def flood_text(made):
    seconds = made["seconds"]
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(made["statuses"].items())) or "no responses"
    return (
        f"{made['sent']:,} sent ({made['sent'] / seconds:,.0f} a second), {statuses}; {made['connections']:,} connections, "
        f"{made['closed']:,} closed by the gateway, {made['refused']:,} not opened")


def sizes_text(sizes):
    return "; ".join(f"{when} {memory / 2**20:.0f} MiB, {files} open files" for when, (memory, files) in sizes.items())


def figures_text(results):
    return f"{results.success:>13.0%} ({results.count:>4}){milliseconds(results, 0.5)}{milliseconds(results, 0.99)}"


def milliseconds(results, share):
    value = results.percentile(share)
    return f"{'–':>9}" if value is None else f"{value:>9.1f}"


def summary(rows, floor):
    """The last lines: a mark for each flood and kind."""
    kinds = list(rows[0].phases["before"])
    width = max(len(label(row)) for row in rows) + 2
    lines = [" " * width + "".join(f"{kind:>16}" for kind in kinds)]
    for row in rows:
        found = row.findings(floor)
        lines.append(f"{label(row):{width}}" + "".join(f"{mark(row, kind, found):>16}" for kind in kinds))
    return "\n".join(lines)


def label(row):
    return f"{row.flood.name} / {row.mode} / {row.store}"


def mark(row, kind, found):
    if kind in found:
        return "FELT " + found[kind]
    lost = has_lost(row.phases["before"][kind], row.phases["full"][kind])
    return "own" if lost and row.may_feel(kind) else "·"
