"""The C library by ctypes: its functions with their types, and its failures as exceptions."""

import ctypes
import pathlib

SUCCESS, IN_PROGRESS, TIMEOUT = 0, 7, 8


class SetoError(RuntimeError):
    """A failure of the library. `code` is a setoResult_t; the text says what happened, which peer it concerns, and what to do."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Bootstrap(ctypes.Structure):
    _fields_ = [("all_gather", ctypes.c_void_p), ("argument", ctypes.c_void_p)]


class Config(ctypes.Structure):
    """The C struct setoConfig_t. Zero means inherit."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", ctypes.c_int),
        ("split_share", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("memory", ctypes.c_int),
        ("context", ctypes.c_void_p),
        ("bootstrap", Bootstrap),
        ("operation_timeout_ms", ctypes.c_uint32),
        ("init_timeout_ms", ctypes.c_uint32),
        ("liveness_timeout_ms", ctypes.c_uint32),
        ("deterministic", ctypes.c_int),
        ("algorithm", ctypes.c_char_p),
        ("codec", ctypes.c_char_p),
        ("affinity", ctypes.c_char_p),
        ("host_id", ctypes.c_char_p),
        ("site_id", ctypes.c_char_p),
        ("topology_file", ctypes.c_char_p),
    ]
    MAGIC = 0x5E70C0F1


class CallConfig(ctypes.Structure):
    """The C struct setoCallConfig_t."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("codec", ctypes.c_int),
        ("algorithm", ctypes.c_int),
        ("error_feedback", ctypes.c_void_p),
        ("deadline_ms", ctypes.c_uint32),
        ("deterministic", ctypes.c_int),
        ("tag", ctypes.c_uint64),
        ("label", ctypes.c_char_p),
        ("waits_next", ctypes.c_int),
        ("message_tag", ctypes.c_uint32),
    ]
    MAGIC = 0x5E70CA11


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def _load() -> ctypes.CDLL:
    """The path of the library: that of the wheel, or, in a checkout, that of its build folder."""
    beside = pathlib.Path(__file__).parent
    path, built = beside / "libseto.so.0", beside.parents[1] / "build" / "libseto.so.0"
    if not path.exists() and built.exists():
        path = built
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"seto: {path} cannot be loaded: {error}") from error


_library = _load()
_library.setoGetLastError.restype = ctypes.c_char_p
_library.setoGetLastError.argtypes = [ctypes.c_void_p]


def failure_of(code: int, communicator: "ctypes.c_void_p | None" = None) -> "SetoError | None":
    """The exception for a result of the library, or None for success. Its text is the last failure of this thread or of the communicator."""
    return None if code == SUCCESS else SetoError(code, _library.setoGetLastError(communicator).decode(errors="replace"))


def check(code: int, communicator: "ctypes.c_void_p | None" = None) -> None:
    """Raises the exception for a result, unless it is success."""
    if code != SUCCESS:
        raise failure_of(code, communicator)


def answering(name: str, *types: object):
    """A function of the library. It is called with the GIL released and returns a setoResult_t."""
    found = getattr(_library, name)
    found.argtypes = types
    found.restype = ctypes.c_int
    return found


def function(name: str, *types: object):
    """A function of the library that raises an exception on failure."""
    found = answering(name, *types)

    def called(*arguments: object) -> None:
        check(found(*arguments))

    called.__name__ = name
    return called


def version_code() -> int:
    code = ctypes.c_int()
    function("setoGetVersion", ctypes.POINTER(ctypes.c_int))(ctypes.byref(code))
    return code.value


def version() -> str:
    """The version of the loaded library, for example "0.1.0"."""
    code = version_code()
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
