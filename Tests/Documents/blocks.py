"""The blocks of a page, and the commands of a block."""

import dataclasses
import re

FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
HEAD_COMMAND = re.compile(r"^#   ((?:martlet|curl|kill) .*?)(?:  +(.*))?$", re.MULTILINE)
SHELL = ("sh", "console")
# A line like this outside of a shell block is a command that would not be typed.
COMMAND = re.compile(r"(\$ )?(martlet|curl|make|swift|sudo|kill|mv|systemctl|sqlite3|openssl|docker|\./\w+) ")


@dataclasses.dataclass
class Block:
    """A fenced block of a page, with the line that its text begins on."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self):
        return f"{self.page}:{self.line}"


@dataclasses.dataclass
class Command:
    """One command of a shell block, without its comment."""

    block: Block
    text: str
    comment: str = ""


def blocks_of(page, text):
    """The fenced blocks of a page. A configuration file is one block, and the commands in its head comment another."""
    if page.endswith(".yaml"):
        found = [Command(None, *match.groups(default="")) for match in HEAD_COMMAND.finditer(text)]
        lines = "".join(f"{one.text}  # {one.comment}\n" for one in found)
        return [Block(page, 1, "yaml", text), Block(page, 1, "sh", lines)]
    return [
        Block(page, text.count("\n", 0, match.start()) + 2, match.group(2), match.group(3))
        for match in FENCE.finditer(text)
    ]


def commands_of(block):
    """The commands of a shell block, one to a line unless the line ends with a backslash."""
    for line in block.text.replace("\\\n", " ").splitlines():
        text, comment = split_comment(line.strip().removeprefix("$ "))
        if text:
            yield Command(block, text, comment)


def split_comment(line):
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place].strip(), line[place + 1:].strip()
    return line, ""
