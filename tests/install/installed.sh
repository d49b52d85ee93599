#!/usr/bin/env bash
# An installed Seto, used in the two ways that README names: pkg-config and find_package. installed.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null

pc=$(find "$prefix" -name seto.pc)
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags <<<"$(pkg-config --cflags --libs seto)"
cc -std=c99 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L "$source/examples/05_processes.c" "${flags[@]}" \
  "-Wl,-rpath,$(pkg-config --variable=libdir seto)" -o "$folder/by_pkg_config"
"$folder/by_pkg_config"

cmake -S "$source/tests/install" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DEXAMPLE="$source/examples/05_processes.c" >/dev/null
cmake --build "$folder/build" >/dev/null
"$folder/build/program"

"$prefix/bin/seto" info >/dev/null
