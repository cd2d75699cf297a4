#!/usr/bin/env python3
"""Tests every rule on a tree with one violation of each kind: each must be reported, and nothing else."""

import json
import pathlib
import subprocess
import sys
import tempfile

import binaries
import calls
import documents
import limits
import modules
import published
import reasons
import structure
from rules import check_package
from swift_source import SwiftSource
from words import Word, words_in_page, words_in_swift

ROOT = pathlib.Path(__file__).resolve().parents[2]

PACKAGE = {
    "targets": [
        {"name": "MartletCore", "dependencies": []},
        {"name": "MartletIO", "dependencies": [{"byName": ["MartletCore", None]}]},
        {"name": "MartletProvider", "dependencies": [{"byName": ["MartletCore", None]}]},
        {"name": "MartletSession", "dependencies": []},
        {"name": "Good", "path": "Sources/Good", "dependencies": [{"target": ["MartletCore", None]}]},
        {"name": "IntegrationTests", "path": "Tests/Integration", "dependencies": []},
        {"name": "Bad", "path": "Sources/Bad", "dependencies": []},
        {"name": "BadTests", "path": "Tests/Unit/BadTests", "dependencies": []},
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
    "Sources/Bad/Prefix.swift": 'let a = "mno_"\nlet b = "mxy_"\n// "mat_" is one, too.\n',
    "Sources/Bad/OwnToken.swift": '/// The list.\npackage enum OwnToken: String { case access = "mat_" }\n',
    "Sources/Bad/Unchecked.swift": "final class A: @unchecked Sendable {}\n",
    "Sources/Bad/Mutex.swift": "let a = Mutex(0)\nlet b: Mutex<Int>\n// A Mutex(0)\nDispatchQueue.main.sync {}\nlet c = Lock(0)\n",
    "Sources/Bad/Documentation.swift": "\npublic struct A {\n    /// Works.\n    package func a() {}\n    let b = 1\n}\n",
    "Sources/Bad/Documentation2.swift": "struct A {\n    package static func a() {}\n}\n",
    "Plugins/BadProvider/Import.swift": "import MartletProvider\nimport MartletIO\n",
    "Plugins/BundledProviders/Import.swift": "import BadProvider\nimport MartletCore\n",
    "Sources/MartletSession/Difference.swift": (
        "let a = b - 1\nlet a = b.count - c\nlet a = b - c.count\nlet a = b &- c\nlet a = b - c\nlet a = -b\n"
    ),
    "Sources/MartletIO/Difference.swift": "let a = b - c\n",
    "Tests/Integration/Waiting.swift": (
        "@Suite struct `A store` {\n    @Test func `waits`() async throws {}\n}\n"
        "@Suite(.serialized) struct Blocking {\n    @Test func `blocks`() throws { work() }\n}\n"
        "@Suite struct Blockings {\n    @Test(arguments: [1])\n    func `waits, too`(_ a: Int) async {}\n}\n"
        "@Suite struct AccountTests {\n    @Test func `waits`() async {}\n}\n"
    ),
    "Tests/Unit/BadTests/Sleeping.swift": (
        "try await Task.sleep(for: .seconds(1))\nusleep(5)\nThread.sleep(forTimeInterval: 1)\nunsafe nanosleep(&a, nil)\n"
        "sleep(1)\npause(.seconds(1))\ntry await clock.sleep(until: end)\n"
        "func sleep(_ span: Duration) {}\ntime.sleep(span)\n// Task.sleep\nlet a = \"sleep(1)\"\nlet pause = 1\n"
    ),
    "test": "clients='IntegrationTests\\.(Redis'\nclients+='|`(A store)`)'\nreadonly accounts='IntegrationTests\\.Account'\n",
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
    ("Sources/Bad/Prefix.swift", 2, "token-prefix"),
    ("Sources/Bad/Prefix.swift", 3, "token-prefix"),
    ("Sources/Bad/Unchecked.swift", 1, "unchecked-concurrency"),
    ("Sources/Bad/Mutex.swift", 1, "foreign-lock"),
    ("Sources/Bad/Mutex.swift", 2, "foreign-lock"),
    ("Sources/Bad/Mutex.swift", 4, "foreign-lock"),
    ("Sources/MartletSession/Difference.swift", 5, "unchecked-difference"),
    ("Sources/Bad/Documentation.swift", 2, "documentation"),
    ("Sources/Bad/Documentation2.swift", 2, "documentation"),
    ("Tests/Integration/Waiting.swift", 9, "test-group"),
    *(("Tests/Unit/BadTests/Sleeping.swift", line, "sleeping-test") for line in range(1, 8)),
    ("Plugins/BadProvider/Import.swift", 2, "plugin-import"),
    ("Plugins/BundledProviders/Import.swift", 2, "plugin-import"),
}

UNFORMATTED = "struct  A{\n  let b=1\n}\n"


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
    for rule in ("Indentation", "Spacing"):
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
[one][kept] [two][] `[no][label]`
[three][missing]

[kept]: #a-page
[two]: Gone.md
[unused]: #a-page
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
        ("Page.md", 5, "file-named"), ("Page.md", 6, "file-named"), ("Page.md", 11, "link"), ("Page.md", 14, "link"),
        ("Page.md", 15, "link"),
    ]
    if sorted(found) != expected:
        yield f"documents: reported {sorted(found)}"


