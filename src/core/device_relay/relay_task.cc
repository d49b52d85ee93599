#include "src/core/device_relay/relay_task.h"

#include <utility>

#include "src/core/device_relay/relay.h"
#include "src/core/progress/call_deadline.h"

namespace seto {
namespace {

constexpr std::uint32_t kMessagesAtOnce = 16;  // so that other tasks of the context get their turn
constexpr std::uint64_t kLookAtPeersMs = 20;

}  // namespace

RelayTask::RelayTask(Relay& relay, Launch launch)
    : Task(&relay.control().order().tasks(), launch.note.operation), relay_(relay), launch_(std::move(launch)) {}

Task::Step RelayTask::begin() {
  Communicator& control = relay_.control();
  if (control.failures().failed_anywhere()) {
    finish(control.first_failure());
    return Step::ended;
  }
  if (!control.order().may_begin(launch_.note.operation)) return Step::blocked;
  control.order().begin(launch_.note);
  begun_ = true;
  return Step::moved;
}

// The thread that watches launches drives this task often and briefly. On a busy machine it may leave the background thread no
// time for an inspection, so a failure ends the task in a step, too. Progress inspects in one of 64 brief drives as well, but
// those take 32 ms and more, and the stream of a failed launch shall not wait so long.
Task::Step RelayTask::advance() {
  if (inspect()) return Step::ended;
  if (relay_.control().failed()) return Step::blocked;  // messages are being taken back
  const bool begins = !begun_;
  if (begins)
    if (const Step step = begin(); step != Step::moved) return step;
  if (!started_) {
    // Slots and flags of the operation before may lie where those of this one will.
    if (relay_.ended_launches() + 1 < launch_.of_kernel || relay_.kernel_done() + 1 < launch_.of_kernel)
      return begins ? Step::moved : Step::blocked;
    launch_.channels->start({launch_.note.operation, launch_.of_kernel});
    started_ = true;
  }
  const Step step = move();
  return step == Step::blocked && begins ? Step::moved : step;
}

Task::Step RelayTask::move() {
  const std::uint32_t moved = launch_.channels->advance(relay_.staging().memory(), kMessagesAtOnce);
  if (!launch_.channels->why().ok()) relay_.control().fail(launch_.channels->why(), relay_.control().rank());
  if (!launch_.channels->done()) return moved > 0 ? Step::moved : Step::blocked;
  if (!std::exchange(all_moved_, true)) relay_.say_done(launch_.of_kernel);
  if (relay_.kernel_done() < launch_.of_kernel || relay_.control().members().suspects())
    return moved > 0 ? Step::moved : Step::blocked;
  relay_.find_readers(*launch_.channels);
  finish({});
  return Step::ended;
}

// The watcher looks for lost peers and deadlines of launches that it sees, and fails the control. Memory of the GPU must not be
// freed, or filled by a later kernel, while a device reads it.
bool RelayTask::inspect() {
  if (launch_.kind == LaunchKind::of_graph && begun_ && !relay_.control().failed()) judge();
  if (!relay_.control().failed() || (started_ && !launch_.channels->take_back())) return false;
  finish(relay_.control().first_failure());
  return true;
}

void RelayTask::judge() {
  Communicator& control = relay_.control();
  const CallDeadline limit(0, control.config());
  if (!until_) until_ = Deadline::after_ms(limit.ms());
  if (next_look_.passed()) {
    next_look_ = Deadline::after_ms(kLookAtPeersMs);
    (void)control.failures().look_around(launch_.note);
  }
  if (control.failed() || !until_->passed()) return;
  const std::string of_relay = waits_for();
  (void)control.failures().fail_overdue(launch_.note, limit, of_relay.empty() ? "waits for its kernel, of a graph" : of_relay);
}

bool RelayTask::give_up(const Status& reason) {
  relay_.control().fail(reason, relay_.control().rank());
  return false;
}

std::string RelayTask::waits_for() const {
  if (!begun_) return "has not begun it";
  if (!started_) return "waits for the end of its operation before";
  return launch_.channels->waits_for(relay_.staging().memory());
}

void RelayTask::finish(Status status) {
  Communicator& control = relay_.control();
  if (status.ok() && control.failed()) status = control.first_failure();
  if (status.ok())
    control.order().complete(launch_.note.operation);
  else
    control.members().peer_group().disregard(launch_.note.operation);
  relay_.note_end(launch_.note.operation);
  end(std::move(status));
}

}  // namespace seto
