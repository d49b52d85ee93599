"""The repository as the checks see it: names and texts of files, and the folder of the design to which each belongs."""

import dataclasses
import functools
import pathlib
import subprocess

SOURCE_SUFFIXES = (".h", ".hpp", ".c", ".cc")
# Folders whose sub-folders are layers.
NESTED = ("src", "transports")
BINARY_SUFFIXES = (".png", ".svg", ".gz", ".bin")


@dataclasses.dataclass(frozen=True)
class Breach:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Tree:
    """root is None for a tree of a test. `others` are files without text, such as pictures."""

    files: dict[str, str]
    root: pathlib.Path | None = None
    others: frozenset[str] = frozenset()

    @staticmethod
    def of_repository(root: pathlib.Path) -> "Tree":
        texts, others = {}, set()
        for name in names_in(root):
            path = root / name
            if path.suffix in BINARY_SUFFIXES or path.is_symlink() or not path.is_file() or "_corpus/" in name:
                others.add(name)
                continue
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
        return Tree(texts, root, frozenset(others))

    @functools.lru_cache
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in self.files if name.endswith(SOURCE_SUFFIXES)))

    def lines(self, name: str) -> list[str]:
        return self.files[name].splitlines()

    def __hash__(self) -> int:
        return id(self)


def names_in(root: pathlib.Path) -> list[str]:
    """The files that git tracks or would track; without git (a source archive) every file except build trees."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(git, capture_output=True, check=True).stdout.decode()
        return sorted(set(filter(None, listing.split("\0"))))
    except (OSError, subprocess.CalledProcessError):
        relative = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return sorted(str(path) for path in relative if not path.parts[0].startswith(("build", ".")))


def folder_of(name: str) -> str:
    """The folder of a file: src/base/log.h -> src/base; transports/transport.h -> transports; bench/common/x.h -> bench."""
    parts = name.split("/")
    if parts[0] in NESTED and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]
