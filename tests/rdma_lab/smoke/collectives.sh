#!/bin/bash
# collectives.sh RAILS RANKS...: for each number of ranks, each of them on a host (by name) of one site, every collective with every
# element type, or that of COLLECTIVES_TYPE, small and medium, checked bit by bit. RAILS 1: rank r has device r modulo 2, RAILS 2: each
# has both. All data must go over them, as the counters of the devices show.
set -uo pipefail
rails=$1
shift
programs=({all_reduce,all_gather,reduce_scatter,broadcast,reduce,alltoall,alltoallv,gather,scatter,sendrecv}_perf)
type=${COLLECTIVES_TYPE:-all}
[[ $type == all ]] && types=12 || types=1
export SETO_ROOT=127.0.0.1:29400 SETO_SITE_ID=lab SETO_ALLOW_NO_SECRET=on SETO_LOG=info SETO_INTERFACE=lo SETO_CONNECT=all
# The machine is emulated: everything takes 20 times as long.
export SETO_LIVENESS_TIMEOUT_MS=100000 SETO_INIT_TIMEOUT_MS=300000
[[ $rails == 2 ]] && devices=(always,rxe0,rxe1) || devices=(always,rxe0 always,rxe1)

fail() {
  echo "failed: $program of $ranks ranks: $*"
  tail -n 20 "$work"/{log,out}.*
  exit 1
}
packets() { "$RDMA_LAB_LINK" counters "$1" | sed -n 's/^sent_pkts //p'; }

for ranks in "$@"; do
  for program in "${programs[@]}"; do
    work=$(mktemp -d)
    before=($(packets 0) $(packets 1))
    begin=$EPOCHREALTIME
    for ((rank = 0; rank < ranks; ++rank)); do
      SETO_RANK=$rank SETO_RANKS=$ranks SETO_HOST_ID=host$rank SETO_RDMA=${devices[rank % ${#devices[@]}]} SETO_LOG_FILE=$work/log.$rank \
        "$RDMA_LAB_BUILD/bench/$program" -b 256 -e 64K -f 256 -d "$type" -w 1 -n 1 -c 1 >"$work/out.$rank" 2>&1 &
      pids[rank]=$!
    done
    for ((rank = 0; rank < ranks; ++rank)); do wait "${pids[rank]}" || fail "rank $rank ended with status $?"; done
    grep -q '# Out of bounds values : 0 OK' "$work/out.0" || fail "a result is wrong"
    rows=$(awk '$1 ~ /^[0-9]+$/ && NF == 13' "$work/out.0" | wc -l)
    ((rows == 2 * types)) || fail "$rows rows, not two of each type ($types)"
    sent=($(($(packets 0) - before[0])) $(($(packets 1) - before[1])))
    if ((ranks > 1)); then
      ((sent[0] > 0 && sent[1] > 0)) || fail "devices have sent ${sent[*]} packets"
      for ((rank = 0; rank < ranks; ++rank)); do grep -q 'data goes over rails' "$work/log.$rank" || fail "no data of rank $rank went over RDMA"; done
      ! grep -q 'no rail works' "$work"/log.* || fail "data went over TCP"
    fi
    echo "$program, $ranks ranks: $rows rows right; packets of the devices: ${sent[*]}; $(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begin }") s"
    rm -rf "$work"
  done
done
