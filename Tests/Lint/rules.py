"""The project's rules that neither the compiler nor `swift format` checks. Each finding is (file, line, rule, text)."""

import re

FILE_LINES = 600
FUNCTION_LINES = 60

PLUGIN_IMPORTS = {
    "MartletCore", "MartletHTTP", "MartletJSON", "MartletJOSE", "MartletCrypto", "MartletConfig", "MartletProvider",
}
"""The modules that a provider may import: exactly those that a plugin author has."""

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+"
    r"(?:(?:struct|class|enum|protocol|func|var|let|typealias|actor)\s+)?(\w+)",
    re.MULTILINE,
)
DECLARED = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+(?:\(set\))?\s+)*?(?:public|package)\s+(?:[\w]+(?:\([^)]*\))?\s+)*?"
    r"(struct|class|enum|actor|protocol|typealias|func|var|let|init|subscript|macro)\b\s*(.*)$"
)
WITNESSES = re.compile(r"(?:description|debugDescription|customMirror|hash|encode)\b|(?:==|<|~=)(?=\s*\()")


def check_package(root, package, sources):
    """Every rule over every file. `package` is the output of `swift package dump-package`, `sources` reads a file."""
    targets = {target["name"]: target for target in package["targets"]}
    findings = []
    groups = test_groups(root)
    for target in package["targets"]:
        folder = target.get("path") or "Sources/" + target["name"]
        allowed = {name for dependency in target.get("dependencies", []) for name in dependency_names(dependency)}
        for path in sorted((root / folder).rglob("*.swift")):
            source = sources(path)
            name = path.relative_to(root).as_posix()
            findings += [(name, *found) for found in check_file(target, folder, allowed, targets, source)]
            if target["name"] == "IntegrationTests":
                findings += [(name, *found) for found in check_test_groups(groups, source)]
    return findings


def dependency_names(dependency):
    for kind in ("byName", "target", "product"):
        if kind in dependency:
            yield dependency[kind][0]


def check_file(target, folder, allowed, targets, source):
    plugin = folder.startswith("Plugins/")
    shipped = plugin or folder.startswith("Sources/")
    yield from check_imports(target["name"], plugin, shipped, allowed, targets, source)
    yield from check_sizes(source)
    if folder.startswith("Tests/Unit/"):
        yield from check_sleeping(source)
    if shipped:
        yield from check_traps(source)
        yield from check_prefixes(source)
        yield from check_differences(target["name"], source)
        yield from check_concurrency(target["name"], source)
        yield from check_locks(target["name"], source)
        yield from check_documentation(source)


def check_imports(name, plugin, shipped, allowed, targets, source):
    for match in IMPORT.finditer(source.code):
        imported, line = match.group(1), source.line_of(match.start(1))
        if imported in targets and imported != name and imported not in allowed:
            yield line, "import-declared", f"{name} imports {imported}, which Package.swift does not declare for it"
        if shipped and imported in ("Foundation", "FoundationNetworking", "FoundationXML"):
            yield line, "no-foundation", f"{imported} may not be linked into what ships (FoundationEssentials may)"
        if not plugin or imported not in targets:
            continue
        if name == "BundledProviders":
            if imported != "MartletProvider" and not is_provider(targets, imported):
                yield line, "plugin-import", f"BundledProviders imports {imported}: only MartletProvider and providers"
        elif imported not in PLUGIN_IMPORTS:
            yield line, "plugin-import", f"{name} imports {imported}, which a plugin author does not have"


def is_provider(targets, name):
    return (targets[name].get("path") or "").startswith("Plugins/")


def check_sizes(source):
    count = len(source.lines) - (1 if source.lines[-1] == "" else 0)
    if count > FILE_LINES:
        yield count, "file-size", f"{count} lines; at most {FILE_LINES}"
    for name, line, length in source.functions():
        if length > FUNCTION_LINES:
            yield line, "function-size", f"'{name}' has {length} lines; at most {FUNCTION_LINES}"


TRAPS = [
    ("no-force-try", re.compile(r"\btry!"), "try! ends the process on an error"),
    ("no-force-cast", re.compile(r"\bas!"), "as! ends the process on another type"),
    ("no-fatal-error", re.compile(r"\b(?:fatalError|preconditionFailure)\s*\("), "no input may end the process"),
    ("no-force-unwrap", re.compile(r"(?<=[\w)\]}>`])(?<!\btry)(?<!\bas)!(?!=)"), "! ends the process on nil"),
]


def check_traps(source):
    for rule, pattern, text in TRAPS:
        for match in pattern.finditer(source.code):
            yield source.line_of(match.start()), rule, text


PREFIX = re.compile(r'"(m[a-z]{2}_)"')
OWN_TOKENS = "package enum OwnToken"
NO_CREDENTIALS = {"mno_"}
"""Prefixes of what proves nothing: a nonce."""


