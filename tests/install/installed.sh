#!/usr/bin/env bash
# Uses an installed Seto in the two ways that README.md names: pkg-config and find_package. installed.sh SOURCE BUILD MEBIBYTES
set -euo pipefail
source=$1 build=$2 most=$3
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

# The library is small and stripped; its debug symbols are found by its build-id.
is_small() { (($(stat -L -c %s "$1") < most * 1024 * 1024)); }
is_stripped() { ! readelf -SW "$1" | grep -qE ' \.(debug_info|symtab) '; }
fail() {
  echo "installed.sh: $*" >&2
  exit 1
}
library=$(find "$prefix" -name 'libseto.so')
is_small "$library" || fail "$library has $(stat -L -c %s "$library") bytes: at most $most MiB"
# The libraries of the build tree have symbols, so the two checks must fail for them.
if is_small "$build/libseto.so" || is_stripped "$build/libseto.so"; then fail "the checks do not detect a library with symbols"; fi
for file in "$library" "$prefix/bin/seto"; do
  is_stripped "$file" || fail "$file is not stripped"
  id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
  symbols=$prefix/lib/debug/.build-id/${id:0:2}/${id:2}.debug
  [[ -f $symbols ]] || fail "no debug symbols of $file at $symbols"
done
# One library serves machines with and without a GPU.
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ $needed == *libcrypto* ]] || fail "the libraries that $library needs are not known: $needed"
[[ $needed != *libcu* && $needed != *libnv* ]] || fail "$library needs a library of CUDA: $needed"
id=$(readelf -n "$library" | sed -n 's/.*Build ID: //p')
symbols=$prefix/lib/debug/.build-id/${id:0:2}/${id:2}.debug
address=0x$(nm -D "$library" | sed -nE 's/ T setoAllReduce(@.*)?$//p')
place=$(addr2line -f -e "$symbols" "$address")
[[ $place == *setoAllReduce*src/api/*.cc:* ]] || fail "the debug symbols have no position of setoAllReduce: $place"
if command -v gdb >/dev/null; then
  told=$(gdb -nx -batch -iex "set debug-file-directory $prefix/lib/debug" -ex 'info line setoAllReduce' "$library" 2>&1)
  [[ $told == *"src/api/"*".cc"* ]] || fail "gdb does not find the debug symbols by the build-id: $told"
fi
