#!/bin/bash
# calls.sh COMMAND...: two ranks on two hosts of one site (by name) run the command, rank 0 with rxe0 and rank 1 with rxe1 unless
# SETO_RDMA is set. Their log is printed after the output of rank 0.
set -uo pipefail
work=$(mktemp -d)
export SETO_ROOT=127.0.0.1:29400 SETO_RANKS=2 SETO_SITE_ID=lab SETO_ALLOW_NO_SECRET=on SETO_LOG=${SETO_LOG:-info} SETO_INTERFACE=${SETO_INTERFACE:-lo}
# The machine is emulated: everything takes 20 times as long.
export SETO_LIVENESS_TIMEOUT_MS=${SETO_LIVENESS_TIMEOUT_MS:-100000}

for rank in 1 0; do
  SETO_RANK=$rank SETO_HOST_ID=host$rank SETO_RDMA=${SETO_RDMA:-rxe$rank} SETO_LOG_FILE=$work/log.$rank "$@" >"$work/out.$rank" 2>&1 &
  pids[rank]=$!
done
status=0
for rank in 0 1; do wait "${pids[rank]}" || status=$?; done
cat "$work/out.0"
((status == 0)) || cat "$work/out.1"
sed 's/^/rank 0: /' "$work/log.0"
sed 's/^/rank 1: /' "$work/log.1"
exit $status