REASONS = """| Reason | Means | Why |
|---|---|---|
| `auth.one`, `auth.two_…` | one | replay |
| `auth.three` | none | – |
| `auth.gone` | none in the code | forgery |

| Reason | Means |
|---|---|
| `auth.four` | no column | 

| Key | Means |
|---|---|
| `auth.key` | no reason | 
"""
REJECTING = 'let codes = ["auth.one", "auth.two_more", "auth.three", "auth.unheard"]\nenum Other {\n    case four\n}\n'


def reasons_fail(folder):
    (folder / "Sources").mkdir()
    (folder / "Page.md").write_text(REASONS, encoding="utf-8")
    (folder / "Sources/Kept.swift").write_text(REJECTING, encoding="utf-8")
    found = [finding[:3] for finding in reasons.check_reasons(folder, ["Page.md", "Sources/Kept.swift"])]
    expected = [
        ("Page.md", 4, "reason-why"), ("Page.md", 5, "reason-named"), ("Page.md", 7, "reason-why"),
        ("Sources/Kept.swift", 1, "reason-named"),
    ]
    if found != expected:
        yield f"reasons: reported {found}"


COUNTED = {
    "apple": {"instructions": 1000, "allocations": 0.0}, "tls": {"instructions": 20000, "allocations": 7.0},
    "cors": {"instructions": 2000, "allocations": 6.0}, "new": {"instructions": 1, "allocations": 0.0},
}
PUBLISHED = """| Row | Martlet |
|---|---|
| one | 5 |

| Scenario | User instructions | Allocations |
|---|---|---|
| apple | 1,030 | 0.1 |
| tls | 19,300 | 7.2 |
| cors | 2,000 | 5.7 |
| old | 3 | 0 |

| Candidate | Result |
|---|---|
| tls | verifies |
"""
PUBLISHED_PAGE = """It has 1,020 user instructions, **1,100 user
instructions**, 19,900 user instructions (`tls`), 1,000 user instructions (`tls`), 1,000 user instructions (`none`),
900 instructions, 980 条用户指令，960 条用户态指令。
"""


def published_fails(folder):
    for name in (published.RESULTS, published.THRESHOLDS, *published.PAGES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PUBLISHED_PAGE if name == "README.md" else "", encoding="utf-8")
    (folder / published.RESULTS).write_text(PUBLISHED, encoding="utf-8")
    (folder / published.THRESHOLDS).write_text(json.dumps(COUNTED), encoding="utf-8")
    found = [(file, line, text.split("; ")[0]) for file, line, rule, text in published.check_published(folder)]
    expected = [
        (published.RESULTS, 8, f"tls: User instructions 19,300, but {published.THRESHOLDS} has 20000"),
        (published.RESULTS, 9, f"cors: Allocations 5.7, but {published.THRESHOLDS} has 6.0"),
        (published.RESULTS, 10, f"{published.THRESHOLDS} has no scenario 'old'"),
        (published.RESULTS, 1, f"scenario 'new' of {published.THRESHOLDS} is missing"),
        *(("README.md", line, f"{number} user instructions of '{scenario}', but {published.THRESHOLDS} has {figure}")
          for line, number, scenario, figure in (
              (1, "1,100", "apple", 1000), (2, "1,000", "tls", 20000), (2, "1,000", "none", None),
              (3, "960", "apple", 1000))),
    ]
    if found != expected:
        yield f"published-counts: reported {found}"


