#!/bin/bash
# calls.sh [--over-rdma] [--chooses] COMMAND...: two ranks on two hosts of one site (by name) run the command, rank 0 with rxe0 and rank 1
# with rxe1 unless SETO_RDMA is set. Their log is printed after the output of rank 0. --over-rdma: it must show that data went over
# RDMA, and results must be right. --chooses, behind it: each rank must have measured over which way long payloads go. With
# SETO_RDMA_SETUP=cm the path must be that of the connection manager.
set -uo pipefail
wants=false chooses=false
[[ $1 == --over-rdma ]] && wants=true && shift
[[ $1 == --chooses ]] && chooses=true && shift
work=${CALLS_FOLDER:-$(mktemp -d)}  # what the ranks print, and their logs
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
if $wants && ((status == 0)); then
  for rank in 0 1; do
    grep -q 'data goes over rails' "$work/log.$rank" || { echo "failed: no data of rank $rank went over RDMA" && exit 1; }
    $chooses && ! grep -q 'payloads of 16 KiB and more go over' "$work/log.$rank" && echo "failed: rank $rank has not chosen" && exit 1
    [[ ${SETO_RDMA_SETUP:-} != cm ]] || grep -q 'path of the connection manager' "$work/log.$rank" ||
      { echo "failed: the path of rank $rank is not from the connection manager" && exit 1; }
  done
  grep -q '# Out of bounds values : 0 OK' "$work/out.0" || { echo "failed: a result is wrong" && exit 1; }
fi
exit $status
