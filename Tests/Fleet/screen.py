"""What the terminal shows: one screen that is refreshed, or one line a second where it is no terminal."""

import counting

CLEAR = "\x1b[H\x1b[2J"
WATCHED = {
    "failures": "martlet_redis_failures_total", "nodes": "martlet_redis_nodes", "reconnects": "martlet_redis_reconnects_total",
    "unreplicated": "martlet_store_unreplicated_total", "repeated": "martlet_store_repeated_total",
    "accounts": "martlet_accounts_failures_total",
}


def number(value):
    return "-" if value is None else f"{value:.0f}"


def names(outcomes):
    return ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())) or "none"


def kind_lines(windows, totals):
    yield f"{'a second':16}{'ok':>7}{'503':>6}{'p50 ms':>9}{'p99 ms':>9}   failures of this second | since the start"
    for kind in sorted(totals):
        if kind == "idle":
            continue
        window = windows.get(kind, counting.Window())
        yield (f"{kind:16}{window.outcomes['ok']:7}{window.outcomes['503']:6}{window.p50 * 1000:9.1f}"
               f"{window.p99 * 1000:9.1f}   {names(window.failures)} | {names(totals[kind].failures)}")


def sums(totals):
    """The kinds of a whole run."""
    yield f"{'in all':16}{'ok':>9}{'503':>7}{'p50 ms':>9}{'p99 ms':>9}   failures"
    for kind, window in sorted(totals.items()):
        if kind != "idle":
            yield (f"{kind:16}{window.outcomes['ok']:9}{window.outcomes['503']:7}{window.p50 * 1000:9.1f}"
                   f"{window.p99 * 1000:9.1f}   {names(window.failures)}")


def whole(state, windows, totals, revoked, accepted, violations, lost, said):
    """The screen's text; `state` is what was seen of nodes and instances a second ago at most."""
    lines = ["nodes      " + "  ".join(f"{name} {role}" for name, role in state["nodes"])]
    for name, ready, metrics in state["instances"]:
        values = "  ".join(f"{word} {number(counting.total(metrics, key))}" for word, key in WATCHED.items())
        lines.append(f"{name:10} {ready}   {values}")
    lines += ["", *kind_lines(windows, totals), ""]
    lines.append(f"revoked {revoked}, accepted later than 1 s {accepted}, beyond the bound {violations}; logins lost {lost}")
    lines += ["", *said[-8:]]
    return "\n".join(lines)


def short(second, state, windows):
    """One line of a second."""
    ok = sum(window.outcomes["ok"] for window in windows.values())
    later = sum(window.outcomes["503"] for window in windows.values())
    failures = sum((window.failures and sum(window.failures.values())) or 0 for window in windows.values())
    worst = max((window.p99 for kind, window in windows.items() if kind == "session"), default=0.0)
    masters = ",".join(name for name, role in state["nodes"] if role in ("master", "primary"))
    wrong = ",".join(f"{name} {role}" for name, role in state["nodes"] if role not in ("master", "slave", "primary", "replica"))
    return (f"{second:5.0f} s  ok {ok:5}  503 {later:4}  failed {failures:3}  p99 {worst * 1000:7.1f} ms  "
            f"masters {masters}{'  ' + wrong if wrong else ''}")