WORDS = [
    Word("answer(?:s|ed)?", "answer", "response", (r"answered_here", r"^answerKept$")), Word("at once", "", "immediately"),
    Word("", "place", "slot", (r"(?i)in_?place",)),
]
WORDY = '''
/// Says what the answer is, at
/// once. `answer` and ``Answer/answer`` are names, "answered_here" is fixed.
// An answering machine.
func place(_ sortedInPlace: Int, replace: Int, endAnswer: Int) {
    let answerKept = "answer"  // one word: a code or a key
    log("the answer is \\(endAnswer) at once")
    /* no
       answer */
}
@Test func `answers at once`() {}
'''
WORDY_EXPECTED = [
    (2, "answer"), (2, "at once"), (5, "endAnswer"), (5, "place"), (7, "answer"), (7, "at once"), (9, "answer"),
    (11, "answers"), (11, "at once"),
]
WORDY_PAGE = """The answer is `answer`, or [at once](answer.md): at
once `a
answer`.
"""


def words_fail(_):
    found = sorted((line, text.split("'")[1]) for line, _, text in words_in_swift(SwiftSource(WORDY), WORDS))
    if found != sorted(WORDY_EXPECTED):
        yield f"words: reported {found}"
    found = sorted((line, text.split("'")[1]) for line, _, text in words_in_page(WORDY_PAGE, WORDS))
    if found != [(1, "answer"), (1, "at once"), (1, "at once")]:
        yield f"words on a page: reported {found}"


def widths_fail(folder):
    lines = ["x " * 60 + "y", "x " * 59 + "y", "| " + "x " * 80, "https://" + "x" * 130, "```", "x " * 80, "```", ""]
    (folder / "Wide.md").write_text("\n".join(lines), encoding="utf-8")
    found = [finding[:3] for finding in documents.check_prose(folder, "Wide.md")]
    if found != [("Wide.md", 1, "page-width")]:
        yield f"page-width: reported {found}"


def large(properties, methods, above="", extra=""):
    """The files of a type with so many stored properties, and with so many methods in an extension of it."""
    body = "".join(f"    private var a{number}: Int\n" for number in range(properties))
    more = "".join(f"    mutating func f{number}() {{ let local = 1 }}\n" for number in range(methods))
    return [
        ("Sources/A/Large.swift", SwiftSource(f"import struct Other.Thing\n{above}package struct Large: ~Copyable {{\n{body}{extra}}}\n")),
        ("Sources/A/Large+More.swift", SwiftSource(f"extension Large {{\n{more}}}\n")),
    ]


COMPUTED = """    static let shared = 1
    var computed: Int { let local = 1; return local }
    var accessed: Int
    {
        get { 1 }
    }
    struct Inner { var a: Int, b: Int }
    func method() { var local = 2 }
"""
STORED = """    var observed: Int = 1 {
        didSet { work() }
    }
    lazy var made: (Int) -> Void = { number in work(number) }
    let pair: (Int, Int)
"""
LARGE_CASES = [
    ("as large as may be", large(20, 59, extra=COMPUTED), 0), ("a property too many", large(21, 0), 1),
    ("observed, lazy and plain ones are stored", large(17, 0, extra=STORED), 0), ("they count", large(18, 0, extra=STORED), 1),
    ("a method too many", large(0, 61), 1), ("both", large(21, 61), 2),
    ("with a reason", large(21, 61, "// lint:large-type one counter for each metric\n@frozen\n"), 0),
    ("with a marker and no reason", large(21, 0, "// lint:large-type\n"), 1),
    ("of another module", [(path.replace("/A/", "/B/") if "+" in path else path, source) for path, source in large(0, 61)], 0),
]
SIGNATURES = """
func send(_ exchange: Int32, to link: Int32) {}
func swap(first client: inout Int32, _ upstreamConnection: Int32? = nil, slots: [Int32]) {}
init(tunnel: Int32) { send(exchange: 1) }
func fine(streamID: Int32, count: Int32, exchange: Handle<Exchange>, on stream: (Int32, Int32)) -> Int32 { 0 }
subscript(slot: Int32) -> Int { let client: Int32 = 1; return 0 }
"""
SIGNATURES_EXPECTED = ["exchange", "link", "client", "upstreamConnection", "tunnel", "slot"]


