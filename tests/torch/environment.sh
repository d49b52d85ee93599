#!/usr/bin/env bash
# environment.sh ROOT FOLDER --install           makes a clean environment in FOLDER and installs the wheel of ROOT there
# environment.sh ROOT FOLDER COMMAND [ARGUMENT]  runs something of that environment
# PyTorch and what builds a wheel come from ROOT/build-torch, which is not written to.
set -euo pipefail
root=$1 folder=$2
shift 2
cd "$root"

if [[ ! -x build-torch/bin/python ]] || ! build-torch/bin/python -c 'import torch, scikit_build_core' 2>/dev/null; then
  echo "skipped: needs PyTorch in build-torch/, which ./dev test installs"
  exit 77
fi

if [[ $1 == --install ]]; then
  rm -rf "$folder"
  build-torch/bin/python -m venv "$folder"
  packages=$(build-torch/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$packages" >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
  # Warnings as errors: the library's objects are then those that the compiler cache has from the build.
  "$folder/bin/python" -m pip install --no-build-isolation --no-deps -C cmake.define.SETO_WERROR=ON .
  exec "$folder/bin/python" -c 'import seto, torch.distributed as dist; assert "SETO" in dist.Backend._plugins; print("seto", seto.version())'
fi

export PATH=$folder/bin:$PATH OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
program=$1
shift
case $program in
  python) exec python "$@" ;;
  torchrun) exec python -m torch.distributed.run "$@" ;;
  *) exec "$program" "$@" ;;
esac
