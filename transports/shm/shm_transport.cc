#include "transports/shm/shm_transport.h"

#include <algorithm>
#include <utility>

#include "src/base/core_barrier.h"
#include "src/control/local/local_connector.h"
#include "transports/shm/contexts_of_process.h"
#include "transports/shm/numa_nodes.h"
#include "transports/shm/process_pairs.h"
#include "transports/shm/shm_seat.h"

namespace seto {
namespace {

std::uint32_t first_member_of(const ProcessContexts& process, const Attempt& attempt) {
  const auto found = std::find_if(attempt.members.begin(), attempt.members.end(), [&](const AttemptMember& one) {
    return one.place->process == process.process && one.place->context == process.contexts.front();
  });
  return static_cast<std::uint32_t>(found - attempt.members.begin());
}

}  // namespace

Result<std::unique_ptr<Transport>> ShmTransport::create(const TransportSetup& setup) {
  (void)every_core_can_be_reached();
  std::unique_ptr<ShmTransport> transport(new ShmTransport(setup));
  SETO_ASSIGN(Segment created, Segment::create({}));
  SETO_TRY(created.populate(0, kMemoryHeadSize));
  const auto memory = std::make_shared<ContextMemory>(ContextMemory{std::move(created), setup.wakeup});
  Segment* const segment = &memory->segment;
  transport->memory_ = memory;
  // The lambdas may use the raw pointer: memory_ is declared before pool_, so the segment outlives the pool.
  const std::uint64_t limit = setup.config->shared_memory_limit;
  transport->pool_ = std::make_unique<slots::Pool>(
      kMemoryHeadSize, segment->size(),
      [segment](std::size_t offset, std::size_t size) -> Status {
        SETO_TRY(segment->populate(offset, size));
        // Otherwise the first lap through slots that move on would fault at each page (all_gather of 64 KiB, 120 calls: 12.6 us,
        // and 5.2 to 6.4 with this), and the tuner of stores would judge by that.
        segment->prefault(offset, size);
        return {};
      },
      [segment](std::size_t offset, std::size_t size) { return segment->release(offset, size); },
      limit == kAutomatic ? segment->size() : limit,
      [segment](std::size_t offset, std::size_t size, int node) { prefer_node(segment->data() + offset, size, node); });
  ContextsOfProcess::instance().add(setup.context, memory);
  return std::unique_ptr<Transport>(std::move(transport));
}

ShmTransport::~ShmTransport() {
  if (memory_ == nullptr) return;  // create() has failed
  ContextsOfProcess::instance().remove(setup_.context);
  for (const auto& each : processes_)
    if (const auto process = each.lock()) process->leave(setup_.context);
}

void ShmTransport::arm() {
  // Peers store a counter and then read `armed` without a fence between, which would cost a third of a small all-reduce. The
  // barrier on every core replaces that fence.
  memory_->head().armed.store(1, std::memory_order_relaxed);
  (void)pass_barrier_on_every_core();
}

void ShmTransport::disarm() { memory_->head().armed.store(0, std::memory_order_relaxed); }

Result<std::unique_ptr<PeerGroupSeat>> ShmTransport::reserve_seat(const GroupSize& size) {
  return ShmSeat::reserve(memory_, *pool_, size);
}

// From now on the heartbeats of this process are counted in this context's memory, where other processes of the host read them.
// Returns the object with which this process watches theirs.
Result<Heartbeats*> ShmTransport::start_heartbeat() {
  SETO_ASSIGN(Heartbeats* const heartbeats,
              Heartbeats::of_process({setup_.config->heartbeat_ms, setup_.config->liveness_timeout_ms}));
  const std::lock_guard lock(mutex_);
  if (!std::exchange(has_heartbeat_, true)) heartbeat_ = heartbeats->beat(memory_->head().beats);
  return heartbeats;
}

void ShmTransport::remember(const std::shared_ptr<LocalProcess>& process) {
  const std::lock_guard lock(mutex_);
  bool known = false;
  std::erase_if(processes_, [&](const std::weak_ptr<LocalProcess>& each) {
    const auto one = each.lock();
    known = known || one == process;
    return one == nullptr;
  });
  if (!known) processes_.push_back(process);
}

// ---- connecting ----

Status ShmTransport::connect(const Attempt& attempt, Deadline until, Connections& made) {
  const Place& own = *attempt.members[attempt.own].place;
  const auto contexts = std::count_if(attempt.members.begin(), attempt.members.end(), [&](const AttemptMember& one) {
    return one.place->process == own.process && one.place->host == own.host;
  });
  const auto process_setup = ProcessSetup::of_process(attempt.id, static_cast<std::size_t>(contexts), until);
  SETO_TRY(connect_processes(attempt, until, *process_setup, made));
  for (std::uint32_t member = 0; member < attempt.members.size(); ++member) {
    const AttemptMember& one = attempt.members[member];
    if (!one.wanted) continue;
    const Result<std::shared_ptr<ShmConnection>> connection = connection_to(one, attempt, until, *process_setup);
    if (!connection.ok()) return named(one, connection.status());
    if (connection.value()->local_process() != nullptr) remember(connection.value()->local_process());
    made[member] = connection.value();
  }
  return {};
}

Result<std::shared_ptr<ShmConnection>> ShmTransport::connection_to(const AttemptMember& member, const Attempt& attempt,
                                                                   Deadline until, ProcessSetup& process_setup) {
  const PeerContext peer{member.place->process, member.place->context, attempt.id};
  if (peer.process == attempt.members[attempt.own].place->process) return ShmConnection::within(peer);
  if (both_hold_connection(attempt.members[attempt.own], member))
    return failure(Code::remote_error, "the connection that earlier communicators opened to it has ended");
  return process_setup.connection_to(peer, until);
}

// For each other process of the host, one context of this process does the handshake for all. All handshakes are started first
// and then finished in an order that all members share; otherwise they could wait for each other in a circle. A failure is
// published at once to the other contexts that wait for the connections.
Status ShmTransport::connect_processes(const Attempt& attempt, Deadline until, ProcessSetup& process_setup, Connections& made) {
  std::vector<LocalProcess::Pair> pairs = process_pairs(attempt);
  std::erase_if(pairs, [&](const LocalProcess::Pair& one) { return one.own.contexts.front() != setup_.context; });
  if (pairs.empty()) return {};
  const Result<Heartbeats*> heartbeats = start_heartbeat();
  std::vector<Result<LocalProcess::Handshake>> handshakes;
  for (const LocalProcess::Pair& pair : pairs)
    handshakes.push_back(heartbeats.ok() ? LocalProcess::start_handshake(pair, until) : heartbeats.status());
  Status outcome = heartbeats.ok() ? Status() : heartbeats.status();
  const auto finish = [&](Result<LocalProcess::Handshake>& started) -> Result<ShmConnections> {
    SETO_TRY(outcome);
    SETO_ASSIGN(LocalProcess::Handshake handshake, std::move(started));
    return LocalProcess::finish_handshake(std::move(handshake), *heartbeats.value());
  };
  for (std::size_t index = 0; index < pairs.size(); ++index) {
    const Result<ShmConnections> result = finish(handshakes[index]);
    process_setup.publish(pairs[index].theirs.process, result);
    const std::uint32_t first = first_member_of(pairs[index].theirs, attempt);
    if (!result.ok()) {
      if (outcome.ok()) outcome = named(attempt.members[first], result.status());
    } else if (made[first] == nullptr) {
      made[first] = result.value().front();  // keeps that process connected, should a later handshake fail
    }
  }
  return outcome;
}

void ShmTransport::decline(const Attempt& attempt, const Status& reason) {
  const Result<LocalConnector*> connector = LocalConnector::of_process();
  if (connector.ok()) connector.value()->decline(attempt.id, setup_.context, reason);
}

}  // namespace seto
