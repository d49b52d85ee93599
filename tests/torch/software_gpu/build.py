"""Compiles the module software_cuda into BUILD_FOLDER/tests/torch: build.py BUILD_FOLDER"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ARCHIVES = ("src/device/libseto_device_cuda.a", "src/base/libseto_base.a")
DRIVER = "tests/driver/libcuda.so.1"


def compile_to(folder: pathlib.Path, target: pathlib.Path) -> None:
    sys.path.insert(0, str(ROOT / "src/torch"))
    import torch

    found = subprocess.run([sys.executable, str(ROOT / "src/torch/find_torch.py")], check=True, capture_output=True, text=True).stdout
    _, abi, libraries, include, *macros = found.strip().split(";")
    command = ["ccache"] if shutil.which("ccache") else []
    command += ["g++", "-std=c++20", "-O1", "-fPIC", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-DTORCH_API_INCLUDE_EXTENSION_H", *(f"-D{macro}" for macro in macros)]
    command += [f"-I{ROOT}", f"-isystem{include}", f"-isystem{include}/torch/csrc/api/include", f"-isystem{sysconfig.get_path('include')}"]
    objects = []
    for source in sorted(HERE.glob("*.cc")):
        objects.append(str(target.parent / f"{source.stem}.o"))
        subprocess.run([*command, "-c", str(source), "-o", objects[-1]], check=True)
    link = ["g++", "-shared", "-o", str(target), *objects, *(str(folder / archive) for archive in ARCHIVES)]
    subprocess.run([*link, f"-L{libraries}", "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10", "-ldl"], check=True)
    assert torch.__version__


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    missing = [name for name in (*ARCHIVES, DRIVER) if not (folder / name).exists()]
    if missing:
        print(f"skipped: needs {', '.join(missing)} in {folder}, which ./dev test builds")
        return 77
    target = folder / "tests/torch/software_cuda.so"
    target.parent.mkdir(parents=True, exist_ok=True)
    compile_to(folder, target)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
