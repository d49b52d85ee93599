#!/bin/bash
# Runs in the virtual machine: executes the commands that the host leaves in the job folder, one after another, for ever. Command N is
# N.run; the agent writes N.output and, last, N.status. The host decides when a command has run for too long, and makes N.kill: this
# machine's clock also counts the time in which the host had no processor for it. The host ends the machine.
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

# end_when_asked NUMBER SESSION: it looks seldom, so that it disturbs no measurement.
end_when_asked() {
  until [[ -e $1.kill ]]; do read -r -t 0.5 -u 3; done
  kill -TERM -- "-$2" 2>/dev/null
  read -r -t 2 -u 3
  leave_nothing "$2"
}

for ((number = 1; ; ++number)); do
  until [[ -e $number.run ]]; do read -r -t 0.02 -u 3; done
  [[ -e /run/rdma_lab/environment ]] && . /run/rdma_lab/environment
  setsid bash "$number.run" >"$number.output" 2>&1 </dev/null &
  command=$!
  end_when_asked $number $command &
  watcher=$!
  wait $command
  status=$?
  [[ -e $number.kill ]] && status=124
  { kill -KILL $watcher && wait $watcher; } 2>/dev/null
  leave_nothing $command
  echo $status >"$number.part"
  mv "$number.part" "$number.status"
done
