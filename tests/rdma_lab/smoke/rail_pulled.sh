#!/bin/bash
# rail_pulled.sh: an interface goes down for longer than a device repeats packets, and comes back, while two ranks run checked
# all_reduces. Every result is right, data goes on over TCP, and over RDMA again.
set -uo pipefail
here=$(dirname "$0")
log=$(mktemp)
"$here/calls.sh" "$RDMA_LAB_BUILD/bench/all_reduce_perf" -b 64K -e 64K -n 50 -c 5 -N "${1:-6}" >"$log" 2>&1 &
job=$!
sleep "${2:-3}"
"$RDMA_LAB_LINK" down 1
sleep 3
"$RDMA_LAB_LINK" up 1
wait "$job"
status=$?
grep -vE '^#|^$' "$log" | cut -c1-200
fail() {
  echo "failed: $*"
  exit 1
}
((status == 0)) || fail "the ranks ended with $status"
grep -q '# Out of bounds values : 0 OK' "$log" || fail "a result is wrong"
grep -q 'data goes over rails' "$log" || fail "no data went over RDMA"
grep -q 'a rail broke' "$log" || fail "no rail broke: the calls were over before"
echo "rails opened: $(grep -c 'a rail was opened' "$log"), broke: $(grep -c 'a rail broke' "$log")"
