#!/usr/bin/env python3
"""Checks the project's rules over the whole package and its pages, and prints every finding as `file:line: error: text [rule]`.

    Tests/Lint/check.py             what `make lint` does
    Tests/Lint/check.py --counts    how many findings each module has under the rules of modules.py, enforced there or not
    Tests/Lint/check.py --all TEXT  the findings under these rules in files whose path contains TEXT
"""

import collections
import functools
import json
import pathlib
import subprocess
import sys

from binaries import check_binaries
from documents import check_documents, check_prose, listed
from limits import check_request_path, check_types
from modules import ENFORCED, is_enforced, module_of
from published import check_published
from reasons import check_reasons
from rules import check_package
from swift_source import SwiftSource
from words import words_in_swift

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def read(path):
    return SwiftSource(path.read_text(encoding="utf-8"))


def check_newer(root):
    """Findings under the rules of modules.py, enforced or not."""
    files = listed(root)
    sources = [
        (file, read(root / file)) for file in sorted(files)
        if file.endswith(".swift") and file.startswith(("Sources/", "Plugins/", "Tests/"))
    ]
    yield from check_types((file, source) for file, source in sources if not file.startswith("Tests/"))
    for file, source in sources:
        for line, rule, text in (*words_in_swift(source), *check_request_path(file, source)):
            yield file, line, rule, text
    for file in sorted(file for file in files if file.endswith(".md")):
        yield from check_prose(root, file)


def main(arguments):
    newer = list(check_newer(ROOT))
    if arguments[:1] == ["--counts"]:
        return print_counts(newer)
    if arguments[:1] == ["--all"]:
        return print_findings([one for one in newer if all(text in one[0] for text in arguments[1:])])
    dump = subprocess.run(
        ["swift", "package", "dump-package", "--package-path", str(ROOT)], capture_output=True, text=True
    )
    if dump.returncode != 0:
        sys.stderr.write(dump.stderr)
        return 1
    package = json.loads(dump.stdout[dump.stdout.index("{"):])
    findings = check_package(ROOT, package, read)
    findings += check_binaries(ROOT)
    findings += check_documents(ROOT)
    findings += check_reasons(ROOT, listed(ROOT))
    findings += check_published(ROOT)
    findings += [one for one in newer if is_enforced(one[2], one[0])]
    return print_findings(findings)


def print_findings(findings):
    for file, line, rule, text in findings:
        print(f"{file}:{line}: error: {text} [{rule}]")
    return 1 if findings else 0


def print_counts(findings):
    rules = list(ENFORCED)
    counts = collections.Counter((module_of(file), rule) for file, _, rule, _ in findings)
    print(f"{'module':24}" + "".join(f"{rule:>19}" for rule in rules))
    for module in sorted({module for module, _ in counts}):
        print(f"{module:24}" + "".join(f"{counts[module, rule]:>19}" for rule in rules))
    print(f"{'all':24}" + "".join(f"{sum(counts[key] for key in counts if key[1] == rule):>19}" for rule in rules))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
