"""Parses Swift source as far as the rules need it: comments and literals blanked out, braces matched."""

import re


class SwiftSource:
    """One file: its lines as written, and the same text with comments and literals replaced by spaces."""

    def __init__(self, text):
        self.text = text
        self.lines = text.split("\n")
        self.blanked = blank(text)
        self.code = "".join(self.blanked)
        self.code_lines = self.code.split("\n")

    def line_of(self, offset):
        """The line number, from 1, of an offset into the code."""
        return self.code.count("\n", 0, offset) + 1

    def prose(self):
        """What people read: (first line, text, offset) of the comments as one text, of each literal that is no single word, and of
        each name in backquotes. Code spans, comment marks and everything else are blanked out."""
        comments = ["\n" if char == "\n" else "\0" for char in self.text]
        for start, end in self.blanked.spans:
            text = self.text[start:end]
            if text.startswith(("//", "/*")):
                comments[start:end] = text
            elif re.search(r"\w\s+\w", text):
                yield self.line_of(start), text, start
        for match in re.finditer(r"`([^`\n]* [^`\n]*)`", self.text):
            if self.code[match.start()] == "_":
                yield self.line_of(match.start()), match.group(1), match.start()
        text = re.sub(r"(?<=\n)\0+(?=//)|/{2,3}|``?[^`\n]+``?", lambda match: spaces(match.group(0)), "\n" + "".join(comments))
        yield 0, text, 0

    def functions(self):
        """Every function, initializer, subscript and accessor with a body: (name, first line, number of lines)."""
        for match in FUNCTION.finditer(self.code):
            opening = body_start(self.code, match.end())
            if opening is None:
                continue
            closing = matching_brace(self.code, opening)
            first = self.line_of(match.start(1))
            yield match.group(0).strip(), first, self.line_of(closing) - first + 1

    def documented(self, index):
        """Whether the declaration on the line (from 0) is below a `///` comment, apart from attributes in between."""
        index -= 1
        while index >= 0:
            stripped = self.lines[index].strip()
            if stripped.startswith("///"):
                return True
            if not stripped.startswith(("@", "//", "#if", "#endif", "#else")) or stripped == "":
                return False
            index -= 1
        return False

    def comment_above(self, index):
        """Whether there is a comment on the line (from 0) or directly above it."""
        if "//" in self.lines[index]:
            return True
        index -= 1
        while index >= 0 and self.lines[index].strip().startswith("@"):
            index -= 1
        return index >= 0 and self.lines[index].strip().startswith("//")


FUNCTION = re.compile(r"(?<![\w.`])(func|init|deinit|subscript)\b(?=\s*[\w(<?!{`]|\s+[-+*/=<>!&|^~%])[^\n{(]*")


def body_start(code, offset):
    """The offset of the `{` that opens a declaration's body, or None where it has none."""
    depth = 0
    while offset < len(code):
        char = code[offset]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and char == "{":
            return offset
        elif depth == 0 and char in "};":
            return None
        elif depth == 0 and char == "\n" and DECLARATION.match(code, offset + 1):
            return None
        offset += 1
    return None


DECLARATION = re.compile(
    r"\s*(?:@|(?:public|package|private|fileprivate|internal|static|mutating|override|final|nonisolated|indirect)\b"
    r"|(?:func|var|let|init|deinit|subscript|case|struct|class|enum|actor|extension|protocol|import|typealias)\b)"
)


def matching_brace(code, opening):
    """The offset of the `}` that closes the `{` at `opening`; the end of the text where there is none."""
    depth = 0
    for offset in range(opening, len(code)):
        if code[offset] == "{":
            depth += 1
        elif code[offset] == "}":
            depth -= 1
            if depth == 0:
                return offset
    return len(code) - 1


class Blanked(list):
    """The characters of a text, and the spans of it that were overwritten."""

    def __init__(self, text):
        super().__init__(text)
        self.spans = []


def blank(text):
    """The text with every comment and literal overwritten by spaces; offsets and line ends stay."""
    out = Blanked(text)
    scan_code(text, 0, out, stop_at_parenthesis=False)
    return out


def spaces(text):
    """As many: a code span leaves something behind that no phrase reaches across."""
    return ("\0" if "`" in text else " ") * len(text)


def wipe(out, start, end):
    out.spans.append((start, min(end, len(out))))
    for offset in range(start, min(end, len(out))):
        if out[offset] != "\n":
            out[offset] = " "


def scan_code(text, offset, out, stop_at_parenthesis):
    """Scans code; returns the offset after the `)` that ends an interpolation, or the end of the text."""
    depth = 0
    while offset < len(text):
        if text.startswith("//", offset):
            end = text.find("\n", offset)
            end = len(text) if end < 0 else end
            wipe(out, offset, end)
            offset = end
        elif text.startswith("/*", offset):
            offset = scan_block_comment(text, offset, out)
        elif text[offset] in '"#' and LITERAL.match(text, offset):
            offset = scan_literal(text, offset, out)
        elif text[offset] == "`":
            end = text.find("`", offset + 1)
            end = len(text) if end < 0 else end + 1
            for inner in range(offset, end):
                if not (out[inner].isalnum() or out[inner] == "_"):
                    out[inner] = "_"
            offset = end
        else:
            if stop_at_parenthesis and text[offset] == "(":
                depth += 1
            elif stop_at_parenthesis and text[offset] == ")":
                depth -= 1
                if depth == 0:
                    return offset + 1
            offset += 1
    return offset


LITERAL = re.compile(r'(#*)("""|")')


def scan_block_comment(text, offset, out):
    start, depth = offset, 0
    while offset < len(text):
        if text.startswith("/*", offset):
            depth, offset = depth + 1, offset + 2
        elif text.startswith("*/", offset):
            depth, offset = depth - 1, offset + 2
            if depth == 0:
                break
        else:
            offset += 1
    wipe(out, start, offset)
    return offset


def scan_literal(text, offset, out):
    """Blanks a string literal, except for the code in its interpolations."""
    pounds, quotes = LITERAL.match(text, offset).groups()
    closing, escape = quotes + pounds, "\\" + pounds
    start, offset = offset, offset + len(pounds) + len(quotes)
    while offset < len(text):
        if text.startswith(closing, offset):
            offset += len(closing)
            break
        if text.startswith(escape + "(", offset):
            wipe(out, start, offset + len(escape))
            offset = scan_code(text, offset + len(escape), out, stop_at_parenthesis=True)
            start = offset
        elif text.startswith(escape, offset):
            offset += len(escape) + 1
        elif quotes == '"' and text[offset] == "\n":
            break
        else:
            offset += 1
    wipe(out, start, offset)
    return offset
