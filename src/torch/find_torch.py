"""What CMake needs to know of the torch of this Python: version, C++ ABI, libraries, then include folders, as a CMake list."""

import os
import sys


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
    found.append(os.path.join(include, "torch", "csrc", "api", "include"))
    print(";".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
