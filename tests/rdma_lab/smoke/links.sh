#!/bin/bash
# links.sh wire|interface|cable|loss: frames pass the links between two devices, a link that is down stops them, and all works again
# when it is up.
set -euo pipefail
probe=$RDMA_LAB_BUILD/tests/verbs_probe

fail() {
  echo "failed: $*"
  exit 1
}

counter() { "$RDMA_LAB_LINK" counters "$1" | sed -n "s/^$2 //p"; }
must_work() { "$probe" || fail "the probe does not work: $1"; }

wire() {
  local sent received
  sent=$(counter 0 tx_bytes) received=$(counter 1 rx_bytes)
  must_work "before"
  sent=$(($(counter 0 tx_bytes) - sent)) received=$(($(counter 1 rx_bytes) - received))
  echo "cable of rxe0 carried $sent bytes, cable of rxe1 $received bytes"
  ((sent > 1048576 && received > 1048576)) || fail "the bytes did not pass the cables"
}

loss() {
  local dropped
  "$RDMA_LAB_LINK" netem 0 loss 3%
  trap '"$RDMA_LAB_LINK" netem 0' EXIT
  must_work "with 3 % loss"
  dropped=$(tc -s qdisc show dev veth0 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
  echo "netem dropped $dropped packets"
  ((dropped > 0)) || fail "netem dropped no packet"
}

case $1 in
  wire) wire ;;
  interface) exec "$probe" --interrupt down up ;;
  cable) exec "$probe" --interrupt unplug plug ;;
  loss) loss ;;
  *) fail "'$1' is not a check" ;;
esac
