"""The repository as the checks see it: names and texts of files, and to which folder of the design each belongs."""

import dataclasses
import functools
import pathlib
import subprocess

SOURCE_SUFFIXES = (".h", ".hpp", ".c", ".cc")
# Layers with sub-folders that are layers of their own.
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
    """root is None for a tree made up by a test."""

    files: dict[str, str]
    root: pathlib.Path | None = None

    @staticmethod
    def of_repository(root: pathlib.Path) -> "Tree":
        texts = {}
        for name in names_in(root):
            path = root / name
            if path.suffix in BINARY_SUFFIXES or path.is_symlink() or not path.is_file() or "_corpus/" in name:
                continue
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
        return Tree(texts, root)

    @functools.lru_cache
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in self.files if name.endswith(SOURCE_SUFFIXES)))

    def lines(self, name: str) -> list[str]:
        return self.files[name].splitlines()

    def __hash__(self) -> int:
        return id(self)


def names_in(root: pathlib.Path) -> list[str]:
    """What git tracks or would track; every file but build trees where there is no git (a source archive)."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(git, capture_output=True, check=True).stdout.decode()
        return sorted(set(filter(None, listing.split("\0"))))
    except (OSError, subprocess.CalledProcessError):
        relative = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return sorted(str(path) for path in relative if not path.parts[0].startswith(("build", ".")))


def folder_of(name: str) -> str:
    """src/base/log.h -> src/base; transports/transport.h -> transports; bench/common/x.h -> bench."""
    parts = name.split("/")
    if parts[0] in NESTED and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]
