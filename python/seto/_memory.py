"""Address, count and type of memory that another object owns, read by the buffer protocol or by DLPack."""

import ctypes
from typing import Any, NamedTuple

# Maps a format letter of the buffer protocol and a size to setoDataType_t; 'e' is fp16.
_BY_FORMAT = {
    ("b", 1): 0, ("c", 1): 0, ("B", 1): 1, ("?", 1): 1,
    ("i", 4): 2, ("l", 4): 2, ("I", 4): 3, ("L", 4): 3,
    ("q", 8): 4, ("l", 8): 4, ("Q", 8): 5, ("L", 8): 5,
    ("e", 2): 6, ("f", 4): 7, ("d", 8): 8,
}  # fmt: skip

# Maps DLPack's type code and bits to setoDataType_t. Codes: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool, 10 fp8 e4m3fn, 12 fp8 e5m2.
_BY_DLPACK = {
    (0, 8): 0, (1, 8): 1, (6, 8): 1, (0, 32): 2, (1, 32): 3, (0, 64): 4, (1, 64): 5,
    (2, 16): 6, (2, 32): 7, (2, 64): 8, (4, 16): 9, (10, 8): 10, (12, 8): 11,
}  # fmt: skip


_SUPPORTED = "supported are bool, integers of 8, 32 and 64 bits, floats of 16, 32 and 64, and by DLPack bf16 and floats of 8"


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Memory(NamedTuple):
    """Contiguous elements in host memory. `owner` keeps the memory alive."""

    address: int
    count: int
    type: int
    owner: Any
    truths: bool


def memory_of(array: Any, name: str, writable: bool) -> Memory:
    """The memory of an object. Raises ValueError if it is not dense, not in host memory, or has an unknown type."""
    try:
        view = memoryview(array)
    except TypeError:
        if hasattr(array, "__dlpack__"):
            return _from_dlpack(array, name, writable)
        raise TypeError(f"{name}: {type(array).__name__} has neither a buffer nor __dlpack__") from None
    if not view.c_contiguous:
        raise ValueError(f"{name}: its elements are not contiguous; pass a contiguous copy")
    if writable and view.readonly:
        raise ValueError(f"{name}: it is read-only, but the call writes to it")
    known = _BY_FORMAT.get((view.format.lstrip("@=<"), view.itemsize))
    if known is None:
        raise ValueError(f"{name}: elements of format '{view.format}' are not supported; {_SUPPORTED}")
    count = view.nbytes // view.itemsize
    return Memory(_address_of(view), count, known, view, view.format.endswith("?"))


def _address_of(view: memoryview) -> int:
    if view.nbytes == 0:
        return 0
    holder = _PyBuffer()
    _get_buffer(view, ctypes.byref(holder), 0)
    address = holder.buf
    _release_buffer(ctypes.byref(holder))
    return address


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.restype = ctypes.c_int
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.restype = None
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_READ_ONLY = 1  # a bit of the flags


# The capsule is not consumed: it releases the memory when it is destroyed.
def _capsule_of(array: Any) -> "tuple[Any, _DLTensor, bool]":
    """The capsule, its tensor, and whether the tensor is read-only. Versions before DLPack 1.0 do not tell that."""
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        capsule = array.__dlpack__()
    if "dltensor_versioned" not in repr(capsule):
        return capsule, ctypes.cast(_capsule_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents, False
    versioned = ctypes.cast(_capsule_pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(_DLVersioned)).contents
    return capsule, versioned.tensor, bool(versioned.flags & _READ_ONLY)


def _from_dlpack(array: Any, name: str, writable: bool) -> Memory:
    capsule, tensor, read_only = _capsule_of(array)
    if writable and read_only:
        raise ValueError(f"{name}: it is read-only, but the call writes to it")
    if tensor.device.type not in (1, 3):
        raise ValueError(f"{name}: it is not in host memory (DLPack device {tensor.device.type})")
    known = _BY_DLPACK.get((tensor.dtype.code, tensor.dtype.bits)) if tensor.dtype.lanes == 1 else None
    if known is None:
        raise ValueError(f"{name}: DLPack type {tensor.dtype.code} of {tensor.dtype.bits} bits is not supported; {_SUPPORTED}")
    count, dense = 1, 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[axis] > 1 and tensor.strides[axis] != dense:
            raise ValueError(f"{name}: its elements are not contiguous; pass a contiguous copy")
        dense *= max(tensor.shape[axis], 1)
        count *= tensor.shape[axis]
    return Memory((tensor.data or 0) + tensor.byte_offset, count, known, capsule, tensor.dtype.code == 6)
