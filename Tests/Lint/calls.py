"""Which file calls which, and which type uses which: read from the text, without a compiler.

A file has an edge to another if it calls a function that is declared there, or names a type that is. What is an approximation:

* A file reaches its own module and those that it imports, and no private function of another file.
* A function is matched by its name and its argument labels, with default values and trailing closures considered. Without a
  receiver, or with `self`, it is one of the enclosing type, of a protocol, or of no type. With a receiver whose name has
  declared types anywhere (`authenticator: Authenticator`), it is one of those, or of a protocol where none of several
  has it. With any other receiver it counts only if one type of these modules declares such a function and Swift's
  library does not (`COMMON`).
* Overloads that differ in the types of their arguments alone count as the one in the same file, or else as all of them.
* A type is matched by its name: a nested one inside the type around it, or after that type's name.
* Properties, initializers (beyond the name of the type), operators, enum cases and functions passed as values are not followed.
  What an extension extends is not a use of it, or all extensions of a type would be one component.
* In the graph of types, nested types count as part of the outermost one, and what a module adds to a type of another
  module is a node of its own: the type does not depend on it.
"""

import collections
import dataclasses
import re

from limits import SHARED, parameter_list, walk
from modules import module_of

NAME = re.compile(r"(?<![\w`])([A-Za-z_]\w*)(?:\s*<[^<>()]*>)?(\()?")
FUNCTION_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:<[^>]*>)?\s*\(")
RECEIVER = re.compile(r"(?:(\w+)|[)\]}])[?!]*(?:\n\s*)?\.$")
LABEL = re.compile(r"\s*(?:@\w+\s+)*(\w+)(?:\s+\w+)?\s*:")
CLOSURE = re.compile(r"\{[^{}]*\}")
IMPORT = re.compile(r"^[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)?import\s+(?:[a-z]+\s+)?(\w+)", re.MULTILINE)
PRIVATE = re.compile(r"\b(?:private|fileprivate)\s+(?:\w+\s+)*$")
QUALIFIER = re.compile(r"((?:[A-Z]\w*\.)+)$")
TYPED = re.compile(
    r"\b(\w+)\s*:\s*(?:(?:inout|borrowing|consuming|sending|any|some)\s+|@\w+\s+)*([A-Z][\w.]*)"
    r"|\b(?:let|var)\s+(\w+)\s*=\s*(?:(?:try|unsafe|await)\s+)*([A-Z][\w.]*)\s*[(<]"
)
KEYWORDS = {"return", "in", "case", "else", "where", "try", "unsafe", "await", "throw", "if", "guard", "switch", "consume"}

# Functions of Swift's library: a call counts as one of those if the receiver is not known to be of a type declared here.
COMMON = set(
    "add append contains filter first firstIndex flatMap hash index insert last lastIndex load map max microseconds milliseconds"
    " min nanoseconds popFirst popLast prefix reduce remove removeAll removeFirst removeLast reserveCapacity reversed seconds"
    " sorted split starts store suffix withUnsafeBytes withUnsafeBufferPointer withUnsafeMutableBytes".split()
)


@dataclasses.dataclass(frozen=True)
class Function:
    """A declared function: the labels of its parameters, each with whether a call may leave it out."""

    file: str
    owner: str
    is_static: bool
    is_private: bool
    parameters: tuple

    def takes(self, labels):
        """Whether a call with these labels can be one of this function."""
        at = 0
        for label, is_optional in self.parameters:
            if at < len(labels) and labels[at] == label:
                at += 1
            elif not is_optional:
                return False
        return at == len(labels)


@dataclasses.dataclass(frozen=True)
class Use:
    """One use: the file and the type (or "") that it is in, its line, and what it leads to."""

    file: str
    owner: str
    line: int
    name: str
    target_file: str
    target_owner: str


class Declarations:
    """What some files declare: functions and types by name, and the types of the names that have one."""

    def __init__(self, files):
        self.functions, self.types = collections.defaultdict(list), collections.defaultdict(list)
        self.owners, self.protocols, self.typed = set(), set(), collections.defaultdict(set)
        self.imports = {path: {module_of(path), *IMPORT.findall(source.code)} for path, source in files}
        for path, source in files:
            for match, scopes, pending in walk(path, source):
                if match.group("type") and match.group("type") != "extension":
                    self.owners.add(pending[1])
                    self.types[match.group("name")].append((pending[1], path))
                    if match.group("type") == "protocol":
                        self.protocols.add(pending[1])
                elif match.group("func") and (not scopes or scopes[-1]):
                    self.add_function(path, source.code, match, scopes)
            for name, type_name, other, other_type in TYPED.findall(source.code):
                self.typed[name or other].add((type_name or other_type).rstrip(".").rpartition(".")[2])

    def add_function(self, path, code, match, scopes):
        name = FUNCTION_NAME.match(code, match.end())
        if not name:
            return
        owner = scopes[-1][1] if scopes else ""
        before = code[code.rfind("\n", 0, match.start()) + 1: match.start()]
        parameters = tuple(declared_parameters(parameter_list(code, name.end())[0]))
        self.functions[name.group(1)].append(
            Function(path, owner, bool(SHARED.search(before)), bool(PRIVATE.search(before)), parameters))

    def sees(self, file, other, is_private=False):
        """Whether what `other` declares can be used in a file: it is of the module, or imports it."""
        return file == other or not is_private and module_of(other) in self.imports[file]

    def resolve_type(self, name, qualifier, file, owner):
        """The full name and the file of the type that `name` after `qualifier` names inside `owner`, or None."""
        for outer in (*outward(owner), ""):
            for full, path in self.types[name]:
                if full == f"{outer}.{qualifier}{name}".lstrip(".") and self.sees(file, path):
                    return full, path
        return None

    def resolve_call(self, name, labels, receiver, file, owner):
        """The declarations that a call can mean."""
        found = [one for one in self.functions[name] if one.takes(labels) and self.sees(file, one.file, one.is_private)]
        if receiver in ("", "self"):
            for outer in outward(owner):
                own = [one for one in found if one.owner == outer]
                if own:
                    return [one for one in own if one.file == file] or own
            return alike([one for one in found if one.owner == "" or one.owner in self.protocols])
        if name in COMMON:
            found = [one for one in found if one.owner in self.owners]
        if receiver == ".":
            return alike([one for one in found if one.is_static and name not in COMMON])
        if receiver[0].isupper():
            names = set(outward(owner)) if receiver == "Self" else {receiver}
        else:
            names = self.typed.get(receiver, set())
        own = [one for one in found if one.owner.rsplit(".", 1)[-1] in names or one.owner in names]
        if len(names) == 1 or receiver == "Self":
            return own
        if names:
            found = own or [one for one in found if one.owner in self.protocols]
        return [] if name in COMMON else alike(found)


def declared_parameters(text):
    """The label of each parameter of a declaration, and whether it has a default value or is a closure."""
    for piece in text.split(","):
        label = LABEL.match(piece)
        if label:
            yield label.group(1), "=" in piece or "->" in piece


def labels_of(source, opening):
    """The labels of a call's arguments, `_` for those without; `opening` is the offset after the parenthesis."""
    text, end = parameter_list(source.code, opening)
    if not source.text[opening:end].strip():
        return []
    before = None
    while text != before:
        text, before = CLOSURE.sub(" ", text), text
    matches = [LABEL.match(piece) for piece in text.split(",")]
    return [match.group(1) if match else "_" for match in matches]


def alike(found):
    """The declarations if they are all of one type: without knowing the receiver, others would be a guess."""
    return found if len({one.owner for one in found}) == 1 else []


def outward(owner):
    """The full names of a type and of the types around it."""
    while owner:
        yield owner
        owner = owner.rpartition(".")[0]


def uses(files):
    """Every use of a function or a type of these files, as far as it can be told."""
    declarations = Declarations(files)
    for path, source in files:
        end = 0
        for match, scopes, pending in walk(path, source):
            around = None if match.group("type") else pending
            owner = around or next((scope for scope in reversed(scopes) if scope), ("", ""))
            yield from uses_between(declarations, path, source, end, match.start(), owner[1])
            end = match.end()


def uses_between(declarations, path, source, start, end, owner):
    code = source.code
    for match in NAME.finditer(code, start, end):
        name, found = match.group(1), []
        if match.group(2) and name in declarations.functions and not code.startswith("func ", match.start() - 5):
            receiver = receiver_of(code, match.start())
            found = declarations.resolve_call(name, labels_of(source, match.end()), receiver, path, owner)
            found = [(one.owner, one.file) for one in found]
        elif name in declarations.types:
            one = declarations.resolve_type(name, qualifier_of(code, match.start()), path, owner)
            found = [one] if one else []
        for target_owner, target_file in found:
            if (target_file, target_owner) != (path, owner):
                yield Use(path, owner, source.line_of(match.start()), name, target_file, target_owner)


def qualifier_of(code, offset):
    """What is before the name of a type at `offset`: `Outer.` of types around it, or a point that follows no type."""
    if code[offset - 1] != ".":
        return ""
    match = QUALIFIER.search(code, max(0, offset - 120), offset)
    return match.group(1) if match else "."


def receiver_of(code, offset):
    """What stands before the point before `offset`: a name, `?` for any other expression, `.` for nothing, "" without a point."""
    before = code[max(0, offset - 120): offset].rstrip()
    if not before.endswith("."):
        return ""
    match = RECEIVER.search(before)
    if not match or match.group(1) in KEYWORDS:
        return "."
    return match.group(1) or "?"


def file_graph(found):
    graph = collections.defaultdict(set)
    for use in found:
        if use.file != use.target_file:
            graph[use.file].add(use.target_file)
    return graph


def type_of(file, owner):
    """The node of a type: its outermost type, in the module that the file is of."""
    return owner and f"{module_of(file)}/{owner.partition('.')[0]}"


def type_graph(found):
    graph = collections.defaultdict(set)
    for use in found:
        inner, outer = type_of(use.file, use.owner), type_of(use.target_file, use.target_owner)
        if inner and outer and inner != outer:
            graph[inner].add(outer)
    return graph


def components(graph):
    """The strongly connected components with more than one node, largest first (Tarjan, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(graph):
        work = [] if root in index else [(root, iter(sorted(graph[root])))]
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for target in targets:
                if target not in index:
                    work.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return sorted((one for one in found if len(one) > 1), key=lambda one: (-len(one), one))