def limits_fail(_):
    for name, files, count in LARGE_CASES:
        found = [finding[2] for finding in limits.check_types(files)]
        if found != ["large-type"] * count:
            yield f"large-type, {name}: reported {found}"
    found = list(limits.check_request_path("Sources/MartletProxy/A.swift", SwiftSource(SIGNATURES)))
    if [text.split("'")[1] for _, _, text in found] != SIGNATURES_EXPECTED or {rule for _, rule, _ in found} != {"bare-handle"}:
        yield f"bare-handle: reported {found}"
    for path, count, expected in (
        ("Sources/MartletProxy/A.swift", 301, ["request-path-size"]), ("Sources/MartletProxy/A.swift", 300, []),
        ("Sources/MartletCore/A.swift", 301, []), ("Tests/Unit/MartletProxyTests/A.swift", 301, []),
    ):
        found = [rule for _, rule, _ in limits.check_request_path(path, SwiftSource("//\n" * count))]
        if found != expected:
            yield f"request-path-size: {path} with {count} lines reported {found}"


CALLS = [
    ("Sources/A/Loop.swift", SwiftSource('''
struct Loop: ~Copyable {
    var table: Table, log: [String] = []
    mutating func run() { accept(1) { work() }; self.accept("text"); log.append("not the one of Table"); finish(at: .zero()) }
    private func finish() {}
    private func local() { func accept() {} }
}
''')),
    ("Sources/A/Loop+Accept.swift", SwiftSource('''
extension Loop {
    mutating func accept(_ number: Int, now: Int = 1, then: (() -> Void)? = nil) { table.append(number); run() }
    // Neither finish() nor accept(1) is called in a comment.
    func finish(at time: Table.Time) {}
}
''')),
    ("Sources/A/Table.swift", SwiftSource('''
struct Table {
    struct Time { static func zero() -> Time { Time() } }
    mutating func append(_ number: Int) { other.accept(text: "a"); numbers.append(number) }
}
struct Record { func write() { Record().write() } }
''')),
]
CALLS_EXPECTED = {
    ("Loop.swift", 3, "Table", "Table.swift"), ("Loop.swift", 4, "accept", "Loop+Accept.swift"),
    ("Loop.swift", 4, "finish", "Loop+Accept.swift"), ("Loop.swift", 4, "zero", "Table.swift"),
    ("Loop+Accept.swift", 3, "append", "Table.swift"), ("Loop+Accept.swift", 3, "run", "Loop.swift"),
    ("Loop+Accept.swift", 5, "Table", "Table.swift"), ("Loop+Accept.swift", 5, "Time", "Table.swift"),
}
# Which names mean a declaration of another file: what the file imports, what is not private, what a receiver can be.
NAMES = [
    ("Sources/Base/Store.swift", SwiftSource('''
package struct Store {
    enum Result { case kept }
    func keep(_ text: String) {}
    private func check(_ text: String) {}
}
''')),
    ("Sources/Base/Store+Step.swift", SwiftSource('''
extension Store {
    struct Step {}
    func step(_ store: Store, _ other: List) -> Result { self.check("") }
}
''')),
    ("Sources/Proxy/Edge/Imports.swift", SwiftSource('''
@preconcurrency package import Base
func a(_ part: List, _ other: Store) -> Store.Step { other.keep("") }
func b(_ part: Parts, _ item: [Store]) -> Result<Int, Never> { part.keep("") }
''')),
    ("Sources/Proxy/Inner/Bare.swift", SwiftSource('''
import Basement
struct Parts { var store: Store }
func c(_ text: Store) { text.keep(""); a(list, text) }
''')),
    ("Sources/Proxy/Inner/EventLoop.swift", SwiftSource('''
private import struct Base.Store
extension Store { func run(_ loop: inout EventLoop, then: (inout LoopState) -> Void) {} }
struct EventLoop {
    mutating func turn() { func inner() {} }
    static func c(_ store: Store, with loop:
        inout LoopState) { store.run(&self) { $0 } }
    struct Setup { func other(_ loop: borrowing LoopState, _ handle: (inout EventLoop) -> Int) {} }
}
extension Exchanges {
    func all(_ down: inout DownstreamConnections, _ up: inout UpstreamConnections, _ more: inout LoopContext) {}
    func some(_ down: inout DownstreamConnections, _ more: inout LoopContext) {}
}
''')),
]
NAMES_EXPECTED = {
    ("Store+Step.swift", 4, "Store", "Store.swift"), ("Store+Step.swift", 4, "Result", "Store.swift"),
    ("Imports.swift", 3, "Store", "Store.swift"), ("Imports.swift", 3, "Step", "Store+Step.swift"),
    ("Imports.swift", 3, "keep", "Store.swift"), ("Imports.swift", 4, "Parts", "Bare.swift"),
    ("Imports.swift", 4, "Store", "Store.swift"), ("Bare.swift", 4, "a", "Imports.swift"),
    ("EventLoop.swift", 6, "Store", "Store.swift"),
}
NAMES_TYPES = {"Proxy/EventLoop": {"Base/Store", "Proxy/Store"}, "Proxy/Store": {"Proxy/EventLoop"}}
TOTALS = [
    (CALLS, {
        "types": 4, "most methods": "5 Loop", "most files of one type": "2 Loop", "files": 3, "functions": 9,
        "cycles of files": "2", "files in cycles": 2, "cycles across folders": "none", "cycles of types": "none",
        "functions that borrow the loop": 0, "bare Int32 handles": 0,
    }),
    (NAMES, {
        "files in cycles": 2, "cycles across folders": "2", "files in cycles across folders": 2, "types in cycles": 2,
        "functions that borrow the loop": 4,
    }),
]


