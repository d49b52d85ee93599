#!/bin/bash
# mixed.sh [PROGRAM_perf]...: five ranks on three hosts (by name) of one site run each benchmark program with checked results. Two hosts have
# two ranks and a device each, and the third host, with one rank, uses no RDMA: memory of the host, rails and TCP in one communicator.
set -uo pipefail
programs=("$@")
((${#programs[@]} > 0)) || programs=({all_reduce,all_gather,reduce_scatter,broadcast,reduce,alltoall,alltoallv,gather,scatter,sendrecv}_perf)
hosts=(a a b b c) rdma=(always,rxe0 always,rxe0 always,rxe1 always,rxe1 off)
export SETO_ROOT=127.0.0.1:29400 SETO_RANKS=5 SETO_SITE_ID=lab SETO_ALLOW_NO_SECRET=on SETO_LOG=info SETO_INTERFACE=lo SETO_CONNECT=all
# The machine is emulated: everything takes 20 times as long.
export SETO_LIVENESS_TIMEOUT_MS=100000 SETO_INIT_TIMEOUT_MS=300000

over_rails() { grep -q 'data goes over rails' "$work/log.$1"; }
fail() {
  echo "failed: $program: $*"
  tail -n 20 "$work"/{log,out}.*
  exit 1
}
for program in "${programs[@]}"; do
  work=$(mktemp -d)
  for rank in 4 3 2 1 0; do
    SETO_RANK=$rank SETO_HOST_ID=${hosts[rank]} SETO_RDMA=${rdma[rank]} SETO_LOG_FILE=$work/log.$rank \
      "$RDMA_LAB_BUILD/bench/$program" -b 8 -e 64K -f 16 -n 5 -c 1 >"$work/out.$rank" 2>&1 &
    pids[rank]=$!
  done
  for rank in 0 1 2 3 4; do wait "${pids[rank]}" || fail "rank $rank ended with status $?"; done
  grep -q '# Out of bounds values : 0 OK' "$work/out.0" || fail "a result is wrong"
  { over_rails 0 || over_rails 1; } && { over_rails 2 || over_rails 3; } || fail "no data of a host with a device went over RDMA"
  ! over_rails 4 || fail "data of the host without RDMA went over RDMA"
  echo "$program: right, $(cat "$work"/log.* | grep -c 'a rail was opened') rails"
  rm -rf "$work"
done
