#!/bin/bash
# rails.sh RANKS [pull|late]: so many ranks, each on a host (by name) of one site, run checked all_reduces until all of them have sent data
# over RDMA. Rank r has device r modulo the number of devices.
# late: the last device's interface is down when the ranks begin, and comes up after calls have gone over TCP.
# pull: then the last device's interface goes down, until calls have gone on over TCP, and comes back, until there is a rail again.
#
# Each step waits for what it needs, however slow the machine is: the limit of the program ends what never comes.
set -uo pipefail
ranks=$1 action=${2:-}
work=$(mktemp -d)
read -ra devices <<<"$RDMA_LAB_DEVICES"
pulled=$((${#devices[@]} - 1))
export SETO_ROOT=127.0.0.1:29400 SETO_RANKS=$ranks SETO_SITE_ID=lab SETO_ALLOW_NO_SECRET=on SETO_LOG=info SETO_INTERFACE=lo
# The machine is emulated, and its host may have no processor for it for seconds.
export SETO_LIVENESS_TIMEOUT_MS=300000 SETO_INIT_TIMEOUT_MS=600000

[[ $action != late ]] || "$RDMA_LAB_LINK" down $pulled || {
  echo "failed: the interface does not go down"
  exit 1
}
pids=()
for ((rank = ranks - 1; rank >= 0; --rank)); do
  SETO_RANK=$rank SETO_HOST_ID=host$rank SETO_RDMA=rxe$((rank % ${#devices[@]})) SETO_LOG_FILE=$work/log.$rank \
    "$RDMA_LAB_BUILD/bench/all_reduce_perf" -b 64K -e 64K -n 5 -c 1 -N 1000000 >"$work/out.$rank" 2>&1 &
  pids+=($!)
done

# One process shows all logs: what a limit ends has two seconds, on a machine that may be slow.
fail() {
  echo "failed: $*"
  tail -n 30 "$work"/{log,out}.*
  exit 1
}
count() { cat "$work"/log.* 2>/dev/null | grep -c "$1"; }
rows() { grep -c '^ *65536 ' "$work/out.0" 2>/dev/null || true; }
until_true() {
  local pid
  until "$@"; do
    for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a rank ended before this was true: $*"; done
    read -r -t 0.1 <> <(:) || true
  done
}
use_rails() { (($(grep -l 'data goes over rails' "$work"/log.* 2>/dev/null | wc -l) == ranks)); }
has_rows() { (("$(rows)" >= $1)); }
says() { (($(count "$1") > $2)); }

# A row that has begun before may be of calls before.
more_rows() { until_true has_rows $(($(rows) + 3)); }

# Where the limit ends this script, it says how far it came.
trap 'fail "the limit has passed"' TERM

if [[ $action == late ]]; then
  until_true has_rows 3
  (($(count 'a rail was opened') == 0)) || fail "a rail was opened without a port"
  echo "data of $ranks ranks goes over TCP"
  "$RDMA_LAB_LINK" up $pulled || fail "the interface does not come up"
fi
until_true use_rails
echo "data of $ranks ranks goes over RDMA"
more_rows
if [[ $action == pull ]]; then
  "$RDMA_LAB_LINK" down $pulled || fail "the interface does not go down"
  until_true says 'a rail broke' 0
  echo "a rail broke"
  more_rows
  opened=$(count 'a rail was opened')
  "$RDMA_LAB_LINK" up $pulled || fail "the interface does not come up"
  until_true says 'a rail was opened' "$opened"
  echo "a rail was opened again"
  more_rows
fi
kill "${pids[@]}"
wait "${pids[@]}" 2>/dev/null
# The columns "#wrong" of both tables.
wrong=$(awk '$1 == 65536 && NF == 13 && ($9 != 0 || $13 != 0)' "$work/out.0")
[[ -z $wrong ]] || fail "results are wrong: $wrong"
echo "$(rows) rows of checked all_reduces; rails opened: $(count 'a rail was opened'), broke: $(count 'a rail broke')"
