#!/usr/bin/env bash
# environment.sh ROOT FOLDER --install           makes a clean environment in FOLDER and installs the wheel of ROOT there
# environment.sh ROOT FOLDER COMMAND [ARGUMENT]  runs a command of that environment
# PyTorch and the tools that build a wheel come from the environment that contains FOLDER, if there is one, else from
# ROOT/build-torch, which is not changed.
set -euo pipefail
root=$1 folder=$2
shift 2
cd "$root"

base=build-torch
[[ ! -x $(dirname "$folder")/bin/python ]] || base=$(dirname "$folder")
if [[ ! -x $base/bin/python ]] || ! "$base/bin/python" -c 'import torch, scikit_build_core' 2>/dev/null; then
  echo "skipped: needs PyTorch in $base/, which ./dev test installs"
  exit 77
fi

if [[ $1 == --install ]]; then
  rm -rf "$folder"
  "$base/bin/python" -m venv "$folder"
  packages=$("$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$packages" >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
  # Warnings are errors, and the compilers have the same names as in the build, so that the compiler cache has the library's
  # objects. With a Python that was built with g++, scikit-build-core would otherwise call g++ where the build calls c++.
  options=(-C cmake.define.SETO_WERROR=ON)
  for compiler in CMAKE_C_COMPILER CMAKE_CXX_COMPILER; do
    path=$(sed -n "s/^$compiler:[A-Z]*=//p" build/CMakeCache.txt 2>/dev/null || true)
    [[ -z $path ]] || options+=(-C "cmake.define.$compiler=$path")
  done
  [[ $base == *build-torch ]] || options+=(-C "build-dir=build-wheel-${base##*build-torch-}")
  "$folder/bin/python" -m pip install --no-build-isolation --no-deps "${options[@]}" .
  exec "$folder/bin/python" -c 'import seto, seto.torch, torch; print("seto", seto.version(), "for torch", torch.__version__)'
fi

export PATH=$folder/bin:$PATH OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
program=$1
shift
case $program in
  python) exec python "$@" ;;
  torchrun) exec python -m torch.distributed.run "$@" ;;
  *) exec "$program" "$@" ;;
esac
