#include "transports/shm/local_process.h"

#include <sys/epoll.h>

#include <algorithm>

#include "transports/shm/contexts_of_process.h"
#include "transports/shm/local_notice.h"

namespace seto {
namespace {

// Each context sends the descriptors of its memory and of its wakeup.
constexpr std::size_t kDescriptorsPerContext = 2;

Result<std::vector<std::shared_ptr<const ContextMemory>>> memory_of(const std::vector<ContextId>& contexts) {
  std::vector<std::shared_ptr<const ContextMemory>> memory;
  for (const ContextId context : contexts) {
    memory.push_back(ContextsOfProcess::instance().find(context));
    if (memory.back() == nullptr) return failure(Code::remote_error, "a context of this process has ended during the init");
  }
  return memory;
}

}  // namespace

Result<LocalProcess::Handshake> LocalProcess::start_handshake(const Pair& pair, Deadline until) {
  const auto& [own, theirs, attempt] = pair;
  SETO_ASSIGN(auto memory, memory_of(own.contexts));
  LocalConnectRequest request{theirs.process, own.contexts.front(), theirs.contexts.front(), {}, until, attempt};
  for (const auto& one : memory)
    request.descriptors.insert(request.descriptors.end(), {one->segment.fd(), one->wakeup->descriptor()});
  request.expected = kDescriptorsPerContext * theirs.contexts.size();
  SETO_ASSIGN(LocalConnector* const connector, LocalConnector::of_process());
  Result<PrivateFd> called = connector->begin_connect(request);
  return Handshake{theirs.process, std::move(request), theirs.contexts, std::move(memory), std::move(called)};
}

Result<ShmConnections> LocalProcess::finish_handshake(Handshake handshake, Heartbeats& heartbeats) {
  SETO_ASSIGN(LocalConnector* const connector, LocalConnector::of_process());
  SETO_ASSIGN(LocalConnection connection, connector->finish_connect(handshake.request, std::move(handshake.called)));

  std::shared_ptr<LocalProcess> local_process(new LocalProcess(std::move(connection.socket)));
  local_process->own_.assign(handshake.own.begin(), handshake.own.end());
  ShmConnections connections;
  for (std::size_t index = 0; index < handshake.theirs.size(); ++index) {
    Fd memory = std::move(connection.descriptors[kDescriptorsPerContext * index]);
    SETO_ASSIGN(Segment segment, Segment::map(memory.get(), kSegmentLimit));
    connections.push_back(ShmConnection::to_local_process(
        {handshake.process, handshake.theirs[index], handshake.request.attempt}, local_process,
        {std::move(segment),
         std::make_shared<const Wakeup>(std::move(connection.descriptors[kDescriptorsPerContext * index + 1]))}));
  }
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  LocalProcess* const raw = local_process.get();
  SETO_ASSIGN(local_process->watch_,
              control->add(raw->socket_.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, [raw](std::uint32_t) { raw->receive_notices(); }));
  for (const auto& one : connections) one->watch_heartbeats(heartbeats);
  return connections;
}

void LocalProcess::add(ShmConnection* connection) {
  const std::lock_guard lock(mutex_);
  theirs_.push_back(connection);
}

void LocalProcess::remove(const ShmConnection* connection) {
  if (generation_ != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  std::erase(theirs_, connection);
}

// The datagram is dropped if the queue is full: then the other process does not run, and keeps that memory until this process
// ends.
void LocalProcess::leave(ContextId own) {
  if (generation_ == fork_generation()) (void)send_context_ended(socket_.get(), own);
}

// On the control thread.
void LocalProcess::receive_notices() {
  for (;;) {
    LocalNotice notice = receive_notice(socket_.get());
    switch (notice.kind) {
      case LocalNotice::Kind::nothing_more:
        return;
      case LocalNotice::Kind::process_ended:
        return end(std::nullopt);
      case LocalNotice::Kind::context_ended:
        end(notice.context);
        break;
      case LocalNotice::Kind::memory_offered:
        lending_.map(std::move(notice.memory));
        break;
      case LocalNotice::Kind::memory_mapped:
        lending_.be_read();
        break;
      case LocalNotice::Kind::unknown:
        break;
    }
  }
}

void LocalProcess::end(std::optional<ContextId> context) {
  {
    const std::lock_guard lock(mutex_);
    for (ShmConnection* const one : theirs_)
      if (!context || one->peer().context == *context) one->end();
  }
  wake_own_contexts();
}

void LocalProcess::wake_own_contexts() const {
  for (const auto& weak : own_)
    if (const auto memory = weak.lock()) memory->wakeup->ring();
}

}  // namespace seto
