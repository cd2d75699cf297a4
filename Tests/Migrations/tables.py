"""The cases: for each an original configuration, the migrated one, and requests.json with what is expected.

Members of requests.json:

    about       what the case is about
    original    the names of the original's files
    host        the host of the requests
    via         direct: the gateway forwards; forwarded, original: a proxy asks it, with X-Forwarded-… or X-Original-…
    by          how users come: bearer, session (a browser that signs in), basic
    token       claims of every token; times are seconds from now
    users       by name: claims (null removes one), times, provider, by, key ("other": none of the issuer's);
                or a name and a password
    warnings    what `martlet check --strict` warns of, and why that stays
    requests    rows: as (a user), by (nothing: {token} in the path or a field is the token), method, host, path,
                send (fields, and body), browser (a navigation), return_to (of a sign-in before the request);
                then what is expected: status, headers (the upstream's, or those of the response to a check: a text,
                null for none, {"matches": …}), location, upstream (its port in martlet.yaml), upstream_path,
                lands (where a browser is after it has signed in).
                What differs from the original on purpose has `differs`, the reason, and `original`: what that does.
"""

import json

TABLE = {"about", "original", "host", "via", "by", "token", "users", "warnings", "requests"}
USER = {"claims", "times", "provider", "key", "name", "password", "by"}
EXPECTED = {"status", "headers", "location", "upstream", "upstream_path", "lands"}
ROW = {"as", "by", "method", "host", "path", "send", "browser", "return_to", "original", "differs"} | EXPECTED
VIA, BY = ("direct", "forwarded", "original"), ("bearer", "session", "basic", "nothing")


class CaseError(Exception):
    """A case that says nothing that could be checked."""


class Case:
    def __init__(self, folder):
        self.folder, self.name = folder, f"{folder.parent.name}/{folder.name}"
        try:
            self.table = json.loads((folder / "requests.json").read_text(encoding="utf-8"))
            self.text = (folder / "martlet.yaml").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CaseError(f"{self.name}: {error}") from None
        found = list(errors_of(self.table, {path.name for path in folder.iterdir()}))
        if found:
            raise CaseError("\n".join(f"{self.name}: {one}" for one in found))
        self.rows = self.table["requests"]

    def describe(self, row):
        return f"{self.name}: {row.get('method', 'GET')} {row['path']} as {row.get('as', 'a stranger')}"


def cases_of(root, chosen=()):
    folders = sorted(path.parent for path in root.glob("*/*/requests.json"))
    return [one for one in map(Case, folders) if not chosen or any(text in one.name for text in chosen)]


def errors_of(table, files):
    """What is wrong with a table itself, so that it could not fail."""
    yield from unknown(table, TABLE, "the table")
    users, rows = table.get("users", {}), table.get("requests", [])
    if not table.get("original") or not set(table["original"]) <= files:
        yield "`original` has to name files of this folder"
    if table.get("via") not in VIA or table.get("by", "nothing") not in BY:
        yield f"`via` is one of {', '.join(VIA)}, `by` of {', '.join(BY)}"
    for name, user in users.items():
        yield from unknown(user, USER, f"user {name}")
        if name not in {row.get("as") for row in rows}:
            yield f"user {name} sends nothing"
    for number, row in enumerate(rows, 1):
        yield from (f"request {number}: {text}" for text in row_errors(row, users))
    statuses = {row.get("status") for row in rows}
    if 200 not in statuses or not statuses - {200}:
        yield "there has to be a request that passes, and one that does not"
    for warning in table.get("warnings", []):
        if set(warning) != {"text", "why"} or not all(warning.values()):
            yield f"a warning has `text` and `why`: {warning}"


def row_errors(row, users):
    yield from unknown(row, ROW, "it")
    if "path" not in row or "status" not in row:
        yield "it has no `path` or no `status`"
    if "as" in row and row["as"] not in users:
        yield f"there is no user {row['as']}"
    if ("differs" in row) != ("original" in row):
        yield "`differs` and `original` belong together"
    if "original" in row:
        yield from unknown(row["original"], EXPECTED, "`original`")
        if not row["original"] or len(row["differs"]) < 20:
            yield "`original` is empty, or `differs` is no reason"


def unknown(found, known, what):
    for name in sorted(set(found) - known):
        yield f"{what} has `{name}`, which means nothing"
