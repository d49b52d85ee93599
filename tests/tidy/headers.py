"""Every header compiles alone; the C header also as C99, pedantically."""

import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess

from layering import included
from tree import Breach, Tree

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
PARALLEL = 2
# Headers that need a foreign header, which many machines lack; they are checked where it is found.
NEEDS = {"include/seto/mpi.h": "mpi.h"}
# Files that are included several times or in the middle of a file by design (highway's per-target inclusion).
NOT_ALONE = ("-inl.h",)


@dataclasses.dataclass(frozen=True)
class Compilers:
    c: str
    cxx: str


# These need torch, which a machine that builds only the library lacks.
OF_TORCH = ("src/torch/", "tests/torch/")


def check(tree: Tree, compilers: Compilers, cache: pathlib.Path | None):
    headers = (name for name in tree.sources() if name.endswith((".h", ".hpp")) and not name.endswith(NOT_ALONE))
    names = [name for name in headers if not name.startswith(OF_TORCH) and not is_first_of_its_source(tree, name)]
    jobs = [(name, command) for name in names for command in commands(name, compilers)]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        results = pool.map(lambda job: compiled(tree, *job, cache), jobs)
        return [Breach(name, 1, f"does not compile alone ({command[0]}):\n{error}")
                for (name, command), error in zip(jobs, results) if error]


def is_first_of_its_source(tree: Tree, name: str) -> bool:
    """The build itself compiles such a header alone: its source includes it before anything else. Not so in tests, where
    precompiled headers would hide that an include is missing."""
    source = f"{os.path.splitext(name)[0]}.cc"
    if name.startswith("tests/") or source not in tree.files:
        return False
    first = next((line for line in tree.lines(source) if line.startswith("#include")), "")
    return first == f'#include "{name}"'


def commands(name: str, compilers: Compilers):
    missing = NEEDS.get(name)
    if missing and not can_include(missing, compilers):
        return
    common = [*WARNINGS, "-I.", "-Iinclude"]
    # A public header must also compile for a C++ user of an older standard.
    standard = "-std=c++17" if name.startswith("include/") else "-std=c++20"
    yield [compilers.cxx, "-x", "c++", standard, *common]
    if name.startswith("include/") and name.endswith(".h"):
        yield [compilers.c, "-x", "c", "-std=c99", "-pedantic", *common]


def can_include(header: str, compilers: Compilers) -> bool:
    probe = [compilers.c, "-x", "c", "-fsyntax-only", "-"]
    return subprocess.run(probe, input=f"#include <{header}>\n", capture_output=True, text=True).returncode == 0


def compiled(tree: Tree, name: str, command: list[str], cache: pathlib.Path | None) -> str:
    """The compiler's output; empty on success."""
    mark = cache / digest(tree, name, command) if cache else None
    if mark and mark.exists():
        return ""
    # Another file includes the header, because "#pragma once in main file" is a warning.
    including = f'#include "{name}"\n'
    if mark and shutil.which("ccache"):
        run = compiled_by_ccache(tree, including, command, cache)
    else:
        run = subprocess.run([*command, "-fsyntax-only", "-"], input=including, capture_output=True, text=True, cwd=tree.root)
    if run.returncode != 0:
        return run.stderr.strip() or f"exit code {run.returncode}"
    if mark:
        cache.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return ""


def compiled_by_ccache(tree: Tree, including: str, command: list[str], cache: pathlib.Path):
    """A fresh clone takes the results of an earlier one: 4 minutes of compilation become seconds. ccache neither reads standard
    input nor keeps -fsyntax-only, and it finds a result again under the same relative path only."""
    folder = cache / "including"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / hashlib.sha256((including + repr(command)).encode()).hexdigest()
    source.write_text(including, encoding="utf-8")
    relative = os.path.relpath(source, tree.root)
    try:
        return subprocess.run(["ccache", *command, "-c", relative, "-o", f"{relative}.o"], capture_output=True, text=True, cwd=tree.root)
    finally:
        source.with_suffix(".o").unlink(missing_ok=True)


def digest(tree: Tree, name: str, command: list[str]) -> str:
    """A hash of the compiler, the flags, and the text of the header and of all headers of the repository that it includes."""
    compiler = shutil.which(command[0]) or command[0]
    version = os.path.getmtime(os.path.realpath(compiler)) if os.path.exists(compiler) else 0
    state = hashlib.sha256(repr((name, command, version)).encode())
    for path in closure(tree, name):
        state.update(path.encode() + b"\0" + tree.files[path].encode() + b"\0")
    return state.hexdigest()


def closure(tree: Tree, name: str) -> list[str]:
    seen, waiting = set(), [name]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [target for _, target in included(tree, path)]
    return sorted(seen)
