"""Mutants of the product: patches of one to three lines, each with the guarantee that a simulated world must see violated.

A patch begins with `Invariant:`, `Mistake:` and `From:`, one line each, then an empty line and a diff of one hunk. `From:` is
`invented`, or `history` and the subject of the commit that mended such a mistake.
"""

import dataclasses
import pathlib
import re
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
CONTEXT = 3
MOST_LINES = 3
INVARIANTS = {
    "identity": "an upstream sees no identity that was not proved",
    "routing": "a request goes where its route says, and gets what is configured",
    "client-header": "an upstream sees no identity header that a client made",
    "one-response": "a request gets exactly one response, in its order, or a closed connection",
    "one-line": "a request has exactly one access line",
    "body": "bytes arrive whole and in order, or are visibly cut",
    "revocation": "no session works after its end was acknowledged; elsewhere a second and cache_ttl later",
    "refresh": "a session has one living pair; reuse ends it, a lost response does not",
    "deletion": "the deletion of an account reaches its end",
    "single-use": "what may be used once has an effect once",
    "outage": "an outage rejects no valid credential",
    "bounds": "slots, descriptors, memory and queues are bounded, and return to zero when traffic ends",
    "served": "nothing waits without a deadline; with the faults gone all is served within a minute",
    "crash": "the process lives",
}
NAME = re.compile(r"([0-9]{3})-([a-z0-9]+(?:-[a-z0-9]+)*)\.patch")
HUNK = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@.*")


class MutantError(Exception):
    """What is wrong with a patch."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    patch: pathlib.Path
    number: int
    name: str
    invariant: str
    mistake: str
    subject: str | None
    """The subject of the commit that mended it, or nothing where it is invented."""
    file: str
    line: int
    """Where the hunk begins, by its header."""
    hunk: tuple
    """The lines of the hunk, each with its sign."""

    def apply(self, tree):
        """Puts the mistake into a tree of sources."""
        self._git_apply(tree)

    def check(self, tree):
        """Raises where the patch does not apply to a tree of sources."""
        self._git_apply(tree, "--check")

    def touched(self, tree):
        """The numbers of the lines that it replaces, or of those before and after what it only adds."""
        lines = (pathlib.Path(tree) / self.file).read_text(encoding="utf-8").split("\n")
        old = [line[1:] for line in self.hunk if line[0] != "+"]
        begins = [at for at in range(len(lines) - len(old) + 1) if lines[at:at + len(old)] == old]
        if not begins:
            raise MutantError(f"{self.file} has no such lines")
        begin = min(begins, key=lambda at: abs(at + 1 - self.line))
        signs = "".join(line[0] for line in self.hunk)
        before, after = (len(signs) - len(rest) for rest in (signs.lstrip(" "), signs.rstrip(" ")))
        if before < min(CONTEXT, begin + before) or after < min(CONTEXT, len(lines) - 1 - begin - len(old) + after):
            raise MutantError(f"has fewer than {CONTEXT} lines around what it changes")
        line = begin + 1
        removed, around = set(), set()
        for text in self.hunk:
            if text[0] == "-":
                removed.add(line)
            elif text[0] == "+":
                around |= {line - 1, line}
            if text[0] != "+":
                line += 1
        return removed or around

    def _git_apply(self, tree, *options):
        command = ["git", "apply", *options, str(self.patch)]
        result = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if result.returncode != 0:
            raise MutantError("does not apply: " + result.stderr.strip().replace("\n", "; "))


def read(patch):
    """The mutant of a patch file."""
    name = NAME.fullmatch(patch.name)
    if not name:
        raise MutantError("is not called NNN-short-name.patch")
    header, _, diff = patch.read_text(encoding="utf-8").partition("\n\n")
    fields = [line.partition(": ")[::2] for line in header.split("\n")]
    if [key for key, _ in fields] != ["Invariant", "Mistake", "From"]:
        raise MutantError("does not begin with the lines Invariant, Mistake and From")
    invariant, mistake, source = (value for _, value in fields)
    if invariant not in INVARIANTS:
        raise MutantError(f"has the unknown invariant {invariant!r}")
    if not mistake.endswith("."):
        raise MutantError("says no mistake in a sentence")
    history = re.fullmatch(r"invented|history (\S.*)", source)
    if not history:
        raise MutantError("is neither `From: invented` nor `From: history SUBJECT`")
    file, line, hunk = read_diff(diff)
    return Mutant(patch, int(name[1]), name[2], invariant, mistake, history[1], file, line, hunk)


def read_diff(diff):
    lines = diff.rstrip("\n").split("\n")
    heads = [re.fullmatch(form, line) for form, line in zip(
        (r"diff --git a/(\S+) b/\1", r"--- a/(\S+)", r"\+\+\+ b/(\S+)", HUNK), lines)]
    if len(heads) < 4 or not all(heads) or len({head[1] for head in heads[:3]}) != 1:
        raise MutantError("is not the diff of one file")
    hunk = tuple(line or " " for line in lines[4:])
    if any(line[0] not in " -+" for line in hunk):
        raise MutantError("has not exactly one hunk")
    if not 1 <= max(sum(line[0] == sign for line in hunk) for sign in "-+") <= MOST_LINES:
        raise MutantError(f"changes more than {MOST_LINES} lines, or none")
    return heads[0][1], int(heads[3][1]), hunk
