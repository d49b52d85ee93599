#!/bin/bash
# calls.sh rdma|auto|tcp|mpi RANKS: times all_reduces of 8 bytes to 16 MiB in the virtual machine of tests/rdma_lab, one line of JSON for each
# size, those of the same size in order: the last one counts, because data goes over TCP while rails are made. Rank r is a host of its
# own with device r modulo 2. rdma keeps all data on rails, auto may choose TCP for long payloads; tcp is over the loopback interface.
set -uo pipefail
medium=$1 ranks=$2
work=$(mktemp -d)
small=8,64,512,4096,32768 large=262144,2097152,16777216

fail() {
  echo "calls.sh: $*"
  exit 1
}
sent() { "$RDMA_LAB_LINK" counters 0 | sed -n 's/^tx_bytes //p'; }

# seto OPTION...: one job; its table as JSON.
seto() {
  local rank pids=() status=0 devices
  export SETO_ROOT=127.0.0.1:29400 SETO_RANKS=$ranks SETO_SITE_ID=lab SETO_ALLOW_NO_SECRET=on SETO_LOG=info SETO_INTERFACE=lo
  export SETO_LIVENESS_TIMEOUT_MS=300000 SETO_INIT_TIMEOUT_MS=300000
  rm -f "$work"/log.*
  for ((rank = 0; rank < ranks; ++rank)); do
    case $medium in rdma) devices=always,rxe$((rank % 2)) ;; auto) devices=rxe$((rank % 2)) ;; *) devices=off ;; esac
    SETO_RANK=$rank SETO_HOST_ID=host$rank SETO_LOG_FILE=$work/log.$rank SETO_RDMA=$devices \
      "$RDMA_LAB_BUILD/bench/all_reduce_perf" "$@" >"$work/out.$rank" 2>&1 &
    pids+=($!)
  done
  for rank in "${!pids[@]}"; do wait "${pids[rank]}" || status=$?; done
  ((status == 0)) || fail "the ranks ended with $status: $(tail -n 3 "$work"/out.*)"
  awk '$4 == "sum" && NF == 13 { printf "{\"size\": %d, \"time_us\": %s, \"wrong\": %d}\n", $1, $6, $9 + $13 }' "$work/out.0"
  [[ $medium == tcp ]] && return
  (($(grep -l 'data goes over rails' "$work"/log.* | wc -l) == ranks)) || fail "no data of some rank went over RDMA"
}

# This Open MPI reaches such a device by libfabric only: UCX loses the datagrams that it connects by, and the openib
# component is built without the RDMA connection manager.
mpi() {
  cat >"$work/rank" <<'RANK'
#!/bin/bash
device=$((OMPI_COMM_WORLD_RANK % 2))
export FI_VERBS_DEVICE_NAME=rxe$device FI_VERBS_IFACE=veth$device
exec "$@"
RANK
  chmod +x "$work/rank"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # The completion queue is as long as jobs of the usual size need, more than the device has.
  export FI_UNIVERSE_SIZE=$ranks FI_OFI_RXM_MSG_TX_SIZE=128 FI_OFI_RXM_MSG_RX_SIZE=128
  mpirun.openmpi --oversubscribe --bind-to none --mca plm isolated --mca oob_tcp_if_include lo --mca pml cm --mca mtl ofi \
    --mca mtl_ofi_provider_include 'verbs;ofi_rxm' -n "$ranks" "$work/rank" "$RDMA_LAB_BUILD/bench/rdma_mpi_perf" all_reduce \
    --sizes "$small,$large" --budget 0.3 --least 3 2>"$work/errors" || fail "mpirun ended with $?: $(tail -n 3 "$work/errors")"
}

before=$(sent)
case $medium in
  mpi) mpi ;;
  rdma | auto | tcp)
    seto -b 262144 -e 16777216 -f 8 -n 2 -N 2
    seto -b 8 -e 32768 -f 8 -n 30 -N 2
    ;;
  *) fail "'$medium' is not a medium" ;;
esac
if [[ $medium != tcp && $medium != auto ]]; then (($(sent) - before > 16777216)) || fail "the data did not pass the device"; fi
