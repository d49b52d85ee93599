"""Paths that texts name in backticks exist, because a guide to a missing file is worse than none."""

import pathlib
import re

from tree import Breach, Tree

_PATH = re.compile(r'`((?:src|transports|algorithms|include|docs|bench|examples|tests|cmake|python)/[\w./-]+)`')
_LINK = re.compile(r'\]\((?!https?:|#)([^)\s#]+)[^)]*\)')
# A changelog and decisions describe the past, and SUITES.md lists PyTorch's files.
_HISTORY = ("CHANGELOG.md", "docs/decisions/0", "src/torch/SUITES.md")


def check(tree: Tree):
    folders = {str(parent) for name in tree.files for parent in pathlib.PurePosixPath(name).parents}
    known = folders | set(tree.files) | tree.others
    for name in sorted(tree.files):
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(tree.lines(name), 1):
            targets = [] if name.startswith(_HISTORY) else [match[1] for match in _PATH.finditer(line)]
            targets += [resolved(name, match[1]) for match in _LINK.finditer(line)]
            for target in targets:
                if not exists(target.rstrip("/"), known):
                    yield Breach(name, number, f"names {target}, which does not exist")


def resolved(name: str, target: str) -> str:
    """The target of a document's link, as a path from the root."""
    parts = []
    for part in (pathlib.PurePosixPath(name).parent / target).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def exists(target: str, known: set) -> bool:
    """A path may stand for a unit (a header and its source) or for a test program."""
    return target in known or any(f"{target}{suffix}" in known for suffix in (".h", ".cc", ".py"))
