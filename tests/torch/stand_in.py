"""Puts seto in the place of gloo, for suites that know backends by their names: `gloo` then makes groups of seto.

`folder()` makes a directory that, on PYTHONPATH, does so in every process that imports torch, those that a suite starts included.
"""

import contextlib
import os
import shutil
import tempfile
import types
from typing import Any, Iterator

ENTRY = "[torch.backends]\nseto_stands_in = stand_in:take_its_place\n"


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
            timeout = getattr(timeout, "_timeout", timeout)  # options have it, too
            return seto.torch._native().make_backend(store, rank, size, timeout, "", [], "", "")

    class Logger(dist.Logger):
        """DDP's asks a group called gloo for what gloo's alone has, and ends the process."""

        def set_construction_data_and_log(self, *_: Any) -> None:
            pass

    dist.Logger = Logger
    Backend.options = property(lambda _: types.SimpleNamespace())  # torch tells gloo's more of the group
    distributed_c10d.ProcessGroupGloo = StandIn
    dist.ProcessGroupGloo = StandIn


@contextlib.contextmanager
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="seto_stand_in_") as path:
        shutil.copy(os.path.abspath(__file__), os.path.join(path, "stand_in.py"))
        described = os.path.join(path, "stand_in-0.dist-info")
        os.mkdir(described)
        with open(os.path.join(described, "entry_points.txt"), "w", encoding="ascii") as file:
            file.write(ENTRY)
        with open(os.path.join(described, "METADATA"), "w", encoding="ascii") as file:
            file.write("Metadata-Version: 2.1\nName: stand_in\nVersion: 0\n")
        yield path
