"""Communicators for programs without torch."""

import ctypes
from typing import Any, Optional

from seto._library import CallConfig, Config, function, version_code
from seto._memory import Memory, memory_of

_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}

_address, _count, _int, _handle = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
_config = ctypes.POINTER(CallConfig)

_init_environment = function("setoCommInitEnvironment", ctypes.POINTER(_handle), ctypes.POINTER(Config))
_destroy = function("setoCommDestroy", _handle)
_abort = function("setoCommAbort", _handle)
_rank = function("setoCommUserRank", _handle, ctypes.POINTER(_int))
_size = function("setoCommCount", _handle, ctypes.POINTER(_int))
_codec_id = function("setoCodecId", ctypes.c_char_p, ctypes.POINTER(_int))
_all_reduce = function("setoAllReduceConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_all_gather = function("setoAllGatherConfig", _address, _address, _count, _int, _handle, _handle, _config)
_reduce_scatter = function("setoReduceScatterConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_all_to_all = function("setoAlltoAllConfig", _address, _address, _count, _int, _handle, _handle, _config)
_broadcast = function("setoBroadcastConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_reduce = function("setoReduceConfig", _address, _address, _count, _int, _int, _int, _handle, _handle, _config)
_barrier = function("setoBarrierConfig", _handle, _handle, _config)
_send = function("setoSendConfig", _address, _count, _int, _int, _handle, _handle, _config)
_receive = function("setoRecvConfig", _address, _count, _int, _int, _handle, _handle, _config)


# Of truths: any of them, or all.
_OF_TRUTHS = {"sum": "max", "max": "max", "prod": "min", "min": "min"}


def _op(name: str, memory: Memory) -> int:
    if name not in _OPS:
        raise ValueError(f"op: '{name}' is none; there are {', '.join(_OPS)}")
    if memory.truths and name not in _OF_TRUTHS:
        raise ValueError(f"op: there is no {name} of truths; there are {', '.join(_OF_TRUTHS)}")
    return _OPS[_OF_TRUTHS[name] if memory.truths else name]


class Communicator:
    """All processes of the job that this one was started in, one rank each.

    The job is found in the environment: ``seto run``, Open MPI, MPICH, Intel MPI, Slurm, or the variables of torchrun; with none
    of them there is one rank alone. A second communicator is one of the same ranks, made by all of them in the same order.

    Every method that moves data blocks until this rank's part has ended, with the GIL released, and raises
    :class:`seto.SetoError` with the library's text. Arrays are whatever offers its memory by the buffer protocol (numpy, array,
    bytearray) or DLPack (torch, jax), dense and in host memory. One thread at a time.
    """

    def __init__(
        self,
        *,
        codec: Optional[str] = None,
        algorithm: Optional[str] = None,
        name: Optional[str] = None,
        timeout_s: Optional[float] = None,
    ) -> None:
        self._handle = _handle()
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(f"timeout_s: {timeout_s} is none; it is positive, or None for what SETO_OPERATION_TIMEOUT_MS says")
        config = Config(size=ctypes.sizeof(Config), magic=Config.MAGIC, version=version_code())
        config.codec = codec.encode() if codec else None
        config.algorithm = algorithm.encode() if algorithm else None
        config.name = name.encode() if name else None
        config.operation_timeout_ms = 0 if timeout_s is None else max(1, int(timeout_s * 1000))
        _init_environment(ctypes.byref(self._handle), ctypes.byref(config))
        found = _int()
        _rank(self._handle, ctypes.byref(found))
        self._rank = found.value
        _size(self._handle, ctypes.byref(found))
        self._size = found.value

    @property
    def rank(self) -> int:
        """Of this process, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._size

    def all_reduce(self, array: Any, op: str = "sum", *, out: Any = None, codec: Optional[str] = None) -> Any:
        """The reduction of every rank's array, on all ranks: in place, or into `out`. Gives where it is."""
        mine, into = self._pair(array, out)
        _all_reduce(mine.address, into.address, mine.count, mine.type, _op(op, mine), *self._how(codec))
        return array if out is None else out

    def reduce(self, array: Any, root: int, op: str = "sum") -> Any:
        """The same on the root alone; the arrays of the others stay as they are."""
        mine = memory_of(array, "array", writable=self.rank == root)
        _reduce(mine.address, mine.address, mine.count, mine.type, _op(op, mine), root, *self._how())
        return array

    def all_gather(self, array: Any, out: Any) -> Any:
        """Every rank's array, one after another in the order of ranks."""
        mine, into = memory_of(array, "array", writable=False), memory_of(out, "out", writable=True)
        self._same_type(mine, into)
        if into.count != mine.count * self.size:
            raise ValueError(f"out: {into.count} elements, but {self.size} ranks bring {mine.count} each")
        _all_gather(mine.address, into.address, mine.count, mine.type, *self._how())
        return out

    def reduce_scatter(self, array: Any, out: Any, op: str = "sum", *, codec: Optional[str] = None) -> Any:
        """Part `rank` of the reduction of every rank's array."""
        mine, into = memory_of(array, "array", writable=False), memory_of(out, "out", writable=True)
        self._same_type(mine, into)
        if mine.count != into.count * self.size:
            raise ValueError(f"array: {mine.count} elements, but {self.size} ranks take {into.count} each")
        _reduce_scatter(mine.address, into.address, into.count, mine.type, _op(op, mine), *self._how(codec))
        return out

    def all_to_all(self, array: Any, out: Any) -> Any:
        """Part r of `out` is part `rank` of rank r's array."""
        mine, into = self._pair(array, out)
        if mine.count % self.size != 0:
            raise ValueError(f"array: {mine.count} elements do not divide among {self.size} ranks")
        _all_to_all(mine.address, into.address, mine.count // self.size, mine.type, *self._how())
        return out

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """The root's array, on all ranks."""
        mine = memory_of(array, "array", writable=self.rank != root)
        _broadcast(mine.address, mine.address, mine.count, mine.type, root, *self._how())
        return array

    def send(self, array: Any, to: int) -> None:
        """Ends when the receiver, or the library, has taken it."""
        mine = memory_of(array, "array", writable=False)
        _send(mine.address, mine.count, mine.type, to, *self._how())

    def receive(self, array: Any, source: int) -> Any:
        """What rank `source` sends next."""
        into = memory_of(array, "array", writable=True)
        _receive(into.address, into.count, into.type, source, *self._how())
        return array

    def barrier(self) -> None:
        """Ends when every rank has come."""
        _barrier(*self._how())

    def abort(self) -> None:
        """Ends pending calls on all ranks; from any thread."""
        handle, self._handle = self._handle, _handle()
        if handle:
            _abort(handle)

    def close(self) -> None:
        """Local; a communicator that is collected closes itself."""
        handle, self._handle = self._handle, _handle()
        if handle:
            _destroy(handle)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close() if kind is None else self.abort()

    def __repr__(self) -> str:
        return f"seto.Communicator(rank {self.rank} of {self.size}{'' if self._handle else ', closed'})"

    # At the end of the interpreter the system takes back what there is.
    def __del__(self) -> None:
        if getattr(self, "_handle", None) and ctypes is not None:
            self.close()

    def _pair(self, array: Any, out: Any) -> "tuple[Memory, Memory]":
        mine = memory_of(array, "array", writable=out is None)
        into = mine if out is None else memory_of(out, "out", writable=True)
        self._same_type(mine, into)
        if into.count != mine.count:
            raise ValueError(f"out: {into.count} elements, but array has {mine.count}")
        return mine, into

    @staticmethod
    def _same_type(mine: Memory, into: Memory) -> None:
        if (mine.type, mine.truths) != (into.type, into.truths):
            raise ValueError("out: its elements are of another type than those of array")

    # What every call has at its end: the communicator, no stream, and the struct of the call.
    def _how(self, codec: Optional[str] = None) -> "tuple[Any, None, Any]":
        if not self._handle:
            raise ValueError("this communicator was closed")
        if codec is None:
            return self._handle, None, None
        found = _int()
        _codec_id(codec.encode(), ctypes.byref(found))
        config = CallConfig(size=ctypes.sizeof(CallConfig), magic=CallConfig.MAGIC, version=version_code(), codec=found.value)
        return self._handle, None, ctypes.byref(config)
