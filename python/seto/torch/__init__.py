"""PyTorch over Seto: ``torch.distributed.init_process_group("seto")``.

Installed, the backend is known to torch without an import (entry point ``torch.backends``; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns
that off). ``pg_options=seto.torch.Options(codec="fp16")`` lets the sums of a group travel in a codec.
"""

import atexit
import dataclasses
import datetime
import functools
from typing import Any, Optional

import torch
import torch.distributed as dist

from seto.torch.hooks import backend_of, compress_hook

__all__ = ["ArgumentError", "Options", "compress_hook", "dump", "monitored_barrier", "register"]


class ArgumentError(ValueError, RuntimeError):
    """An argument that is wrong on this rank. (Of torch's backends some raise the one, some the other.)"""


@dataclasses.dataclass
class Options:
    """What a group may have besides what every backend has. Empty: as the environment says (SETO_CODEC, SETO_ALGORITHM)."""

    codec: str = ""
    algorithm: str = ""


@functools.lru_cache(maxsize=None)
def _native() -> Any:
    """The part in C++, loaded when the first group is made; told when the interpreter ends."""
    from seto.torch import _backend

    atexit.register(_backend.before_exit)
    return _backend


def _create(group: Any, options: Optional[Options]) -> Any:
    _backend = _native()
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options: a seto.torch.Options is wanted, not {type(options).__name__}")
    options = options or Options()
    if group.timeout <= datetime.timedelta(0):
        raise ArgumentError(f"seto: timeout: {group.timeout} is none; it is positive")
    return _backend.make_backend(
        group.store,
        group.group_rank,
        group.group_size,
        group.timeout,
        str(group.group_id),
        [int(rank) for rank in group.global_ranks_in_group],
        options.codec,
        options.algorithm,
    )


def register() -> None:
    """Makes "seto" known to torch; what ``import seto.torch`` does. A second time changes nothing."""
    if "SETO" not in dist.Backend._plugins:
        dist.Backend.register_backend("seto", _create, extended_api=True, devices=["cpu"])


def monitored_barrier(
    group: "Optional[dist.ProcessGroup]" = None, timeout: Optional[datetime.timedelta] = None, wait_all_ranks: bool = False
) -> None:
    """A barrier that raises after `timeout` (None: the group's), naming the ranks that have not come. (torch's own takes gloo alone.)"""
    backend = _backend_of(group)
    backend.monitored_barrier(timeout or _native().timeout_of(backend), wait_all_ranks)


def dump(group: "Optional[dist.ProcessGroup]" = None, *, json: bool = False) -> str:
    """What each rank of the group does at this moment, and the last calls by their names. Any thread, also while a call hangs.

    As JSON, the dumps of several ranks in files are what ``seto report`` reads.
    """
    return _native().dump(_backend_of(group), json)


def _backend_of(group: "Optional[dist.ProcessGroup]") -> Any:
    group = group or dist.group.WORLD
    if group is None:
        raise ValueError("seto: there is no process group: init_process_group comes first")
    return backend_of(group, torch.device("cpu"))


if dist.is_available():
    register()
