#!/bin/bash
# rail_pulled.sh: an interface goes down for longer than a device repeats packets, and comes back, while two ranks run checked
# all_reduces. Every result is right, and data goes on over TCP. A rail that is opened again is counted.
set -uo pipefail
here=$(dirname "$0")
CALLS_FOLDER=$(mktemp -d)
export CALLS_FOLDER
rows=40

fail() {
  echo "failed: $*"
  exit 1
}
count() { cat "$CALLS_FOLDER"/log.* | grep -c "$1"; }

"$here/calls.sh" --over-rdma "$RDMA_LAB_BUILD/bench/all_reduce_perf" -b 64K -e 64K -n 50 -c 5 -N $rows >"$CALLS_FOLDER/all" 2>&1 &
job=$!
until grep -q '^ *65536 ' "$CALLS_FOLDER/out.0" 2>/dev/null && (($(count 'data goes over rails') >= 2)); do
  kill -0 "$job" 2>/dev/null || { cat "$CALLS_FOLDER/all" && fail "the ranks ended before"; }
  read -r -t 0.1 <> <(:) || true
done
"$RDMA_LAB_LINK" down 1
read -r -t 3 <> <(:) || true
"$RDMA_LAB_LINK" up 1
wait "$job"
status=$?
grep -vE '^#|^$' "$CALLS_FOLDER/all" | cut -c1-200
((status == 0)) || fail "the ranks ended with $status"
(($(count 'a rail broke') > 0)) || fail "no rail broke"
echo "rails opened: $(count 'a rail was opened'), broke: $(count 'a rail broke')"
