"""Changes that have to be found: a check that cannot fail checks nothing."""

import re

import comparing
import tables
from services import Failed

CONDITIONS = re.compile(r"^ +authorize:.*\n(?: +- .*\n)*", re.MULTILINE)
HEADER = re.compile(r"^( +[\w-]+: \{ claim: )(?:\w+|\[.*?\])(.*\})$", re.MULTILINE)
AUTH = re.compile(r"^( +)auth: \{ .*\}$", re.MULTILINE)
# Each configuration is changed like this, where it has the text: the change, and what is wrong with the result.
CONFIGURATIONS = (
    ("no route has conditions", lambda text: CONDITIONS.sub("", text)),
    ("no route needs a credential", lambda text: AUTH.sub(r"\1auth: { mode: optional }", CONDITIONS.sub("", text))),
    ("tokens are as good as sessions", lambda text: text.replace(", credentials: [session]", "")),
    ("users have the names of accounts",
     lambda text: text.replace("attribute: provider_subject", "attribute: subject")),
    ("headers have other claims", lambda text: HEADER.sub(r"\1other\2", text)),
)


class Changes:
    """Counts the changes, and takes down those that were not found."""

    def __init__(self, send):
        self.send, self.errors, self.count = send, [], 0

    def expect(self, found, what):
        self.count += 1
        if not found:
            self.errors.append(f"not found: {what}")

    def of_expectations(self, rows):
        """A wrong status, a wrong, a missing and an additional header, and a difference that is none."""
        for row, seen in rows:
            for changed in comparing.changed(row):
                self.expect(comparing.row_differences(changed, seen), f"{changed}")

    def of_tables(self, cases):
        """Tables that say nothing, or what no one reads."""
        for case in cases:
            files, table = {path.name for path in case.folder.iterdir()}, case.table
            passing = [row for row in table["requests"] if row["status"] == 200]
            for changed in (
                    {"requests": passing}, {"requests": []}, {"hsot": "x"}, {"original": ["x"]}, {"via": "x"},
                    {"users": {**table.get("users", {}), "x": {}}},
                    {"requests": [*table["requests"], {**passing[0], "headres": {}}]},
                    {"requests": [*table["requests"], {**passing[0], "as": "x"}]},
                    {"requests": [*table["requests"], {**passing[0], "original": {}, "differs": "a reason alone"}]},
                    {"requests": [*table["requests"], {"path": "/", "status": 200, "differs": "a reason by itself"}]}):
                found = list(tables.errors_of({**table, **changed}, files))
                self.expect(found, f"{case.name}: a table that says nothing: {sorted(changed)}")

    def of_checks(self, cases, check):
        """A configuration with an error, with a warning, and without the warning that the table has."""
        for case in cases:
            self.expect(check(case, case.text + "\nunknown: 1\n"), f"{case.name}: an unknown key")
            idle = "providers:\n  idle: { kind: oidc, preset: google, audiences: [a] }\n"
            self.expect(check(case, case.text.replace("providers:\n", idle, 1)), f"{case.name}: an unused provider")

    def of_configurations(self, cases):
        """Migrations that are wrong in one respect."""
        for case in cases:
            for what, change in CONFIGURATIONS:
                text = change(case.text)
                if text == case.text:
                    continue
                try:
                    found = any(comparing.row_differences(row, seen) for row, seen in self.send(case, text))
                    self.expect(found, f"{case.name}: {what}")
                except Failed as error:
                    self.expect(False, f"{case.name}: {what}: {error}")
