"""The parts of C++ that tidy needs: code without comments and literals, and the first and last line of functions."""

import dataclasses
import re

_SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/'                       # comments
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # raw strings
    r'|"(?:[^"\\\n]|\\.)*"'                     # strings
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'",     # characters, not the separators of 1'000
    re.DOTALL)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*', re.MULTILINE)
_ACCESS = re.compile(r'\b(public|protected|private)\s*:(?!:)')
# Keywords before a brace that does not open a function.
_SCOPE = re.compile(r'\b(namespace|class|struct|union|enum|extern)\b')
_CONTROL = re.compile(r'\b(if|for|while|switch|catch|do|else|try)\b')


def blanked(text: str) -> str:
    """The text with comments and literals replaced by spaces; line breaks stay, so that positions keep their line."""
    def spaces(match):
        return re.sub(r'[^\n]', ' ', match[0])
    return _DIRECTIVE.sub(spaces, _SKIPPED.sub(spaces, text))


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    first: int  # line of its signature
    last: int   # line of its closing brace

    @property
    def length(self) -> int:
        return self.last - self.first + 1


def functions(text: str) -> list[Function]:
    """Finds the outermost function bodies; a lambda is part of the function around it."""
    code = _ACCESS.sub(lambda match: ' ' * (len(match[0]) - 1) + ';', blanked(text))
    found, stack, start = [], [], 0
    inside = 0  # depth of braces in the function now open
    for position, letter in enumerate(code):
        if letter == '{':
            head = code[start:position]
            function = not inside and is_function(head)
            stack.append((function, head, start))
            if function or inside:
                inside += 1
            start = position + 1
        elif letter == '}' and stack:
            function, head, opened = stack.pop()
            if inside:
                inside -= 1
            if function:
                lead = len(head) - len(head.lstrip())
                found.append(Function(name_in(head), code.count('\n', 0, opened + lead) + 1, code.count('\n', 0, position) + 1))
            start = position + 1
        elif letter == ';':
            start = position + 1
    return found


def is_function(head: str) -> bool:
    """Whether the text between the last ; { } and a brace announces a function."""
    plain = re.sub(r'\btemplate\s*<[^{}]*?>\s*(?=\S)', ' ', head)
    plain = re.sub(r'\[\[[^\]]*\]\]', ' ', plain)
    before = plain.split('(', 1)[0]
    if '(' not in plain or '=' in re.sub(r'operator\s*[=!<>+\-*/&|^]*=', '', before):
        return False
    return not _SCOPE.search(before) and not _CONTROL.search(before)


def name_in(head: str) -> str:
    names = re.findall(r'([\w:~]+)\s*\(', head)
    return names[0] if names else '?'
