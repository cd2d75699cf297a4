#!/usr/bin/env python3
"""Compares the pages that list commands and keys with the executable, which has both from its own grammar.

    Tests/Documents/reference.py [--martlet .build/debug/martlet] [--update]

Commands.md has the help of every command; in Configuration.md the default and the meaning of every key are those of `martlet
schema`, where a meaning may have links. --update writes what differs.
Exit codes: 0 the pages are correct, 1 they are not.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ROOT / "Sources/MartletServer/Documentation.docc"
INTRODUCTION = """# Commands

Every command of `martlet`, with its options, examples and exit codes: what `martlet COMMAND --help` prints.

The same grammar makes `martlet completion bash|zsh|fish`, the manual page of `martlet man`, and the names that are
proposed for mistyped ones. Options may stand before or after other arguments, as `--name VALUE` or `--name=VALUE`.
Which configuration a command reads: that of `--config`, where `-` is standard input, else of `$MARTLET_CONFIG`, else
`config.yaml` in the working directory, else `/etc/martlet/config.yaml`.

On a terminal, lists are aligned and have colors, `check` shows the line of each error, and `run` prints its addresses;
with `NO_COLOR` there are no colors. Elsewhere lists have tabs between their columns, and `--json` prints documents.

This page is written by `Tests/Documents/reference.py --update`.

"""
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ROW = re.compile(r"(\| `([\w-]+)` \| (.*?) \| (.*?) \| )(.*)( \|)$")
NAME = re.compile(r"^  ([a-z]+) ", re.MULTILINE)


def printed(martlet, *arguments):
    return subprocess.run([martlet, *arguments], capture_output=True, text=True, check=True).stdout


def commands_page(martlet):
    names = NAME.findall(printed(martlet, "help").split("\nEnvironment:")[0])
    parts = [f"## {name}\n\n```text\n{printed(martlet, 'help', name).rstrip()}\n```\n" for name in names]
    return INTRODUCTION + "\n".join(parts)


def blocks(node, path, definitions):
    """Every block of the schema with its dotted path."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name != "authorize":
            return
        node = definitions[name]
    if "properties" in node:
        yield path, node["properties"]
        for key, value in node["properties"].items():
            yield from blocks(value, f"{path}.{key}" if path else key, definitions)
    if "items" in node:
        yield from blocks(node["items"], path + "[]", definitions)
    if isinstance(node.get("additionalProperties"), dict):
        yield from blocks(node["additionalProperties"], path + ".*", definitions)
    for choice in node.get("anyOf", []):
        if choice.keys() & {"properties", "items", "$ref"}:
            yield from blocks(choice, path, definitions)


def documented_blocks(schema):
    """The keys below each heading of Configuration.md."""
    for path, keys in blocks(schema, "", schema["$defs"]):
        yield f"### `{path}`" if path else "## The file", keys
    shared = {"kind", "bulkhead"}
    for rule in schema["$defs"]["provider"]["allOf"]:
        keys = rule["then"]["properties"]
        yield f"### Kind {keys['kind']['const']}", {name: key for name, key in keys.items() if name not in shared}


def stands_elsewhere(name, lines):
    """Whether the keys of a small block stand in this table (`cache.max`), or a secret's row names its file as well."""
    base = name.removesuffix("_file")
    return any(line.startswith(f"| `{name}.") or line.startswith(f"| `{base}` ") and f"`{name}`" in line for line in lines)


def configuration_page(schema, text):
    """The page with the meanings of the schema, and what is missing on it."""
    lines, missing = text.split("\n"), []
    for heading, keys in documented_blocks(schema):
        start = lines.index(heading) if heading in lines else None
        if start is None:
            missing.append(f"no heading {heading!r}")
            continue
        end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("#")), len(lines))
        for name, key in keys.items():
            found = [(i, row) for i in range(start, end) if (row := ROW.match(lines[i])) and row[2] == name]
            if not found and not stands_elsewhere(name, lines[start:end]):
                missing.append(f"no row for {name!r} below {heading!r}")
            for i, row in found[:1]:
                if LINK.sub(r"\1", row[5]) != key["description"]:
                    lines[i] = row[1] + key["description"] + row[6]
    return "\n".join(lines), missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--martlet", default=ROOT / ".build/debug/martlet")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    schema = json.loads(printed(options.martlet, "schema"))
    path = GUIDES / "Configuration.md"
    configuration, errors = configuration_page(schema, path.read_text(encoding="utf-8"))
    wanted = {GUIDES / "Commands.md": commands_page(options.martlet), path: configuration}
    for page, text in wanted.items():
        there = page.read_text(encoding="utf-8") if page.exists() else ""
        if there == text:
            continue
        if options.update:
            page.write_text(text, encoding="utf-8")
            continue
        changed = [i for i, (a, b) in enumerate(zip(there.split("\n"), text.split("\n")), 1) if a != b]
        errors.append(f"{page.name}:{changed[0] if changed else 1} is not what the executable says; run with --update")
    for error in errors:
        print(f"reference: error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
