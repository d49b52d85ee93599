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
# Headers whose foreign header is absent on many machines: checked where it is found.
NEEDS = {"include/seto/mpi.h": "mpi.h"}
# Text included several times or in the middle of a file by design (highway's per-target inclusion).
NOT_ALONE = ("-inl.h",)


@dataclasses.dataclass(frozen=True)
class Compilers:
    c: str
    cxx: str


# These want torch, which a machine that builds the library alone does not have.
OF_TORCH = "src/torch/"


def check(tree: Tree, compilers: Compilers, cache: pathlib.Path | None):
    headers = (name for name in tree.sources() if name.endswith((".h", ".hpp")) and not name.endswith(NOT_ALONE))
    names = [name for name in headers if not name.startswith(OF_TORCH)]
    jobs = [(name, command) for name in names for command in commands(name, compilers)]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        results = pool.map(lambda job: compiled(tree, *job, cache), jobs)
        return [Breach(name, 1, f"does not compile alone ({command[0]}):\n{error}")
                for (name, command), error in zip(jobs, results) if error]


def commands(name: str, compilers: Compilers):
    missing = NEEDS.get(name)
    if missing and not can_include(missing, compilers):
        return
    common = ["-fsyntax-only", *WARNINGS, "-I.", "-Iinclude"]
    # A public header must also please a C++ user of an older standard than ours.
    standard = "-std=c++17" if name.startswith("include/") else "-std=c++20"
    yield [compilers.cxx, "-x", "c++", standard, *common]
    if name.startswith("include/") and name.endswith(".h"):
        yield [compilers.c, "-x", "c", "-std=c99", "-pedantic", *common]


def can_include(header: str, compilers: Compilers) -> bool:
    probe = [compilers.c, "-x", "c", "-fsyntax-only", "-"]
    return subprocess.run(probe, input=f"#include <{header}>\n", capture_output=True, text=True).returncode == 0


def compiled(tree: Tree, name: str, command: list[str], cache: pathlib.Path | None) -> str:
    """Empty, or what the compiler said."""
    mark = cache / digest(tree, name, command) if cache else None
    if mark and mark.exists():
        return ""
    # Through another file, because "#pragma once in main file" is a warning.
    run = subprocess.run([*command, "-"], input=f'#include "{name}"\n', capture_output=True, text=True, cwd=tree.root)
    if run.returncode != 0:
        return run.stderr.strip() or f"exit code {run.returncode}"
    if mark:
        cache.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return ""


def digest(tree: Tree, name: str, command: list[str]) -> str:
    """Of the compiler, the flags, and the text of the header and of all headers of the repository below it."""
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
