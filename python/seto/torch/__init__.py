"""PyTorch over Seto: ``torch.distributed.init_process_group("seto")``.

Once installed, the backend is known to torch without an import (entry point ``torch.backends``; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns
that off). ``pg_options=seto.torch.Options(codec="fp16")`` permits a codec for the sums of a group.
"""

import atexit
import dataclasses
import datetime
import functools
from typing import Any, Optional

import torch
import torch.distributed as dist

from seto.torch.hooks import backend_of, compress_hook

__all__ = ["ArgumentError", "Options", "compress_hook", "dump", "empty", "empty_like", "monitored_barrier", "register"]


class ArgumentError(ValueError, RuntimeError):
    """A wrong argument on this rank. It is both exceptions, because some of torch's backends raise one and some the other."""


@dataclasses.dataclass
class Options:
    """Options of a group beyond those of every backend. An empty one takes the environment's value (SETO_CODEC, SETO_ALGORITHM)."""

    codec: str = ""
    algorithm: str = ""


@functools.lru_cache(maxsize=None)
def _native() -> Any:
    """The C++ module. It is loaded for the first group, and is notified when the interpreter ends."""
    from seto.torch import _backend

    atexit.register(_backend.before_exit)
    return _backend


def _create(group: Any, options: Optional[Options]) -> Any:
    _backend = _native()
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options: a seto.torch.Options is expected, not {type(options).__name__}")
    options = options or Options()
    if group.timeout <= datetime.timedelta(0):
        raise ArgumentError(f"seto: timeout: {group.timeout} is not valid; it must be positive")
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
    """Registers the backend "seto" with torch; ``import seto.torch`` calls it. A second call changes nothing."""
    if "SETO" not in dist.Backend._plugins:
        _outside_of_new_groups()
        dist.Backend.register_backend("seto", _create, extended_api=True, devices=["cpu", "cuda"])


def _outside_of_new_groups() -> None:
    """If the default group was made with device_id, new_group asks the ranks outside the new group to take part in a split.

    It expects that every backend that splits has this call, which torch gives to NCCL's only. Splits of seto need no other ranks.
    """
    base = torch._C._distributed_c10d.Backend
    if not hasattr(base, "perform_nocolor_split"):
        base.perform_nocolor_split = lambda _backend, _device: None


def monitored_barrier(
    group: "Optional[dist.ProcessGroup]" = None, timeout: Optional[datetime.timedelta] = None, wait_all_ranks: bool = False
) -> None:
    """A barrier that raises after `timeout` (None: the group's) and names the missing ranks. (torch's own one accepts only gloo.)"""
    backend = _backend_of(group)
    backend.monitored_barrier(timeout or _native().timeout_of(backend), wait_all_ranks)


def dump(group: "Optional[dist.ProcessGroup]" = None, *, json: bool = False, device: Any = "cpu") -> str:
    """The current state of each rank of the group, and the last calls on tensors of the device ("cpu", or "cuda:0" after a call on it).

    Any thread may call it, also while a call hangs. ``seto report`` reads files with the JSON dumps of several ranks.
    """
    return _native().dump(_backend_of(group), torch.device(device), json)


def empty(*size: Any, dtype: "Optional[torch.dtype]" = None) -> torch.Tensor:
    """A dense tensor in host memory that other processes of the host read where it lies, so collectives on it copy less.

    Like ``torch.empty(*size, dtype=dtype)``, but its elements are zero. It pays from some 16 KiB on, for tensors that live long: an
    allocation takes a system call and clears its pages. A child that this process forks shares the memory (see :func:`seto.allocate`).
    """
    from seto._allocation import allocate

    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    dtype = dtype or torch.get_default_dtype()
    if any(length < 0 for length in shape):
        raise ValueError(f"size: {tuple(shape)}: a dimension is negative")
    if shape.numel() == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(allocate(shape.numel() * torch.empty(0, dtype=dtype).element_size()), dtype=dtype).view(shape)


def empty_like(tensor: torch.Tensor) -> torch.Tensor:
    """The same with the shape and type of a tensor, whatever its strides and device."""
    return empty(tensor.shape, dtype=tensor.dtype)


def _backend_of(group: "Optional[dist.ProcessGroup]") -> Any:
    group = group or dist.group.WORLD
    if group is None:
        raise ValueError("seto: there is no process group: call init_process_group first")
    devices = group._device_types  # a group may be one of CUDA devices only
    return backend_of(group, torch.device("cpu") if torch.device("cpu") in devices or not devices else devices[0])


if dist.is_available():
    register()
