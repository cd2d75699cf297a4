"""The words that this project gave up, each with the one that it uses. Looked for in Swift's comments, texts and names, and in pages.

One table, `WORDS`. Add a row for a word that was replaced everywhere; add to `allowed` where the word stays, such as a fixed
error code, a configuration key or an endpoint. What stands in backquotes in a comment or a page is code, and is not prose.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Word:
    """A word that was given up.

    `prose` is a regular expression for comments, string literals, test names and pages; a space in it is any white space.
    `names` are words of identifiers (`answer` is a word of `endAnswer` and of `answer_head`). `use` is what to write instead.
    `allowed` are regular expressions: an identifier, or a piece of prose around the word, that one of them matches may stay.
    """

    prose: str
    names: str
    use: str
    allowed: tuple = ()


BRITISH = " ".join(
    stem + "is" + end for stem in ("normal", "initial", "author", "serial", "optim", "synchron", "organ")
    for end in ("e", "ed", "es", "er", "ing"))

WORDS = [
    Word("answer(?:s|ing)?|(?:is|are|be|been) answered|answered (?:with|by|from|[1-5][0-9][0-9])", "answer answers answering",
         "response, reply; respond", (r"martlet wechat answer",)),
    Word("verdicts?", "verdict verdicts", "result (of an authentication or a verification), decision"),
    Word("judge(?:s|d)?|judging|judge?ments?", "judge judges judged judging judgement judgements judgment judgments",
         "authenticate, verify, decide, evaluate", (r"judging by",)),
    Word("", "place places", "slot, index, position, offset, entry, capacity, key", (r"(?i)in_?place", r"(?i)place_?holder")),
    Word("patience", "patience", "timeout (a length), deadline (an instant)"),
    Word("doubt(?:s|ed|ing)?", "doubt doubts doubted", "needs revalidation, revalidate"),
    Word("troubles?", "trouble troubles", "error, failure", (r"/simulator/",)),
    Word("flaws?", "flaw flaws", "error"),
    Word("mistakes?", "mistake mistakes", "error", (r"mistakes? (?:\w+ )?for\b",)),
    Word("refusals?", "refusal refusals", "rejection, error", (r"refusals_total", r"^(?:http2|proxyHeader)Refusals$")),
    Word("settle(?:s|d)?|settling", "settle settles settled settling", "complete, resolve, finish"),
    Word("wires?", "wire wires", "connection, transport, protocol, ciphertext"),
    Word("nobody(?:'s)?|anybody(?:'s)?|somebody(?:'s)?|everybody(?:'s)?", "nobody anybody somebody everybody",
         "anonymous, any client, another client, no one", allowed=("CURLOPT_NOBODY",)),
    Word("persons", "persons", "users, accounts, people"),
    Word("(?:is|are|be|was|were|been|being) told", "told", "is notified, receives, is reported"),
    Word("(?:is|are|was|were|be|been) away", "", "unavailable"),
    Word("pretended|stand-?ins?", "pretended", "simulated, simulator"),
    Word("heirs?|inheritance", "heir heirs inheritance", "successor, inherited sockets"),
    Word("greet(?:s|ed)?|good-?bye|farewell", "greet greets greeted goodbye farewell",
         "preamble, hello, close_notify, close reason"),
    Word("shak(?:e|es|ing) hands|shook hands", "hands", "handshake"),
    Word("rooms|(?:this|each|every|our|which|one|per|a|the) room(?! (?:for|left|to)\\b)", "", "module", (r"chat", r"/rooms")),
    Word("remember(?:s|ed|ing)?", "remember remembers remembered remembering", "cache, record, store"),
    Word("known again", "", "cached, a cache hit"),
    Word("at once", "", "immediately; at the same time"),
    Word("pieces? of work", "", "job"),
    Word("\\w*(?:normal|author|optim|serial|initial|synchron|recogn|organ|minim|maxim|util|custom|token|canonical|general|special"
         "|summar|emphas|categor|priorit|random)is(?:e|ed|es|er|ers|ing|ations?)", "", "American spelling: -ize"),
    Word("behaviours?|colour(?:s|ed)?|favour(?:s|ed|ite)?|honour(?:s|ed)?|neighbour(?:s|ing)?|defences?|offences?|licences?"
         "|centres?|artefacts?|grey", "", "American spelling"),
    Word("", f"{BRITISH} colour colours behaviour behaviours neighbour neighbours grey", "American spelling"),
]


def compiled(words):
    found = []
    for word in words:
        prose = re.compile(rf"\b(?<!-)(?:{word.prose.replace(' ', SPACE)})\b", re.IGNORECASE) if word.prose else None
        found.append((word, prose, set(word.names.split()), [re.compile(one) for one in word.allowed]))
    return found


SPACE = r"\s+"
COMPILED = compiled(WORDS)


NAME = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
CODE_SPAN = re.compile(r"(`+)(?:(?!\1)[^\n]|\n(?!\s*\n))+?\1")


def parts(name):
    """The words of an identifier, in lower case."""
    return {part.lower() for part in PART.findall(name)}


def words_in_swift(source, words=None):
    """Findings in one file as (line, rule, text); a name is reported where it first stands."""
    words = COMPILED if words is None else compiled(words)
    for line, text, _ in source.prose():
        yield from words_in_prose(text, words, lambda offset: line + text.count("\n", 0, offset))
    by_part = {}
    for word in words:
        for name in word[2]:
            by_part.setdefault(name, []).append(word)
    seen = {}
    for match in NAME.finditer(source.code):
        name = match.group(0)
        if name not in seen:
            is_sentence = name.startswith("_") and name.count("_") > 2
            seen[name] = "" if is_sentence else given_up(name, by_part)
            if seen[name]:
                yield source.line_of(match.start()), "given-up-word", f"'{name}': {seen[name]}"


def given_up(name, by_part):
    for part in sorted(parts(name) & by_part.keys()):
        for word, _, _, allowed in by_part[part]:
            if not any(one.search(name) for one in allowed):
                return f"for '{part}' write {word.use}"
    return ""


def words_in_page(text, words=None):
    """Findings in the prose of a page as (line, rule, text). `text` comes without its fenced blocks."""
    blanked = CODE_SPAN.sub(lambda match: re.sub(r"[^\n]", "\x00", match.group(0)), text)
    blanked = re.sub(r"\]\([^)\s]*\)", lambda match: "]" + "\x00" * (len(match.group(0)) - 1), blanked)
    yield from words_in_prose(blanked, COMPILED if words is None else compiled(words), lambda offset: blanked.count("\n", 0, offset) + 1)


def words_in_prose(text, words, line_of):
    for word, prose, _, allowed in words:
        for match in prose.finditer(text) if prose else ():
            around = text[max(0, match.start() - 24): match.end() + 24]
            if not any(one.search(around) for one in allowed):
                yield line_of(match.start()), "given-up-word", f"for '{' '.join(match.group(0).split())}' write {word.use}"
