"""Replaces gloo by seto, for suites that select backends by name: `gloo` then makes groups of seto.

`folder()` makes a directory that, on PYTHONPATH, does so in every process that imports torch, including those that a suite starts.
It uses a sitecustomize.py, because torch 2.4 loads no plugins by itself.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import shutil
import sys
import tempfile
import types
from typing import Any, Iterator

PREFIX = "seto_stand_in_"
AT_START = "import stand_in, sys; sys.meta_path.insert(0, stand_in.AfterTorch())\n"


class AfterTorch(importlib.abc.MetaPathFinder):
    """Replaces gloo when the import of torch has ended."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch" or "torch" in sys.modules:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_then_take_its_place(module: types.ModuleType) -> None:
            run(module)
            take_its_place()

        spec.loader.exec_module = run_then_take_its_place  # type: ignore[method-assign]
        return spec


def take_its_place() -> None:
    import torch.distributed as dist
    from torch._C._distributed_c10d import Backend
    from torch.distributed import distributed_c10d

    import seto.torch

    original = distributed_c10d.ProcessGroupGloo

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (original, Backend))

        def __getattr__(cls, name: str) -> Any:
            return getattr(original, name)

    class StandIn(metaclass=Kind):
        def __new__(cls, store: Any, rank: int, size: int, timeout: Any = distributed_c10d.default_pg_timeout) -> Any:
            timeout = getattr(timeout, "_timeout", timeout)  # options have it too
            return seto.torch._native().make_backend(store, rank, size, timeout, "", [], "", "")

    class Logger(dist.Logger):
        """DDP's logger asks a group named gloo for data that only gloo has, and ends the process."""

        def set_construction_data_and_log(self, *_: Any) -> None:
            pass

    dist.Logger = Logger
    Backend.create_device = staticmethod(lambda **_: None)  # part of gloo's options
    Backend.options = property(lambda _: types.SimpleNamespace())  # torch passes more about the group to gloo
    distributed_c10d.ProcessGroupGloo = StandIn
    dist.ProcessGroupGloo = StandIn


@contextlib.contextmanager
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix=PREFIX) as path:
        shutil.copy(os.path.abspath(__file__), os.path.join(path, "stand_in.py"))
        with open(os.path.join(path, "sitecustomize.py"), "w", encoding="ascii") as file:
            file.write(AT_START)
        yield path
