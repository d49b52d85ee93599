"""Memory of the library for arrays."""

import ctypes
import os
import weakref

from seto import _library

_allocate = _library.function("setoMemAlloc", ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
_free = _library.answering("setoMemFree", ctypes.c_void_p)


def allocate(size: int) -> "ctypes.Array[ctypes.c_ubyte]":
    """`size` bytes that are zero and that other processes of the host read where they lie, so collectives on them copy less.

    Offers the buffer protocol: ``numpy.frombuffer(seto.allocate(4 * n), numpy.float32)``, ``torch.frombuffer(..., dtype=torch.float32)``.
    The memory is freed with the last object that refers to it. A child that this process forks shares it: what either writes, both see.
    """
    if size <= 0:
        raise ValueError(f"size: {size} bytes; at least 1 is needed")
    if os.environ.get("SETO_MEMORY") == "device":
        raise ValueError("SETO_MEMORY=device: arrays of the host cannot lie in memory of a GPU; leave SETO_MEMORY at auto")
    memory = ctypes.c_void_p()
    _allocate(ctypes.byref(memory), size)
    found = (ctypes.c_ubyte * size).from_address(memory.value)
    weakref.finalize(found, _free, memory.value).atexit = False  # arrays may still be used at the end of the process
    return found
