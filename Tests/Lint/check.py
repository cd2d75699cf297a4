#!/usr/bin/env python3
"""Checks the house rules over the whole package and its pages, and prints every finding as `file:line: error: text [rule]`."""

import json
import pathlib
import subprocess
import sys

from binaries import check_binaries
from documents import check_documents
from rules import check_package
from swift_source import SwiftSource


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    dump = subprocess.run(
        ["swift", "package", "dump-package", "--package-path", str(root)], capture_output=True, text=True
    )
    if dump.returncode != 0:
        sys.stderr.write(dump.stderr)
        return 1
    package = json.loads(dump.stdout[dump.stdout.index("{"):])
    findings = check_package(root, package, lambda path: SwiftSource(path.read_text(encoding="utf-8")))
    findings += check_binaries(root)
    findings += check_documents(root)
    for file, line, rule, text in findings:
        print(f"{file}:{line}: error: {text} [{rule}]")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
