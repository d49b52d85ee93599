#!/bin/bash
# The tools of rdma-core see every device, active, with the address that the lab states.
set -euo pipefail
read -ra devices <<<"$RDMA_LAB_DEVICES"
read -ra addresses <<<"$RDMA_LAB_ADDRESSES"
failed=0
for index in "${!devices[@]}"; do
  IFS=: read -r device port gid <<<"${devices[index]}"
  # ibv_devinfo writes an IPv4 address of the table as ::ffff:10.9.0.1.
  text=$(ibv_devinfo -d "$device" -i "$port" -v)
  for wanted in "state:.*PORT_ACTIVE" "active_mtu:.*4096" "link_layer:.*Ethernet" "GID\[ *$gid\]:.*::ffff:${addresses[index]}, RoCE v2"; do
    grep -q "$wanted" <<<"$text" || { echo "$device: no '$wanted' in:"; echo "$text"; failed=1; }
  done
  echo "$device port $port: active, GID $gid is ${addresses[index]}"
done
exit $failed
