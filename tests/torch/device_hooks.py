"""Loads software_cuda before torch, which asks once, while it is imported, whether there is an accelerator. Import this first."""

import ctypes
import importlib.util
import pathlib

# libtorch_python has all others as dependencies, but its own search path finds them only in the order of torch's import.
LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch.so", "libtorch_python.so")

torch = importlib.util.find_spec("torch")
software_cuda = importlib.util.find_spec("software_cuda")
if torch is not None and torch.submodule_search_locations and software_cuda is not None and software_cuda.origin is not None:
    for library in LIBRARIES:
        ctypes.CDLL(str(pathlib.Path(torch.submodule_search_locations[0]) / "lib" / library), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(software_cuda.origin)
