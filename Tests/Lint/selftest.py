#!/usr/bin/env python3
"""Shows that every rule can fail: a tree with one violation of each kind, each of which must be reported, and no more."""

import pathlib
import subprocess
import sys
import tempfile

import binaries
import documents
from rules import check_package
from swift_source import SwiftSource

ROOT = pathlib.Path(__file__).resolve().parents[2]

PACKAGE = {
    "targets": [
        {"name": "MartletCore", "dependencies": []},
        {"name": "MartletIO", "dependencies": [{"byName": ["MartletCore", None]}]},
        {"name": "MartletProvider", "dependencies": [{"byName": ["MartletCore", None]}]},
        {"name": "MartletSession", "dependencies": []},
        {"name": "Good", "path": "Sources/Good", "dependencies": [{"target": ["MartletCore", None]}]},
        {"name": "Bad", "path": "Sources/Bad", "dependencies": []},
        {
            "name": "BadProvider", "path": "Plugins/BadProvider",
            "dependencies": [{"byName": ["MartletIO", None]}, {"byName": ["MartletProvider", None]}],
        },
        {
            "name": "BundledProviders", "path": "Plugins/BundledProviders",
            "dependencies": [{"byName": ["MartletCore", None]}, {"byName": ["BadProvider", None]}],
        },
    ]
}

FILES = {
    "Sources/Good/Good.swift": '''
package import MartletCore
import FoundationEssentials

/// Says what it is.
@frozen
public struct Good: Hashable {
    public let name: String
    public init(name: String) { self.name = name }
    /// Everything here only looks wrong: try! as! fatalError() in comments and texts, `!` as an operator.
    public func same(_ other: Good) -> Bool {
        let text = "try! x as! Y! fatalError() \\(name != other.name ? "a!" : "b!")" + #"\\(c)! "d"!"#
        let long = """
            nonisolated(unsafe) import Foundation!
            """
        return !text.isEmpty && name != other.name && !long.isEmpty
    }
    public static func == (left: Good, right: Good) -> Bool { left.name == right.name }
    // The lock above is the only way in.
    nonisolated(unsafe) private static let proven = 1
}
''',
    "Sources/Bad/Import.swift": "import MartletCore\n",
    "Sources/Bad/Foundation.swift": "private import Foundation\n",
    "Sources/Bad/Long.swift": "//\n" * 601,
    "Sources/Bad/Function.swift": "func long() {\n" + "    work()\n" * 60 + "}\n",
    "Sources/Bad/Initialiser.swift": "struct A {\n    init?(\n        a: Int\n    ) {\n" + "        work()\n" * 60 + "    }\n}\n",
    "Sources/Bad/ForceTry.swift": "let a = try! work()\n",
    "Sources/Bad/ForceCast.swift": "let a = b as! Int\n",
    "Sources/Bad/FatalError.swift": "func a() { fatalError(\"no\") }\n",
    "Sources/Bad/ForceUnwrap.swift": 'let a = "\\(b!)"\n',
    "Sources/Bad/Unchecked.swift": "final class A: @unchecked Sendable {}\n",
    "Sources/Bad/Documentation.swift": "\npublic struct A {\n    /// Works.\n    package func a() {}\n    let b = 1\n}\n",
    "Sources/Bad/Documentation2.swift": "struct A {\n    package static func a() {}\n}\n",
    "Plugins/BadProvider/Import.swift": "import MartletProvider\nimport MartletIO\n",
    "Plugins/BundledProviders/Import.swift": "import BadProvider\nimport MartletCore\n",
    "Sources/MartletSession/Difference.swift": (
        "let a = b - 1\nlet a = b.count - c\nlet a = b - c.count\nlet a = b &- c\nlet a = b - c\nlet a = -b\n"
    ),
    "Sources/MartletIO/Difference.swift": "let a = b - c\n",
    "Sources/MartletIO/Fine.swift": "final class A: @unchecked Sendable {}\n",
}

