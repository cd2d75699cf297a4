#!/usr/bin/env python3
"""Compares the pages that list commands and keys with the executable, which has both from its own grammar.

    Tests/Documents/reference.py [--martlet .build/debug/martlet] [--update]

Commands.md has the help of every command; in Configuration.md the type, the default and the meaning of every key are those of
`martlet schema`. A type may go on with a bound that a schema cannot say, a meaning may have links. --update writes what
differs.
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
VARIABLE = {"type": "string", "pattern": "\\$\\{"}
# What a pattern means to a reader; the pattern ends with a variable, which every scalar may be.
PATTERNS = {
    "^[0-9]+(ms|s|m|h|d)$": "duration", "^[0-9]+(B|KiB|MiB|GiB)$": "size", "^https?://[^@#]+$": "URL",
    "^[0-9]{1,3}%$": "percentage",
}
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ROW = re.compile(r"(\| `([\w-]+)` \| (.*?) \| (.*?) \| )(.*)( \|)$")
NAME = re.compile(r"^  ([a-z-]+) ", re.MULTILINE)


def printed(martlet, *arguments):
    return subprocess.run([martlet, *arguments], capture_output=True, text=True, check=True).stdout


def commands_page(martlet):
    names = NAME.findall(printed(martlet, "help").split("\nEnvironment:")[0])
    parts = [f"## {name}\n\n```text\n{printed(martlet, 'help', name).rstrip()}\n```\n" for name in names]
    return INTRODUCTION + "\n".join(parts)


def default_of(key, is_required):
    """The text of the column; `None` where the page may say it in words."""
    if is_required:
        return "required"
    return f"`{flow(key['default'])}`" if "default" in key else None


def flow(value):
    """A value in YAML's flow style."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(quoted(one) for one in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {quoted(one)}" for name, one in value.items()) + " }" if value else "{}"
    return str(value)


def quoted(value):
    needs_quotes = isinstance(value, str) and (value.startswith("@") or value.endswith(":"))
    return f'"{value}"' if needs_quotes else flow(value)


def type_of(key):
    """How the column begins; empty where the schema has nothing to compare."""
    choices = [one for one in key.get("anyOf", []) if one != VARIABLE]
    if len(choices) == 1:
        return type_of(choices[0])
    if "enum" in key:
        return " ".join(f"`{one}`" for one in key["enum"])
    kind = key.get("type")
    if kind == "integer":
        low, high = key.get("minimum"), key.get("maximum")
        return "integer" if low == high or high is None or abs(high) > 2**53 else f"integer {low}–{high}"
    if kind == "array":
        return "list of blocks" if key["items"].get("type") == "object" else "list"
    if kind == "object":
        return "block" if "properties" in key else "map" if key["additionalProperties"].get("type") == "object" else ""
    if kind == "string" and "minLength" in key:
        return "path"
    if kind == "string":
        return PATTERNS.get(key.get("pattern", "").removesuffix(r"|\$\{"), "")
    return kind if kind in ("boolean", "number") else ""


def blocks(node, path, definitions):
    """Every block of the schema with its dotted path."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name != "authorize":
            return
        node = definitions[name]
    if "properties" in node:
        yield path, node
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
    for path, block in blocks(schema, "", schema["$defs"]):
        yield f"### `{path}`" if path else "## The file", block["properties"], block.get("required", [])
    shared = {"kind", "bulkhead", "label", "icon_file", "ca_file", "http_proxy", "no_proxy"}
    for rule in schema["$defs"]["provider"]["allOf"]:
        block = rule["then"]
        kind = block["properties"]["kind"]["const"]
        # The authorities of clients, not of an issuer.
        own = {"ca_file"} if kind == "mtls" else set()
        keys = {name: key for name, key in block["properties"].items() if name not in shared - own}
        yield f"### Kind {kind}", keys, block.get("required", [])


def stands_elsewhere(name, lines):
    """Whether the keys of a small block stand in this table (`cache.max`), or a secret's row names its file as well."""
    base = name.removesuffix("_file")
    return any(line.startswith(f"| `{name}.") or line.startswith(f"| `{base}` ") and f"`{name}`" in line for line in lines)


def configuration_page(schema, text):
    """The page with what the schema says of every key, and what is missing on it."""
    lines, missing = text.split("\n"), []
    for heading, keys, required in documented_blocks(schema):
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
                default = default_of(key, name in required) or row[4]
                meaning = row[5] if LINK.sub(r"\1", row[5]) == key["description"] else key["description"]
                kind = row[3] if row[3].startswith(type_of(key)) else type_of(key)
                lines[i] = f"| `{name}` | {kind} | {default} | {meaning} |"
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