def check_prefixes(source):
    """Whoever makes a token takes its prefix from the one list, so that nothing forwards or logs a new kind."""
    if OWN_TOKENS in source.text:
        return
    for match in PREFIX.finditer(source.text):
        if match.group(1) not in NO_CREDENTIALS:
            line = source.text.count("\n", 0, match.start()) + 1
            yield line, "token-prefix", f"the prefix '{match.group(1)}' belongs into OwnToken (MartletCore)"


STORE_MODULES = {"MartletSession", "MartletRedis", "MartletAccounts", "MartletEvents", "MartletSignIn"}
"""Modules with numbers that a store returned, such as expiries."""

DIFFERENCE = re.compile(r"(?<=[\w)\]]) - (?=[A-Za-z_(.])(?![\w.]*\.count\b)")


def check_differences(name, source):
    """A difference of two such numbers traps on overflow: use `since`, `&-` or a check."""
    if name not in STORE_MODULES:
        return
    for match in DIFFERENCE.finditer(source.code):
        if not source.code[: match.start()].endswith(".count"):
            text = "an unchecked '-' in a module that reads numbers from a store"
            yield source.line_of(match.start()), "unchecked-difference", text


UNCHECKED = re.compile(r"nonisolated\(unsafe\)|@unchecked\s+Sendable")


def check_concurrency(name, source):
    if name == "MartletIO":
        return
    for match in UNCHECKED.finditer(source.code):
        line = source.line_of(match.start())
        if not source.comment_above(line - 1):
            text = f"'{match.group(0)}' outside MartletIO needs a comment above it that proves it safe"
            yield line, "unchecked-concurrency", text


FOREIGN_LOCK = re.compile(r"\bMutex\s*[<(]|\bpthread_(?:mutex|rwlock|spin)_\w+|\bNS(?:Recursive)?Lock\b|\bDispatch\w+")


def check_locks(name, source):
    """One lock, whose order debug builds check; and no thread of libdispatch, which ends the process at will."""
    if name == "MartletCore" and "struct Lock<" in source.code:
        return
    for match in FOREIGN_LOCK.finditer(source.code):
        yield source.line_of(match.start()), "foreign-lock", f"'{match.group(0).strip()}': use Lock, or a task"


SLEEPING = re.compile(
    r"\b(?:Task|Thread)\.sleep\b|\.sleep\((?:for|until|forTimeInterval|nanoseconds)\b"
    r"|\b(?:usleep|(?:clock_)?nanosleep|pause)\(|(?<![.\w])(?<!func )sleep\(")


def check_sleeping(source):
    """A test that sleeps is slow where the time is too long, and fails where it is too short."""
    for match in SLEEPING.finditer(source.code):
        text = "a unit test sleeps: set its clock, or wait for what is to happen (Gate, eventually, waitUntil)"
        yield source.line_of(match.start()), "sleeping-test", text


GROUP = re.compile(r"^(?:readonly )?(clients|accounts)\+?='(.*)'$", re.MULTILINE)
SUITE = re.compile(
    r"^(?:@\w+(?:\([^\n]*\))?\s+)*(?:\w+\s+)?(?:struct|class|enum|actor|extension)\s+(`[^`\n]+`|\w+)", re.MULTILINE)
ASYNC_TEST = re.compile(r"\bfunc\s+`[^`\n]+`\([^{]*?\)\s*async\b")


def test_groups(root):
    """What selects the tests that wait in tasks, by the script that runs all tests."""
    script = root / "test"
    if not script.is_file():
        return []
    patterns = {}
    for name, pattern in GROUP.findall(script.read_text(encoding="utf-8")):
        patterns[name] = patterns.get(name, "") + pattern
    return [re.compile(pattern) for pattern in patterns.values()]


def check_test_groups(groups, source):
    """Black-box tests block the threads of their process: a test that waits in a task would wait for them."""
    suites = [(match.start(1), match.group(1)) for match in SUITE.finditer(source.text)]
    for match in ASYNC_TEST.finditer(source.text):
        suite = next((name for start, name in reversed(suites) if start < match.start()), "")
        if not any(group.match("IntegrationTests." + suite) for group in groups):
            line = source.line_of(match.start())
            yield line, "test-group", f"{suite} has tests that wait in tasks: name it in a group of ./test of such ones"


def check_documentation(source):
    for index, text in enumerate(source.code_lines):
        match = DECLARED.match(text)
        if not match:
            continue
        kind, rest = match.groups()
        # Properties, witnesses of well-known protocols and plain initializers need no summary.
        if kind in ("var", "let", "init", "subscript") or WITNESSES.match(rest):
            continue
        if not source.documented(index):
            yield index + 1, "documentation", f"'{kind} {rest.split('{')[0].strip()}' has no /// summary"
