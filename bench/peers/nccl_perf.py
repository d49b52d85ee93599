#!/usr/bin/env python3
"""Times all_reduce of fp32 sums with NCCL, or copies on one GPU, from CUDA graphs as all_reduce_perf -G does.

    nccl_perf.py LIBRARY|copy --ranks N --sizes BYTES,... [--calls N] [--launches N]

LIBRARY is the path of libnccl.so.2. One thread drives the GPUs 0 to N - 1; a graph holds the calls of a size. `copy` copies the
bytes of all ranks on GPU 0: the least that an all_reduce of N ranks on one GPU reads and writes. Prints a line of JSON for each size.
"""

import argparse
import ctypes
import json
import sys
import time
from ctypes import byref, c_int, c_size_t, c_void_p

from gpu_driver import Driver, DriverError, Gpu

FLOAT32, SUM = 7, 0
WARM_UPS = 5


class NcclError(Exception):
    """A call of NCCL that failed."""


class Nccl:
    """Communicators of all GPUs, driven by this thread."""

    def __init__(self, file, gpus):
        self.library, self.gpus = ctypes.CDLL(file), gpus
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.comms = (c_void_p * len(gpus))()
        self.check(self.library.ncclCommInitAll(self.comms, c_int(len(gpus)), (c_int * len(gpus))(*range(len(gpus)))))

    def check(self, code):
        if code:
            raise NcclError(self.library.ncclGetErrorString(code).decode())

    def version(self):
        number = c_int()
        self.check(self.library.ncclGetVersion(byref(number)))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def issue(self, size):
        self.check(self.library.ncclGroupStart())
        for gpu, comm in zip(self.gpus, self.comms):
            gpu.use()
            count = c_size_t(size // 4)
            self.check(self.library.ncclAllReduce(gpu.send, gpu.receive, count, c_int(FLOAT32), c_int(SUM), c_void_p(comm), gpu.stream))
        self.check(self.library.ncclGroupEnd())

    def end(self):
        for comm in self.comms:
            self.check(self.library.ncclCommDestroy(c_void_p(comm)))


class Copy:
    """One copy of the bytes of all ranks."""

    def __init__(self, gpu, ranks):
        self.gpu, self.ranks = gpu, ranks

    def issue(self, size):
        self.gpu.copy(size * self.ranks)

    def end(self):
        pass


def captured(gpus, issue, calls):
    for gpu in gpus:
        gpu.begin_capture()
    for _ in range(calls):
        issue()
    return [gpu.end_capture() for gpu in gpus]


def time_us(gpus, graphs, launches):
    """Microseconds of a launch of all graphs."""
    start = time.perf_counter()
    for _ in range(launches):
        for gpu, graph in zip(gpus, graphs):
            gpu.launch(graph)
    for gpu in gpus:
        gpu.wait()
    return (time.perf_counter() - start) / launches * 1e6


def measure(gpus, work, size, options):
    for _ in range(WARM_UPS):
        work.issue(size)
    for gpu in gpus:
        gpu.wait()
    graphs = captured(gpus, lambda: work.issue(size), options.calls)
    time_us(gpus, graphs, 1)
    elapsed = time_us(gpus, graphs, options.launches) / options.calls
    for gpu, graph in zip(gpus, graphs):
        gpu.drop(graph)
    return elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--launches", type=int, default=10)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    copies = options.library == "copy"
    driver = Driver()
    driver("cuInit", ctypes.c_uint(0))
    largest = max(sizes) * (options.ranks if copies else 1)
    gpus = [Gpu(driver, number, largest) for number in range(1 if copies else options.ranks)]
    work = Copy(gpus[0], options.ranks) if copies else Nccl(options.library, gpus)
    for size in sizes:
        print(json.dumps({"size": size, "time_us": measure(gpus, work, size, options), "wrong": 0}), flush=True)
    work.end()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DriverError, NcclError, OSError) as error:
        print(f"nccl_perf: {error}", file=sys.stderr)
        sys.exit(1)
