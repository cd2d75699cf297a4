"""Reads callgrind's output: instructions by function, and how often each function was called."""

import collections
import dataclasses
import re

ALLOCATIONS = re.compile(r"(malloc|calloc|realloc|posix_memalign|aligned_alloc|memalign|valloc)(@@.*)?$")
# These pass the request on to malloc.
ALLOCATORS = re.compile(r"(_mid_memalign|posix_memalign|aligned_alloc|memalign|valloc|calloc|realloc)\b")
REFERENCES = re.compile(r"swift_(retain|release|bridgeObjectRetain|bridgeObjectRelease)(_n)?$")
ACCESSES = re.compile(r"swift_(beginAccess|endAccess)$")
WAITS = re.compile(r"epoll_wait$")
LOOP_THREAD = re.compile(r"\$s12MartletProxy9EventLoopV3run")
LOG_THREAD = re.compile(r"\$s13MartletServer7LogSinkC4work")

COST = re.compile(r"[+\-*\d]")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")
RECURSION = re.compile(r"'\d+$")


@dataclasses.dataclass
class Profile:
    """The counts of one or several threads."""

    own: collections.Counter
    """Instructions of each function, without its callees."""
    calls: collections.Counter
    """How often each function was called."""

    edges: collections.Counter
    """The same for each pair of caller and callee."""

    @property
    def instructions(self):
        return self.own.total()

    def called(self, pattern):
        return sum(count for name, count in self.calls.items() if pattern.match(name))

    @property
    def allocations(self):
        return sum(
            count for (caller, callee), count in self.edges.items()
            if ALLOCATIONS.match(callee) and not ALLOCATORS.match(caller))

    def touches(self, pattern):
        return any(pattern.match(name) for name in self.own)

    def __add__(self, other):
        return Profile(self.own + other.own, self.calls + other.calls, self.edges + other.edges)


def read(path):
    """The profile in one callgrind file, in the format that its manual describes."""
    own, calls, edges, names = collections.Counter(), collections.Counter(), collections.Counter(), {}
    function, target, is_call = "", "", False

    def name(text):
        number, given = NAME.match(text).groups()
        if given is not None:
            names[number] = RECURSION.sub("", given)
        return names[number]

    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("fn="):
                function = name(line[3:-1])
            elif line.startswith("cfn="):
                target = name(line[4:-1])
            elif line.startswith("calls="):
                count = int(line[6:].split()[0])
                calls[target] += count
                edges[function, target] += count
                is_call = True
            elif COST.match(line):
                # The line after a call has the inclusive cost of the call.
                if not is_call:
                    own[function] += int(line.split()[1])
                is_call = False
    return Profile(own, calls, edges)
