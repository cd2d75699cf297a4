#!/usr/bin/env python3
"""Measures how the modules of the request path hang together: large types, files and types in call cycles, functions
that can change the whole loop, long functions, bare handles.

    Tests/Lint/structure.py                          the modules `REQUEST_PATH` of modules.py
    Tests/Lint/structure.py MartletHTTP MartletJSON  these modules
    Tests/Lint/structure.py --rev HEAD~20            at that revision; modules that it does not have are left out
    Tests/Lint/structure.py --compare v0.9           the totals there and here, and which files are in cycles here alone
    Tests/Lint/structure.py --edges EventLoop+Accept what these files use in other files, and at which line
    Tests/Lint/structure.py --gate                   fails where a total is not the one in structure.json
    Tests/Lint/structure.py --gate --update          writes totals there that have fallen

A cycle is a strongly connected component: each of its files calls each other one, directly or through others. The head of
calls.py says how the calls are read from the text, and what is not seen.
"""

import argparse
import collections
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import textwrap

import calls
from limits import REQUEST_PATH_LINES, Type, check_handles, count_types, parameter_list, walk
from modules import REQUEST_PATH, module_of
from swift_source import SwiftSource

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTIONS = 20

# The totals that may only fall, and where they are committed.
GATED = ("files in cycles", "files in cycles across folders", "functions that borrow the loop", "types in cycles")
COMMITTED = pathlib.Path(__file__).with_name("structure.json")

# A method of these types, or a function with such a parameter, can change all of an event loop.
LOOP = {"EventLoop", "LoopState"}
BORROWED = re.compile(r":\s*inout\s+(?:EventLoop|LoopState)\b")
# So can a function that is lent all of these, or that is a method of one and lent the others.
OWNERS = {"Exchanges", "DownstreamConnections", "UpstreamConnections", "LoopContext"}
OWNED = re.compile(r":\s*inout\s+(%s)\b" % "|".join(sorted(OWNERS)))


class Structure:
    """What was measured of some files, pairs of path and source."""

    def __init__(self, files):
        self.files = files
        self.types = collections.defaultdict(Type)
        for path, source in files:
            count_types(path, source, self.types)
        self.lines = {path: len(source.lines) - (source.lines[-1] == "") for path, source in files}
        self.functions = sorted(
            ((length, name, path, line) for path, source in files for name, line, length in source.functions()),
            key=lambda one: (-one[0], one[2:]))
        self.handles = {path: len(list(check_handles(source))) for path, source in files}
        self.borrowers = sum(
            borrows_loop(source.code, match, scopes) for path, source in files
            for match, scopes, _ in walk(path, source))
        self.uses = list(calls.uses(files))
        self.file_components = calls.components(calls.file_graph(self.uses))
        self.wide_components = [
            one for one in self.file_components if len({path.rpartition("/")[0] for path in one}) > 1]
        self.type_components = calls.components(calls.type_graph(self.uses))

    def large_types(self, over):
        found = [(name, one) for (_, name), one in self.types.items() if max(one.stored, one.methods) > over]
        return sorted(found, key=lambda one: (-one[1].methods - one[1].stored, one[0]))

    def totals(self, over):
        """Pairs of what is counted and the count."""
        declared = [(name, one) for (_, name), one in self.types.items() if one.declared]
        yield "types", len(declared)
        yield f"types with more than {over} properties or methods", len(self.large_types(over))
        for text, count in (
            ("most stored properties", lambda one: one.stored), ("most methods", lambda one: one.methods),
            ("most files of one type", lambda one: len(one.files)),
        ):
            name, largest = max(declared, key=lambda one: count(one[1]), default=("", Type()))
            yield text, f"{count(largest)} {name}"
        yield "files", len(self.files)
        yield "lines", sum(self.lines.values())
        yield f"files over {REQUEST_PATH_LINES} lines", sum(count > REQUEST_PATH_LINES for count in self.lines.values())
        yield "longest file", max(self.lines.values(), default=0)
        yield "functions", len(self.functions)
        yield "longest function", self.functions[0][0] if self.functions else 0
        yield "cycles of files", sizes(self.file_components)
        yield "files in cycles", sum(map(len, self.file_components))
        yield "cycles across folders", sizes(self.wide_components)
        yield "files in cycles across folders", sum(map(len, self.wide_components))
        yield "cycles of types", sizes(self.type_components)
        yield "types in cycles", sum(map(len, self.type_components))
        yield "functions that borrow the loop", self.borrowers
        yield "bare Int32 handles", sum(self.handles.values())


def borrows_loop(code, match, scopes):
    """Whether a match of `walk` is a function that can change all of the loop: a method of it, or a borrower."""
    name = match.group("func") and calls.FUNCTION_NAME.match(code, match.end())
    if not name:
        return False
    owner = scopes[-1][1] if scopes and scopes[-1] else ""
    parameters = parameter_list(code, name.end())[0]
    return owner in LOOP or bool(BORROWED.search(parameters)) or {owner, *OWNED.findall(parameters)} >= OWNERS


def sizes(components):
    return ", ".join(str(len(one)) for one in components) or "none"