def calls_fail(_):
    for files, expected in ((CALLS, CALLS_EXPECTED), (NAMES, NAMES_EXPECTED)):
        found = {
            (use.file.rsplit("/", 1)[-1], use.line, use.name, use.target_file.rsplit("/", 1)[-1])
            for use in calls.uses(files) if use.file != use.target_file
        }
        if found != expected:
            yield f"calls: {sorted(found ^ expected)} differ"
    found = calls.type_graph(calls.uses(NAMES))
    if {name: found[name] for name in NAMES_TYPES} != NAMES_TYPES:
        yield f"calls: types {dict(found)}"
    found = calls.components({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}, "g": {"g", "a"}})
    if found != [["a", "b", "c"], ["d", "e"]]:
        yield f"components: {found}"
    for files, expected in TOTALS:
        totals = dict(structure.Structure(files).totals(over=10))
        for name, count in expected.items():
            if totals.get(name) != count:
                yield f"structure: '{name}' is {totals.get(name)}, not {count}"


def gate_fails(folder):
    """The gate on numbers that are equal, larger, smaller and not there, and what it commits with `--update`."""
    measured, committed = structure.Structure(NAMES), folder / "structure.json"
    equal = {name: dict(measured.totals(over=0))[name] for name in structure.GATED}
    first = structure.GATED[0]
    for name, change, update, expected, kept in (
        ("equal", {}, False, [], equal), ("risen", {first: 1}, False, [f"2 {first}"], None),
        ("risen, update", {first: 1}, True, [f"2 {first}"], None), ("fallen", {first: 9}, False, [f"2 {first}"], None),
        ("fallen, update", {first: 9}, True, [], equal), ("not there", {first: None}, False, [f"2 {first}"], None),
        ("not there, update", {first: None}, True, [], equal),
    ):
        before = {key: count for key, count in {**equal, **change}.items() if count is not None}
        committed.write_text(json.dumps(before))
        found = structure.gate(measured, committed, update)
        if [text.partition(",")[0] for text in found] != expected:
            yield f"gate, {name}: reported {found}"
        if json.loads(committed.read_text()) != (kept or before):
            yield f"gate, {name}: committed {committed.read_text()}"


def modules_fail(_):
    cases = {
        "Sources/MartletCore/A.swift": "MartletCore", "Plugins/AppleProvider/Login/A.swift": "AppleProvider",
        "Tests/Unit/MartletCoreTests/A.swift": "MartletCoreTests", "Tests/Integration/Edge/A.swift": "Integration",
        "Sources/MartletServer/Documentation.docc/TLS.md": "pages", "README.md": "pages",
    }
    for path, module in cases.items():
        if modules.module_of(path) != module:
            yield f"modules: {path} is in {modules.module_of(path)}"
    if not modules.is_enforced("file-size", "Sources/A/A.swift"):
        yield "modules: a rule that is not in the table is not enforced"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        failures = [*rules_fail(folder), *format_fails(folder), *sizes_fail(folder)]
    with tempfile.TemporaryDirectory() as name:
        failures += documents_fail(pathlib.Path(name))
        for check in (reasons_fail, published_fails, widths_fail, words_fail, limits_fail, calls_fail, gate_fails, modules_fail):
            failures += check(pathlib.Path(name))
    for failure in failures:
        print(f"Tests/Lint/selftest.py: error: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