EXPECTED = {
    ("Sources/Bad/Import.swift", 1, "import-declared"),
    ("Sources/Bad/Foundation.swift", 1, "no-foundation"),
    ("Sources/Bad/Long.swift", 601, "file-size"),
    ("Sources/Bad/Function.swift", 1, "function-size"),
    ("Sources/Bad/Initialiser.swift", 2, "function-size"),
    ("Sources/Bad/ForceTry.swift", 1, "no-force-try"),
    ("Sources/Bad/ForceCast.swift", 1, "no-force-cast"),
    ("Sources/Bad/FatalError.swift", 1, "no-fatal-error"),
    ("Sources/Bad/ForceUnwrap.swift", 1, "no-force-unwrap"),
    ("Sources/Bad/Unchecked.swift", 1, "unchecked-concurrency"),
    ("Sources/MartletSession/Difference.swift", 5, "unchecked-difference"),
    ("Sources/Bad/Documentation.swift", 2, "documentation"),
    ("Sources/Bad/Documentation2.swift", 2, "documentation"),
    ("Plugins/BadProvider/Import.swift", 2, "plugin-import"),
    ("Plugins/BundledProviders/Import.swift", 2, "plugin-import"),
}

UNFORMATTED = "/// Says two things. In one summary.\nstruct  A{\n  let b=1\n}\n"


def rules_fail(folder):
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = check_package(folder, PACKAGE, lambda path: SwiftSource(path.read_text(encoding="utf-8")))
    found = {(file, line, rule) for file, line, rule, _ in found}
    for missing in sorted(EXPECTED - found):
        yield f"not reported: {missing}"
    for extra in sorted(found - EXPECTED):
        yield f"reported without cause: {extra}"


def format_fails(folder):
    path = folder / "Unformatted.swift"
    path.write_text(UNFORMATTED, encoding="utf-8")
    command = ["swift", "format", "lint", "--strict", "--configuration", str(ROOT / ".swift-format"), str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    for rule in ("Indentation", "Spacing", "BeginDocumentationCommentWithOneLineSummary"):
        if result.returncode == 0 or f"[{rule}]" not in result.stderr:
            yield f"not reported by swift format: {rule}"


def sizes_fail(folder):
    path = folder / ".build-release/release/martlet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\0" * (binaries.LIMIT + 1))
    if [finding[2] for finding in binaries.check_binaries(folder)] != ["binary-size"]:
        yield "not reported: binary-size"


PAGE = """# A page
[here](#a-page) [there](Decisions/001.md) [out](https://example.com/) `Tests/Kept.swift` `Kept.swift` `config.yaml`
[gone](Gone.md)
[heading](#another)
`Tests/Gone.swift`
`Gone.swift`
```
[not](a-link.md)
```
"""
DECISION = """Held by `keeps every word
of it` and
`keeps no word of it`.
"""


def documents_fail(folder):
    (folder / "Decisions").mkdir()
    (folder / "Tests").mkdir()
    (folder / "Page.md").write_text(PAGE, encoding="utf-8")
    (folder / "Decisions/001.md").write_text(DECISION, encoding="utf-8")
    (folder / "Tests/Kept.swift").write_text("@Test func `keeps every word of it`() {}\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    found = [finding[:3] for finding in documents.check_documents(folder)]
    expected = [
        ("Decisions/001.md", 3, "test-named"), ("Page.md", 3, "link"), ("Page.md", 4, "link"),
        ("Page.md", 5, "file-named"), ("Page.md", 6, "file-named"),
    ]
    if sorted(found) != expected:
        yield f"documents: reported {sorted(found)}"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        failures = [*rules_fail(folder), *format_fails(folder), *sizes_fail(folder)]
    with tempfile.TemporaryDirectory() as name:
        failures += documents_fail(pathlib.Path(name))
    for failure in failures:
        print(f"Tests/Lint/selftest.py: error: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