def read_files(modules, revision):
    """The Swift files of the modules, as pairs of path and source, in the work tree or at a revision."""
    if revision is None:
        folders = [ROOT / top / module for top in ("Sources", "Plugins") for module in modules]
        texts = [(path.relative_to(ROOT).as_posix(), path.read_bytes()) for folder in folders for path in folder.rglob("*.swift")]
    else:
        texts = [(name, text) for name, text in archived(revision) if module_of(name) in modules]
    return [(name, SwiftSource(text.decode())) for name, text in sorted(texts)]


def archived(revision):
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, "Sources", "Plugins"]
    result = subprocess.run(command, capture_output=True)
    if result.returncode != 0:
        sys.exit(result.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(result.stdout)) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".swift"):
                yield member.name, archive.extractfile(member).read()


def table(rows, right=()):
    """Prints rows of columns; those at the positions `right` are aligned to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [cell.rjust(width) if at in right else cell.ljust(width) for at, (cell, width) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())


def wrapped(text, indent=""):
    return textwrap.fill(text, 118, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


def print_structure(structure, over):
    print(f"Types with more than {over} stored properties or methods")
    rows = [
        (name, one.stored, one.methods, len(one.files), "{}:{}".format(*one.declared) if one.declared else "extensions only")
        for name, one in structure.large_types(over)
    ]
    table([("type", "properties", "methods", "files", "declared"), *rows], right=(1, 2, 3))
    print("\nTotals")
    table(structure.totals(over))
    for kind, components in (("files", structure.file_components), ("types", structure.type_components)):
        print(f"\nCycles of {kind}: {sizes(components)}")
        for members in components:
            text = ", ".join(member.removeprefix("Sources/").removesuffix(".swift") for member in members)
            print(wrapped(f"{len(members)}: {text}", indent="  "))
    print("\nLongest functions")
    table(
        [(length, name.removeprefix("func "), f"{path}:{line}") for length, name, path, line in structure.functions[:FUNCTIONS]],
        right=(0,))
    print(f"\nBare Int32 handles: {sum(structure.handles.values())}")
    table(sorted(((count, path) for path, count in structure.handles.items() if count), key=lambda one: (-one[0], one[1])), right=(0,))


def print_edges(structure, text):
    found = collections.defaultdict(list)
    for use in structure.uses:
        if text in use.file and use.file != use.target_file:
            found[use.file, use.target_file].append(f"{use.name}:{use.line}")
    for (file, target), names in sorted(found.items()):
        print(wrapped(f"{file} -> {target}: {', '.join(names)}"))


def print_comparison(before, after, over, heads):
    rows = [(text, old, new) for (text, old), (_, new) in zip(before.totals(over), after.totals(over))]
    table([("", *heads), *rows], right=(1, 2))
    old, new = ({path for one in structure.file_components for path in one} for structure in (before, after))
    if new - old:
        print(wrapped(f"In cycles in {heads[1]} alone: {', '.join(sorted(new - old))}"))


def gate(structure, committed, update):
    """What is wrong with the totals, as texts; an update writes them to the file `committed` if none has risen."""
    known, totals = json.loads(committed.read_text()) if committed.exists() else {}, dict(structure.totals(over=0))
    numbers, wrong = {name: totals[name] for name in GATED}, []
    for name, count in numbers.items():
        was = known.get(name, "none")
        if was != "none" and count > was:
            wrong.append(f"{count} {name}, at most {was}: see `Tests/Lint/structure.py --compare main`")
        elif count != was and not update:
            wrong.append(f"{count} {name}, {was} committed: run `Tests/Lint/structure.py --gate --update`")
    if update and not wrong:
        committed.write_text(json.dumps(numbers, indent=2, sort_keys=True) + "\n")
    return wrong


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--rev", metavar="REV", help="read this revision in place of the work tree")
    parser.add_argument("--compare", metavar="REV", help="print the totals of this revision beside the others")
    parser.add_argument("--edges", metavar="TEXT", help="print what files whose path contains TEXT use in other files")
    parser.add_argument("--gate", action="store_true", help="fail where a total is not the one in structure.json")
    parser.add_argument("--update", action="store_true", help="with --gate: write the totals that have fallen")
    parser.add_argument("--over", metavar="N", type=int, default=10, help="print types with more properties or methods (10)")
    options = parser.parse_args(arguments)
    modules = set(options.modules) or REQUEST_PATH
    files = read_files(modules, options.rev)
    if not files:
        parser.error(f"no Swift files in {', '.join(sorted(modules))}")
    structure = Structure(files)
    if options.gate:
        wrong = gate(structure, COMMITTED, options.update)
        for text in wrong:
            print(f"{COMMITTED.relative_to(ROOT)}:1: error: {text} [structure]")
        return 1 if wrong else 0
    if options.edges is not None:
        print_edges(structure, options.edges)
    elif options.compare:
        before = Structure(read_files(modules, options.compare))
        print_comparison(before, structure, options.over, (options.compare, options.rev or "work tree"))
    else:
        print_structure(structure, options.over)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
