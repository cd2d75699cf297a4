"""Compares a response with what a row expects."""

import re

# What a row may expect besides the status and headers.
OTHERS = ("location", "upstream", "upstream_path", "lands")


class Seen:
    """What a request led to: the status, where a browser is sent, and the request as the upstream got it.

    For a check, which has no upstream here, the fields are those of the response, which the proxy forwards."""

    def __init__(self, status, fields, location=None, upstream=None, path=None, lands=None):
        self.status, self.location, self.lands = status, location, lands
        self.upstream, self.upstream_path = upstream, path
        self.fields = {}
        for name, value in fields:
            self.fields.setdefault(name.lower(), []).append(value)

    def header(self, name):
        """The values as one text; an empty one is none: the proxy removes the client's with it."""
        values = [one for one in self.fields.get(name.lower(), ()) if one]
        return ", ".join(values) if values else None


def differences(expected, seen):
    """What is not as expected, as texts."""
    if expected.get("status", seen.status) != seen.status:
        yield f"expected {expected['status']}, got {seen.status}"
        return
    for name, wanted in expected.get("headers", {}).items():
        found = seen.header(name)
        if not is_same(wanted, found):
            yield f"expected {name} {shown(wanted)}, got {shown(found)}"
    for name in OTHERS:
        if name in expected and not is_same(expected[name], getattr(seen, name)):
            yield f"expected {name} {shown(expected[name])}, got {shown(getattr(seen, name))}"


def is_same(wanted, found):
    if isinstance(wanted, dict):
        return found is not None and re.fullmatch(wanted["matches"], found) is not None
    return wanted == found


def shown(value):
    return "none" if value is None else f"like {value['matches']}" if isinstance(value, dict) else repr(value)


def row_differences(row, seen):
    """Those of the gateway, and where a difference on purpose is none any more."""
    found = list(differences(row, seen))
    if not found and "original" in row and not list(differences(row["original"], seen)):
        found.append("does what the original does, but the row says that it differs")
    return found


def changed(row):
    """The row with one expectation changed, for each of them: none of these may be met."""
    yield {**row, "status": 200 if row["status"] != 200 else 401}
    for name, wanted in row.get("headers", {}).items():
        other = "another" if wanted is None else {"matches": "(?!x)x"} if isinstance(wanted, dict) else None
        for value in (other, "x" + wanted) if isinstance(wanted, str) else (other,):
            yield {**row, "headers": {**row["headers"], name: value}}
    for name in OTHERS:
        if name in row:
            yield {**row, name: "another"}
    if "original" in row:
        yield {**row, "original": {name: row[name] for name in ("status", "headers", *OTHERS) if name in row}}
