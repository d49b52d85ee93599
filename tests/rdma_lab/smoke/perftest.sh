#!/bin/bash
# perftest.sh PROGRAM OPTION...: runs a program of perftest from the first device to the second one, and prints its figures.
set -euo pipefail
program=$1
shift
read -ra devices <<<"$RDMA_LAB_DEVICES"
options_of() {
  local device port gid
  IFS=: read -r device port gid <<<"${devices[$1]}"
  echo "-d $device -i $port -x $gid -F"
}
tcp_port=18515

# The server says that it waits before it listens, so its socket is looked for (in /proc: port in hexadecimal, state listen).
listens() { grep -q ":$(printf '%04X' $tcp_port) [0:]* 0A" /proc/net/tcp /proc/net/tcp6; }
$program $(options_of 1) -p $tcp_port "$@" >/tmp/server_output 2>&1 &
server=$!
end=$((SECONDS + 120))
until listens; do
  ((SECONDS < end)) && kill -0 $server || { cat /tmp/server_output; exit 1; }
  read -r -t 0.02 <> <(:) || true
done
$program $(options_of 0) -p $tcp_port "$@" 127.0.0.1 >/tmp/client_output 2>&1 || { cat /tmp/client_output; exit 1; }
wait $server
# The table of figures: the line of names, and the line of numbers that follows.
grep -A1 '^ *#bytes' /tmp/client_output
