"""Communicators for programs without torch."""

import ctypes
import os
import threading
import time
from typing import Any, Callable, Optional

from seto._library import IN_PROGRESS, SUCCESS, TIMEOUT, CallConfig, Config, answering, check, failure_of, function, version_code
from seto._memory import Memory, memory_of

_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}

_address, _count, _int, _handle = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
_config = ctypes.POINTER(CallConfig)

_init_environment = answering("setoCommInitEnvironment", ctypes.POINTER(_handle), ctypes.POINTER(Config))
_destroy = answering("setoCommDestroy", _handle)
_abort = answering("setoCommAbort", _handle)
_rank = function("setoCommUserRank", _handle, ctypes.POINTER(_int))
_size = function("setoCommCount", _handle, ctypes.POINTER(_int))
_codec_id = answering("setoCodecId", ctypes.c_char_p, ctypes.POINTER(_int))
_all_reduce = answering("setoAllReduceConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_all_gather = answering("setoAllGatherConfig", _address, _address, _count, _int, _handle, _handle, _config)
_reduce_scatter = answering("setoReduceScatterConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_all_to_all = answering("setoAlltoAllConfig", _address, _address, _count, _int, _handle, _handle, _config)
_broadcast = answering("setoBroadcastConfig", _address, _address, _count, _int, _int, _handle, _handle, _config)
_reduce = answering("setoReduceConfig", _address, _address, _count, _int, _int, _int, _handle, _handle, _config)
_barrier = answering("setoBarrierConfig", _handle, _handle, _config)
_send = answering("setoSendConfig", _address, _count, _int, _int, _handle, _handle, _config)
_receive = answering("setoRecvConfig", _address, _count, _int, _int, _handle, _handle, _config)
_state = function("setoCommGetAsyncError", _handle, ctypes.POINTER(_int))
_make_stream = answering("setoStreamCreate", ctypes.POINTER(_handle))
_end_stream = answering("setoStreamDestroy", _handle)
_position_of = answering("setoStreamPosition", _handle, ctypes.POINTER(ctypes.c_uint64))
_wait_for = answering("setoStreamWait", _handle, ctypes.c_uint64, ctypes.c_uint32)
_poll = answering("setoStreamPoll", _handle, ctypes.c_uint64)

# The interval at which a wait lets the interpreter run signal handlers, for example after Ctrl-C.
_LOOK_MS = 100
_LOOK_AT_INIT_S = 0.002
_SETO_ON, _SETO_OFF = 1, 2


# Reductions of bool: any value true, or all values true.
_OF_TRUTHS = {"sum": "max", "max": "max", "prod": "min", "min": "min"}


def _op(name: str, memory: Memory) -> int:
    if name not in _OPS:
        raise ValueError(f"op: '{name}' is unknown; the operations are {', '.join(_OPS)}")
    if memory.truths and name not in _OF_TRUTHS:
        raise ValueError(f"op: '{name}' is not defined for bool; the operations are {', '.join(_OF_TRUTHS)}")
    return _OPS[_OF_TRUTHS[name] if memory.truths else name]


def _id_of(codec: str) -> int:
    found = _int()
    check(_codec_id(codec.encode(), ctypes.byref(found)))
    return found.value


class Communicator:
    """A communicator of all processes of this job, one rank in each.

    The environment describes the job: ``seto run``, Open MPI, MPICH, Intel MPI, Slurm, or the variables of torchrun; with none
    of them there is one rank. A second communicator has the same ranks; all of them make their communicators in the same order.

    Every method that moves data blocks until this rank's part has ended, with the GIL released, and raises
    :class:`seto.SetoError` with the library's text. Arrays are objects that offer their memory by the buffer protocol (numpy, array,
    bytearray) or DLPack (torch, jax), dense and in host memory. One thread at a time.

    Ctrl-C, or any exception of a signal handler, ends a wait for the other ranks within a tenth of a second, and the communicator
    with it; the other ranks learn of it at once.
    """

    def __init__(
        self,
        *,
        codec: Optional[str] = None,
        algorithm: Optional[str] = None,
        name: Optional[str] = None,
        timeout_s: Optional[float] = None,
    ) -> None:
        self._handle, self._stream = _handle(), _handle()
        self._process = os.getpid()
        self._lock = threading.RLock()  # guards the handles; it is never held during a wait for a peer
        self._lent: "Optional[tuple[Memory, ...]]" = None  # the memory that the call under way uses
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(f"timeout_s: {timeout_s} is not valid; pass a positive number, or None for SETO_OPERATION_TIMEOUT_MS")
        config = Config(size=ctypes.sizeof(Config), magic=Config.MAGIC, version=version_code())
        config.codec = codec.encode() if codec else None
        config.algorithm = algorithm.encode() if algorithm else None
        config.name = name.encode() if name else None
        config.operation_timeout_ms = 0 if timeout_s is None else max(1, int(timeout_s * 1000))
        self._config = CallConfig(size=ctypes.sizeof(CallConfig), magic=CallConfig.MAGIC, version=version_code(), waits_next=_SETO_ON)
        self._position = ctypes.c_uint64()
        self._by_config, self._by_position = ctypes.byref(self._config), ctypes.byref(self._position)  # made once for all calls
        self._make(config)
        found = _int()
        _rank(self._handle, ctypes.byref(found))
        self._rank = found.value
        _size(self._handle, ctypes.byref(found))
        self._size = found.value

    @property
    def rank(self) -> int:
        """The rank of this process, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def all_reduce(self, array: Any, op: str = "sum", *, out: Any = None, codec: Optional[str] = None) -> Any:
        """Reduces the arrays of all ranks, on all ranks: in place, or into `out`. Returns the array with the result."""
        mine, into = self._pair(array, out)
        self._call((mine, into), _all_reduce, mine.address, into.address, mine.count, mine.type, _op(op, mine), codec=codec)
        return array if out is None else out

    def reduce(self, array: Any, root: int, op: str = "sum") -> Any:
        """Reduces the arrays of all ranks on the root only; the arrays of the other ranks do not change."""
        mine = memory_of(array, "array", writable=self.rank == root)
        self._call((mine,), _reduce, mine.address, mine.address, mine.count, mine.type, _op(op, mine), root)
        return array

    def all_gather(self, array: Any, out: Any) -> Any:
        """Collects the arrays of all ranks, in the order of ranks."""
        mine, into = memory_of(array, "array", writable=False), memory_of(out, "out", writable=True)
        self._same_type(mine, into)
        if into.count != mine.count * self.size:
            raise ValueError(f"out: {into.count} elements, but {self.size} ranks pass {mine.count} each")
        self._call((mine, into), _all_gather, mine.address, into.address, mine.count, mine.type)
        return out

    def reduce_scatter(self, array: Any, out: Any, op: str = "sum", *, codec: Optional[str] = None) -> Any:
        """Reduces the arrays of all ranks; each rank receives the part with its number."""
        mine, into = memory_of(array, "array", writable=False), memory_of(out, "out", writable=True)
        self._same_type(mine, into)
        if mine.count != into.count * self.size:
            raise ValueError(f"array: {mine.count} elements, but {self.size} ranks receive {into.count} each")
        self._call((mine, into), _reduce_scatter, mine.address, into.address, into.count, mine.type, _op(op, mine), codec=codec)
        return out

    def all_to_all(self, array: Any, out: Any) -> Any:
        """Sends part r of the array to rank r; part r of `out` is this rank's part of the array of rank r."""
        mine, into = self._pair(array, out)
        if mine.count % self.size != 0:
            raise ValueError(f"array: {mine.count} elements do not divide among {self.size} ranks")
        self._call((mine, into), _all_to_all, mine.address, into.address, mine.count // self.size, mine.type)
        return out

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Copies the array of the root to all ranks."""
        mine = memory_of(array, "array", writable=self.rank != root)
        self._call((mine,), _broadcast, mine.address, mine.address, mine.count, mine.type, root)
        return array

    def send(self, array: Any, to: int) -> None:
        """Sends an array. Returns when the receiver, or a buffer of the library, has it."""
        mine = memory_of(array, "array", writable=False)
        self._call((mine,), _send, mine.address, mine.count, mine.type, to)

    def receive(self, array: Any, source: int) -> Any:
        """Receives the next array that rank `source` sends."""
        into = memory_of(array, "array", writable=True)
        self._call((into,), _receive, into.address, into.count, into.type, source)
        return array

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._call((), _barrier)

    def abort(self) -> None:
        """Ends pending calls on all ranks. Any thread may call it."""
        with self._lock:
            none, mine = _handle(), self._is_of_this_process()
            handle, self._handle = self._handle, none  # no signal handler runs between this line and the end of the next
            if handle and mine:
                _abort(handle)
            if self._lent is None:  # otherwise the call under way closes the handle
                self._drop_stream()

    def close(self) -> None:
        """Closes this rank's communicator; other ranks need not call it. A call that is under way is aborted. Garbage collection closes too."""
        with self._lock:
            if self._lent is not None:
                self.abort()
                return
            self._drop_stream()
            none, mine = _handle(), self._is_of_this_process()
            handle, self._handle = self._handle, none
            if handle and mine:
                check(_destroy(handle))

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close() if kind is None else self.abort()

    def __repr__(self) -> str:
        return f"seto.Communicator(rank {self.rank} of {self.size}{'' if self._handle else ', closed'})"

    # When the interpreter ends, the operating system frees the rest.
    def __del__(self) -> None:
        if getattr(self, "_handle", None) and ctypes is not None:
            self.close()

    # In a forked child the communicator cannot be used or closed.
    def _is_of_this_process(self) -> bool:
        return os.getpid() == self._process

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

    # The init does not block, so that Ctrl-C ends the wait for ranks that never join.
    def _make(self, config: Config) -> None:
        config.blocking = _SETO_OFF
        code = _init_environment(ctypes.byref(self._handle), ctypes.byref(config))
        try:
            while code == IN_PROGRESS:
                state = _int()
                _state(self._handle, ctypes.byref(state))
                code = state.value
                if code == IN_PROGRESS:
                    time.sleep(_LOOK_AT_INIT_S)
            check(code, self._handle)
        except BaseException:
            try:
                self.abort()
            finally:  # as in _call
                self.abort()
            raise

    # The call is queued on a stream and waited for in intervals, between which the interpreter runs signal handlers. An exception here
    # comes from such a handler, since the library returns its failures as values. It ends the call, after which the library no longer
    # writes to the caller's memory.
    def _call(self, lent: "tuple[Memory, ...]", called: Callable[..., int], *arguments: Any, codec: Optional[str] = None) -> None:
        number = 0 if codec is None else _id_of(codec)
        if self._lent is not None:
            raise RuntimeError("a call of this communicator is under way: one at a time")
        try:
            self._lent = lent
            failure = self._queue(called, arguments, number) or self._wait()
        except BaseException:
            try:
                self._give_up()
            finally:  # if two signals arrive at once, the second is raised while the first is handled
                self._give_up()
            raise
        finally:
            self._lent = None
        if failure is not None:
            self._drop_stream()  # it keeps its first failure; the communicator may be usable
            raise failure

    def _queue(self, called: Callable[..., int], arguments: "tuple[Any, ...]", codec: int) -> Optional[Exception]:
        with self._lock:
            if not self._handle:
                return ValueError("this communicator was closed")
            if not self._stream and (code := _make_stream(ctypes.byref(self._stream))) != SUCCESS:
                return failure_of(code)
            self._config.codec = codec
            return failure_of(called(*arguments, self._handle, self._stream, self._by_config))

    def _wait(self) -> Optional[Exception]:
        stream, position = self._stream, self._position
        code = _position_of(stream, self._by_position)
        if code == SUCCESS:
            code = IN_PROGRESS
        while code == IN_PROGRESS:
            code = _wait_for(stream, position, _LOOK_MS)
            if code == TIMEOUT:  # the timeout of this interval, or of the call
                code = _poll(stream, position)
        return failure_of(code)

    # Returns when no call is under way any more.
    def _give_up(self) -> None:
        self.abort()
        self._drop_stream()

    def _drop_stream(self) -> None:
        none, mine = _handle(), self._is_of_this_process()
        stream, self._stream = self._stream, none
        if stream and mine:
            _end_stream(stream)
