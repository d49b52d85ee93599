#!/bin/bash
# devices.sh COUNT BUILD: makes COUNT RoCE devices in the virtual machine, and /run/rdma_lab/environment, which names them.
#
# All are in one namespace, because this kernel's software device receives only in the first one. Frames between two devices still pass
# their cables: policy routing sends what is bound to an interface out by it (the device binds its packets), and delivers what arrives at
# an interface, although the destination is an address of this machine.
set -euo pipefail
count=$1 build=$2 mtu=4200
here=$(cd "$(dirname "$0")" && pwd)
state=/run/rdma_lab
mkdir -p $state
modprobe -a rdma_rxe rdma_ucm ib_umad veth bridge sch_netem

address_of() { echo "10.9.0.$(($1 + 1))"; }
hardware_address_of() { printf '02:00:0a:09:00:%02x' "$(($1 + 1))"; }

cables() {
  local index
  echo "link add br0 mtu $mtu type bridge"
  echo "link set br0 up"
  for ((index = 0; index < count; ++index)); do
    echo "link add veth$index address $(hardware_address_of $index) mtu $mtu type veth peer name p$index mtu $mtu"
    echo "link set p$index master br0 up"
  done
}

# An interface that goes down loses these; link.sh uses the file again when it comes up.
restored_settings_of() {
  local index=$1 other
  echo "link set veth$index up"
  echo "route replace 10.9.0.0/24 dev veth$index src $(address_of $index) table $((100 + index))"
  for ((other = 0; other < count; ++other)); do
    ((other == index)) || echo "neigh replace $(address_of $other) lladdr $(hardware_address_of $other) dev veth$index nud permanent"
  done
}

permanent_settings() {
  local index
  for ((index = 0; index < count; ++index)); do
    echo "addr add $(address_of $index)/24 dev veth$index noprefixroute"
    echo "rule add pref 10 iif veth$index lookup local"
    echo "rule add pref 15 oif veth$index to $(address_of $index) lookup local"
    echo "rule add pref 20 oif veth$index lookup $((100 + index))"
  done
  # Packets that no interface is bound to, those of TCP between the devices' addresses, stay inside the kernel.
  echo "rule add pref 32000 lookup local"
  echo "rule del pref 0"
}

cables | ip -batch -
settings=/proc/sys/net/ipv4/conf
echo 0 >$settings/all/rp_filter
for ((index = 0; index < count; ++index)); do
  echo 0 >$settings/veth$index/rp_filter
  echo 1 >$settings/veth$index/accept_local
  echo 1 >$settings/veth$index/arp_ignore
  restored_settings_of $index >$state/veth$index.batch
done
{
  permanent_settings
  cat $state/veth*.batch
} | ip -batch -
for ((index = 0; index < count; ++index)); do echo "link add rxe$index type rxe netdev veth$index"; done >$state/rdma.batch
rdma -b $state/rdma.batch

devices="" addresses=""
for ((index = 0; index < count; ++index)); do
  devices+="${devices:+ }rxe$index:1:$("$here/link.sh" gid $index)"
  addresses+="${addresses:+ }$(address_of $index)"
done
{
  echo "export RDMA_LAB_DEVICES='$devices'"
  echo "export RDMA_LAB_ADDRESSES='$addresses'"
  printf 'export RDMA_LAB_LINK=%q RDMA_LAB_BUILD=%q\n' "$here/link.sh" "$build"
} >$state/environment
