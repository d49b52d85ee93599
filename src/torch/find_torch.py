"""Prints facts about the torch of this Python as a CMake list: version, C++ ABI, libraries, include folder, and optional features."""

import os
import re
import sys

GUARD = "c10/core/impl/DeviceGuardImplInterface.h"
# Macros of c10d_compat.h and native_stream.cc, and the declaration that each of them reports, in a header of c10d unless it has a path.
NEWER = {
    "SETO_TORCH_HAS_ABORT": ("Backend.hpp", r"\babort\("),
    "SETO_TORCH_HAS_BACKEND_OPTIONS": ("Backend.hpp", r"\bgetBackendOptions\("),
    "SETO_TORCH_HAS_COALESCED_REDUCE_SCATTER": ("Work.hpp", r"\bREDUCE_SCATTER_TENSOR_COALESCED\b"),
    "SETO_TORCH_HAS_COALESCING_QUESTION": ("Backend.hpp", r"\bsupportsCoalescing\("),
    "SETO_TORCH_HAS_ERROR_TYPE": ("Backend.hpp", r"\benum class ErrorType\b"),
    "SETO_TORCH_HAS_GROUP_NAME": ("Backend.hpp", r"\bgroup_name;"),
    "SETO_TORCH_HAS_SET_TIMEOUT": ("Backend.hpp", r"\bsetTimeout\("),
    "SETO_TORCH_HAS_SHUTDOWN": ("Backend.hpp", r"\bshutdown\("),
    "SETO_TORCH_HAS_SPLIT": ("Backend.hpp", r"> split\("),
    "SETO_TORCH_HAS_NATIVE_STREAM": (GUARD, r"\bgetStreamNativeHandle\("),
    "SETO_TORCH_HAS_CAPTURE_QUESTION": (GUARD, r"\bisStreamCapturing\("),
}


def declares(include: str, header: str, pattern: str) -> bool:
    folder = include if "/" in header else os.path.join(include, "torch", "csrc", "distributed", "c10d")
    with open(os.path.join(folder, header), encoding="utf-8") as file:
        return re.search(pattern, re.sub(r"//[^\n]*", "", file.read())) is not None


def main() -> int:
    try:
        import torch
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    if not torch.distributed.is_available():
        print("this torch was built without torch.distributed", file=sys.stderr)
        return 1
    root = os.path.dirname(torch.__file__)
    include = os.path.join(root, "include")
    found = [torch.__version__, str(int(torch._C._GLIBCXX_USE_CXX11_ABI)), os.path.join(root, "lib"), include]
    # Python treats types of two modules as equal only if these agree. torch 2.4 was built by another compiler, whose names are
    # used here.
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            found.append(f'PYBIND11_{name}="{value}"')
    found += [macro for macro, where in NEWER.items() if declares(include, *where)]
    print(";".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
