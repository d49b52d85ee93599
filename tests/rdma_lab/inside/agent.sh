#!/bin/bash
# Runs in the virtual machine: executes the commands that the host leaves in the job folder, one after another, for ever. Command N is
# N.run, with a limit in seconds in N.limit; the agent writes N.output and, last, N.status. The host ends the machine.
cd /job || exit 1
exec 3<> <(:) # nothing can be read from it: reading with a time limit waits without starting a process

# leave_nothing SESSION kills what a command has left behind, which would disturb the next one.
leave_nothing() {
  local file line fields
  for file in /proc/[0-9]*/stat; do
    { read -r line <"$file"; } 2>/dev/null || continue
    read -ra fields <<<"${line##*) }" # state, parent, group, session
    [[ ${fields[3]} == "$1" ]] && kill -KILL "${line%% *}" 2>/dev/null
  done
}

for ((number = 1; ; ++number)); do
  until [[ -e $number.run ]]; do read -r -t 0.02 -u 3; done
  [[ -e /run/rdma_lab/environment ]] && . /run/rdma_lab/environment
  setsid timeout -k 2 "$(<"$number.limit")" bash "$number.run" >"$number.output" 2>&1 </dev/null &
  wait $!
  echo $? >"$number.part"
  leave_nothing $!
  mv "$number.part" "$number.status"
done
