"""Finds text that no file may have: paths of one machine, waits by sleeping, unfinished marks, text of others, words without a
technical meaning, comments without a subject."""

import re

from scanner import blanked
from tree import SOURCE_SUFFIXES, Breach, Tree

# Built from parts, so that this file does not contain what it looks for.
_MACHINE_PATH = re.compile(r'(?<![\w.])/(?:ho' r'me|ro' r'ot|wo' r'rk|Us' r'ers)/[\w.]')
_UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|XX' r'X|HA' r'CK)\b')
_FOREIGN = re.compile(r'Copy' r'right (\(c\)|©|[12]\d\d\d)|SP' r'DX-|All rights ' r'reserved|Licensed un' r'der the', re.IGNORECASE)
_SLEEP = re.compile(r'\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\(')
_NO_SLEEP_IN = ("src/", "tests/", "transports/", "bench/", "algorithms/", "examples/")
# The licence is by its nature the text of others; the fixtures of the test hold what must be found.
_EXEMPT = ("LICENSE", "tests/tidy/tidy_test.py")

# Words of stories, each with the term of the field that says the same (docs/glossary.md). They are found in code, too: a variable
# with such a name leads to a comment with it.
_TERMS = {
    ("guest", "guests", "visitor", "visitors", "newcomer", "newcomers", "latecomer", "latecomers"): "rank, peer or connection",
    ("stranger", "strangers"): "unauthenticated peer or connection",
    ("neighbour", "neighbours", "neighbor", "neighbors", "acquaintance", "acquaintances"): "peer, or the next rank of a ring",
    ("door", "doors", "porch", "reception"): "listener or address",
    ("bell", "bells"): "wakeup or event",
    ("herald", "heralds", "bulletin", "bulletins"): "announcement or status record",
    ("mailbox", "mailboxes"): "slot, line or queue",
    ("encounter", "encounters"): "handshake or attempt",
    ("somebody", "nobody", "everybody", "anybody", "whoever"): "the thread, rank, peer or process that is meant",
}
_TERM_OF = {word: term for words, term in _TERMS.items() for word in words}
_STORY = re.compile(r"\b(" + "|".join(_TERM_OF) + r")\b", re.IGNORECASE)
_LIST_OF_WORDS = "tests/tidy/words.py"

# A comment that begins so has no subject, or a subject that the reader has to guess: "Of one thread", "Who calls it".
_FRAGMENT = re.compile(r"(?:Of|Who|Whose|Whoever|Whatever|What|That which)\b(?!\?)")
_COMMENT = re.compile(r"\s*(?://|#(?!include|if|el|endif|define|undef|pragma|error|!)|/\*+)\s?(.*)")
_COMMENTED = SOURCE_SUFFIXES + (".py", ".sh", ".cmake", "CMakeLists.txt")


def check(tree: Tree):
    for name, text in sorted(tree.files.items()):
        if name in _EXEMPT:
            continue
        yield from found(name, text, _MACHINE_PATH, "a path of one machine")
        yield from found(name, text, _UNFINISHED, "an unfinished mark: finish it, or say in the README what is missing")
        yield from found(name, text, _FOREIGN, "a mark of text by others")
        if name.startswith(_NO_SLEEP_IN) and name.endswith(SOURCE_SUFFIXES):
            yield from found(name, blanked(text), _SLEEP, "waiting by sleeping: wait for the event, with a deadline")
        if name != _LIST_OF_WORDS:
            yield from stories(name, text)
        if name.endswith(_COMMENTED):
            yield from fragments(name, text)


def stories(name: str, text: str):
    for match in _STORY.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Breach(name, line, f"'{match[0]}' is not a term of this field: write {_TERM_OF[match[0].lower()]}")


def fragments(name: str, text: str):
    """The first line of each comment block that is alone on its line."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = _COMMENT.match(line)
        if comment and not in_block and (begin := _FRAGMENT.match(comment[1])):
            yield Breach(name, number, f"a comment begins with '{begin[0]}': begin with the subject")
        in_block = comment is not None


def found(name: str, text: str, pattern: re.Pattern, why: str):
    for match in pattern.finditer(text):
        yield Breach(name, text.count("\n", 0, match.start()) + 1, f"{why}: {match[0].strip()}")
