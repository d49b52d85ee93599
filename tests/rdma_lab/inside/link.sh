#!/bin/bash
# link.sh down|up|unplug|plug|gid|counters INDEX, or netem INDEX [OPTION...]: changes or shows the link of RoCE device rxeINDEX.
# down and up: the interface. unplug and plug: the other end of its cable. netem without options ends the emulation.
set -euo pipefail
action=$1 index=$2
shift 2
device=/sys/class/infiniband/rxe$index
interface=/sys/class/net/veth$index
limit_s=60 # of this machine's clock, which also counts the time in which the host had no processor for it

fail() {
  echo "link.sh: $*" >&2
  exit 1
}

# The index of the first GID that is RoCE v2 and has an IPv4 address; the table begins with the link-local address of IPv6.
gid_index() {
  local file gid type
  for file in "$device"/ports/1/gids/*; do
    { read -r gid <"$file" && read -r type <"$device/ports/1/gid_attrs/types/${file##*/}"; } 2>/dev/null || continue
    [[ $gid == 0000:0000:0000:0000:0000:ffff:* && $type == "RoCE v2" ]] && echo "${file##*/}" && return
  done
  return 1
}

is_port() { [[ $(<"$device/ports/1/state") == *": $1" ]]; }

# until_true COMMAND...: the kernel changes the state of a port, and its GIDs, a while after the interface.
until_true() {
  local end=$((SECONDS + limit_s))
  until "$@"; do
    ((SECONDS < end)) || fail "$* was not true within $limit_s s for rxe$index: $(<"$device/ports/1/state")"
    read -r -t 0.02 <> <(:) || true
  done
}

case $action in
  gid) until_true gid_index ;;
  down)
    ip link set "veth$index" down
    until_true is_port DOWN
    ;;
  up)
    ip -batch "/run/rdma_lab/veth$index.batch"
    until_true is_port ACTIVE
    until_true gid_index >/dev/null
    ;;
  unplug)
    ip link set "p$index" down
    until_true is_port DOWN
    ;;
  plug)
    ip link set "p$index" up
    until_true is_port ACTIVE
    ;;
  netem) if (($#)); then tc qdisc replace dev "veth$index" root netem "$@"; else tc qdisc del dev "veth$index" root; fi ;;
  counters)
    for file in "$interface"/statistics/{tx_bytes,tx_packets,rx_bytes,rx_packets} "$device"/ports/1/hw_counters/*; do
      [[ -r $file ]] && echo "${file##*/} $(<"$file")"
    done
    ;;
  *) fail "'$action' is not an action" ;;
esac
