"""The part of the CUDA driver that the peers on GPU memory need, by ctypes: the machine needs neither the toolkit nor torch."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p

NEWEST = 13000  # the release whose form of each function is asked for
NON_BLOCKING = 1
CAPTURE_OF_THREAD = 1


class DriverError(Exception):
    """A call of the driver that failed."""


class Driver:
    """driver("cuInit", c_uint(0)) calls a function; it raises DriverError unless it succeeds."""

    def __init__(self, file="libcuda.so.1"):
        library = ctypes.CDLL(file)
        self._find = library.cuGetProcAddress_v2
        self._find.argtypes = [c_char_p, c_void_p, c_int, c_uint64, c_void_p]
        self._functions = {}

    def __call__(self, name, *arguments):
        if name not in self._functions:
            address, status = c_void_p(), c_int()
            if self._find(name.encode(), byref(address), NEWEST, 0, byref(status)) or not address.value:
                raise DriverError(f"the driver has no {name}")
            self._functions[name] = ctypes.CFUNCTYPE(c_int, *(type(a) if not hasattr(a, "_obj") else c_void_p for a in arguments))(address.value)
        code = self._functions[name](*arguments)
        if code:
            raise DriverError(f"{name} failed with CUDA error {code}")

    def count(self):
        found = c_int()
        self("cuDeviceGetCount", byref(found))
        return found.value


class Gpu:
    """A GPU with a stream and two buffers. Its context is current after use()."""

    def __init__(self, driver, number, size):
        self.driver, self.size = driver, size
        self._context, self.stream = c_void_p(), c_void_p()
        driver("cuDevicePrimaryCtxRetain", byref(self._context), c_int(number))
        self.use()
        driver("cuStreamCreateWithPriority", byref(self.stream), c_uint(NON_BLOCKING), c_int(0))
        self.send, self.receive = self.allocate(size), self.allocate(size)

    def use(self):
        self.driver("cuCtxSetCurrent", self._context)

    def allocate(self, size):
        memory = c_uint64()
        self.driver("cuMemAlloc", byref(memory), c_size_t(size))
        self.driver("cuMemsetD8Async", memory, ctypes.c_ubyte(0), c_size_t(size), self.stream)
        return memory

    def copy(self, size):
        self.driver("cuMemcpyDtoDAsync", self.receive, self.send, c_size_t(size), self.stream)

    def begin_capture(self):
        self.use()
        self.driver("cuStreamBeginCapture", self.stream, c_int(CAPTURE_OF_THREAD))

    def end_capture(self):
        """The graph of what was captured, ready to launch."""
        self.use()
        graph, ready = c_void_p(), c_void_p()
        self.driver("cuStreamEndCapture", self.stream, byref(graph))
        self.driver("cuGraphInstantiateWithFlags", byref(ready), graph, c_ulonglong(0))
        self.driver("cuGraphDestroy", graph)
        return ready

    def launch(self, graph):
        self.use()
        self.driver("cuGraphLaunch", graph, self.stream)

    def drop(self, graph):
        self.driver("cuGraphExecDestroy", graph)

    def wait(self):
        self.use()
        self.driver("cuStreamSynchronize", self.stream)
