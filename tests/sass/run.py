#!/usr/bin/env python3
"""Checks the machine code of the kernels that a build embeds: the protocol of blocks, and the cost of inner loops.

    tests/sass/run.py --build DIR [--kernels NAME,...]

Needs cuobjdump and nvdisasm, beside nvcc or in the PATH; without them it is skipped (exit status 77).
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import checks
import sass

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
TOOLS = ("cuobjdump", "nvdisasm")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def folders():
    """Where the tools may be: the PATH, and beside each nvcc that the build may have used."""
    found = os.environ.get("PATH", "").split(os.pathsep)
    compilers = [os.environ.get("CUDACXX", ""), shutil.which("nvcc") or ""]
    found += [str(Path(compiler).resolve().parent) for compiler in compilers if compiler]
    found += map(str, ROOT.glob("build-nvcc/lib/python*/site-packages/nvidia/cu13/bin"))
    return os.pathsep.join(found + ["/usr/local/cuda/bin"])


def disassembled(image, path):
    """The functions of an image, for all GPUs."""
    command = [shutil.which("cuobjdump", path=path), "-sass", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        raise SystemExit(f"cuobjdump failed on {image}: {done.stderr.strip()}")
    return sass.functions_of(done.stdout)


def faults_of(functions, image):
    """One text for each fault of the functions of an image."""
    faults = []
    missing = set(ARCHITECTURES) - {function.architecture for function in functions}
    if missing:
        faults.append(f"{image.name}: no machine code for {' '.join(sorted(missing))}")
    for function in functions:
        faults += checks.protocol_faults(function)
        faults += checks.loop_faults(function)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--kernels", help="some of them, by name: float,int32")
    options = parser.parse_args()
    images = sorted((options.build / "src/engine/kernels").glob("kernels_*.fatbin"))
    if options.kernels:
        images = [image for image in images if image.stem.removeprefix("kernels_") in options.kernels.split(",")]
    listed = (options.build / "src/engine/kernels/kernel_list.h").read_text() if images else ""
    images = [image for image in images if f"DO({image.stem})" in listed or f"DO({image.stem.removeprefix('kernels_')})" in listed]
    if not images:
        print("skipped: needs a library with GPU kernels (./dev test installs nvcc)")
        return SKIPPED
    path = folders()
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if missing:
        print(f"skipped: needs {' and '.join(missing)} of CUDA 13 (./dev test installs them)")
        return SKIPPED
    faults, loops = [], []
    for image in images:
        functions = disassembled(image, path)
        faults += faults_of(functions, image)
        for function in functions:
            loops += checks.judged(checks.inner_loops(function))
    print("\n".join(checks.table_of(loops)))
    within = sum(loop.cost <= checks.GOAL for loop in loops)
    print(f"{len(images)} images, {len(loops)} loops of moves and sums, {within} of them within the goal of {checks.GOAL}")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
