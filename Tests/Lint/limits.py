"""Limits on what one type may hold, and on the files and signatures of the request path."""

import collections
import re

from modules import REQUEST_PATH, module_of

STORED_PROPERTIES = 20
METHODS = 60
REQUEST_PATH_LINES = 300

# Above a type's declaration: `// lint:large-type` and, on the same line, why it is as large as it is.
LARGE = re.compile(r"//\s*lint:large-type:?\s+(\S+(?:\s+\S+){2,})")

TOKEN = re.compile(
    r"[{}]|(?<![\w.`])(?:(?P<type>struct|class|enum|actor|extension|protocol)\s+(?P<name>[A-Z_][\w.]*)"
    r"|(?P<func>func)\s|(?P<var>var|let)\s+(?P<property>[\w(]))"
)
SHARED = re.compile(r"(?:static|class)\s+(?:\w+(?:\(\w+\))?\s+)*$")


class Type:
    """What was counted of one type, over its declaration and its extensions in one module."""

    def __init__(self):
        self.stored, self.methods, self.declared, self.excused, self.files = 0, 0, None, False, set()


def check_types(files):
    """Findings as (file, line, rule, text) about the types of `files`, pairs of path and source."""
    types = collections.defaultdict(Type)
    for path, source in files:
        count_types(path, source, types)
    for (_, name), found in sorted(types.items()):
        if found.excused or not found.declared:
            continue
        if found.stored > STORED_PROPERTIES:
            yield *found.declared, "large-type", f"'{name}' has {found.stored} stored properties; at most {STORED_PROPERTIES}"
        if found.methods > METHODS:
            yield *found.declared, "large-type", f"'{name}' has {found.methods} methods; at most {METHODS}"


def count_types(path, source, types):
    for match, scopes, pending in walk(path, source):
        scope = scopes[-1] if scopes else None
        if match.group("type"):
            declare(path, source, match, types[pending])
        elif scope and match.group("func"):
            types[scope].methods += 1
        elif scope and match.group("var") and is_stored(source.code, match):
            types[scope].stored += 1


def walk(path, source):
    """Every match of TOKEN, with what is around it: for each open brace the type whose body it opens, or None, and then
    the type that was declared or extended last and whose body has not begun. A type is (module, full name)."""
    scopes, pending = [], None
    for match in TOKEN.finditer(source.code):
        if match.group("type"):
            if is_import(source.code, match.start()):
                continue
            outer = scopes[-1] if scopes else None
            pending = (module_of(path), f"{outer[1]}.{match.group('name')}" if outer else match.group("name"))
        yield match, scopes, pending
        if match.group(0) == "{":
            scopes.append(pending)
            pending = None
        elif match.group(0) == "}" and scopes:
            scopes.pop()


def declare(path, source, match, found):
    line = source.line_of(match.start())
    if match.group("type") != "extension" and not found.declared:
        found.declared = (path, line)
    found.excused |= has_marker(source, line - 1)
    found.files.add(path)


def has_marker(source, index):
    """Whether the marker stands on the line (from 0) or in the comments and attributes directly above it."""
    if LARGE.search(source.lines[index]):
        return True
    index -= 1
    while index >= 0 and source.lines[index].strip().startswith(("//", "@")):
        if LARGE.search(source.lines[index]):
            return True
        index -= 1
    return False


def is_import(code, offset):
    return code[code.rfind("\n", 0, offset) + 1: offset].rstrip().endswith("import")


def is_stored(code, match):
    """Whether a `var` or `let` in a type's body has memory in each instance."""
    if SHARED.search(code[code.rfind("\n", 0, match.start()) + 1: match.start()]):
        return False
    depth = 0
    for offset in range(match.start("property"), len(code)):
        char = code[offset]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth == 0 and char == "{":
            return bool(re.match(r"\{\s*(?:willSet|didSet)\b", code[offset:offset + 80]))
        elif depth == 0 and char in "=}":
            return True
        elif depth == 0 and char == "\n" and not re.match(r"\s*[{=]", code[offset:offset + 200]):
            return True
    return True


def check_request_path(path, source):
    """Findings as (line, rule, text) about one file, if it is of the request path."""
    if module_of(path) not in REQUEST_PATH or not path.startswith("Sources/"):
        return
    count = len(source.lines) - (1 if source.lines[-1] == "" else 0)
    if count > REQUEST_PATH_LINES:
        yield count, "request-path-size", f"{count} lines in a file of the request path; at most {REQUEST_PATH_LINES}"
    yield from check_handles(source)


SIGNATURE = re.compile(r"(?<![\w.`])(?:func\s+[^\s(<]+|init[?!]?|subscript)\s*(?:<[^>]*>)?\(")
PARAMETER = re.compile(r"(?:^|,)\s*(?:@\w+\s+)*((?:\w+\s+)?\w+)\s*:\s*(?:inout\s+)?Int32\??\s*(?=,|$|=)")
HANDLES = {"exchange", "client", "link", "connection", "tunnel", "stream", "slot", "downstream", "upstream"}


def check_handles(source):
    """A slot of a table is passed as a typed handle: two bare numbers can be swapped, and the compiler says nothing."""
    for match in SIGNATURE.finditer(source.code):
        parameters, end = parameter_list(source.code, match.end())
        for found in PARAMETER.finditer(parameters):
            names = found.group(1).split()
            if any(last_word(name) in HANDLES for name in names):
                line = source.line_of(match.end() + found.start(1))
                yield line, "bare-handle", f"'{names[-1]}' is a bare Int32; pass the table's handle type"


def last_word(name):
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return words[-1].lower() if words else ""


def parameter_list(code, start):
    """The text between the parentheses, and the offset of the one that closes; nested ones are blanked."""
    depth, out = 1, []
    for offset in range(start, len(code)):
        char = code[offset]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth == 0:
                return "".join(out), offset
        out.append(char if depth == 1 or char == "\n" else " ")
    return "".join(out), len(code)
