"""Makes a listing of every public symbol from the interfaces that the compiler writes: one line each, in a stable order."""

import hashlib
import re

MODULES = ["MartletCore", "MartletJSON", "MartletCrypto", "MartletJOSE", "MartletConfig", "MartletProvider"]
CONTAINER = re.compile(r"\b(struct|class|enum|protocol|actor|extension)\b")
CALLABLE = re.compile(r"\b(func|init|subscript|deinit|var|let|get|set|_read|_modify)\b")
HIDDEN = re.compile(r"(^|\s)(package|internal)\s")
ACCESSORS = re.compile(r"^(?:(?:mutating|nonmutating|async|throws|nonisolated)\s+)*(get|set|_read|_modify)\b[^{]*$")


class Node:
    """A declaration and what stands between its braces."""

    def __init__(self, text):
        self.text = text
        self.children = []


def listing(interface):
    """The lines of one module's interface."""
    root = Node("")
    parse(iter_lines(interface), root)
    hidden = {name_of(node.text) for node in root.children if is_hidden(node)}
    groups = []
    for node in root.children:
        if is_hidden(node) or (node.text.find("extension ") >= 0 and extended(node.text) in hidden):
            continue
        groups.append("\n".join(lines_of(node, "")))
    return sorted(group for group in groups if group)


def stamp(listings):
    """The hash of the listings of all modules, by module."""
    text = "".join(f"{module}\n{listings[module]}" for module in MODULES)
    return hashlib.sha256(text.encode()).hexdigest()


def iter_lines(interface):
    for line in interface.splitlines():
        line = line.strip()
        if line and not line.startswith("//") and not re.match(r"^(@\w+(\(\w+\))? )*(\w+ )?import ", line):
            yield line


def parse(lines, parent):
    """Fills a node with what stands before the next closing brace."""
    pending = ""
    for line in lines:
        # Conditions of the language's features, which the compiler that is required has.
        if line.startswith("#"):
            continue
        if line.startswith("}"):
            # An else of a function's body: still the same depth.
            if line.endswith("{"):
                continue
            return
        text = f"{pending} {line}".strip()
        if line.startswith("@") and not CONTAINER.search(line) and not CALLABLE.search(line) and "case " not in line:
            pending = text
            continue
        pending = ""
        node = Node(text.removesuffix("{").strip())
        parent.children.append(node)
        if line.endswith("{"):
            parse(lines, node)


def is_container(node):
    return CONTAINER.search(re.sub(r"\(.*", "", node.text)) is not None and not re.search(r"\bfunc\b|\bvar\b|\blet\b|\binit\b", node.text)


def is_hidden(node):
    return HIDDEN.search(node.text) is not None


def name_of(text):
    match = re.search(r"\b(?:struct|class|enum|protocol|actor)\s+(\w+)", text)
    return match.group(1) if match else None


def extended(text):
    match = re.search(r"\bextension\s+(?:\w+\.)?(\w+)", text)
    return match.group(1) if match else None


def lines_of(node, context):
    """The lines of a declaration: a container with its members, or a member with its accessors."""
    if not is_container(node):
        accessors = [ACCESSORS.match(child.text) for child in node.children]
        words = [match.group(0).strip() for match in accessors if match]
        yield context + node.text + (" { " + " ".join(words) + " }" if words and all(accessors) else "")
        return
    yield context + node.text
    frozen = "@frozen" in node.text
    for child in node.children:
        # The stored properties of a frozen type are its form in memory, whoever may use them.
        stored = frozen and re.search(r"\b(let|var)\b", child.text) and not child.children
        if is_hidden(child) and not stored:
            continue
        yield from lines_of(child, context + "    ")
