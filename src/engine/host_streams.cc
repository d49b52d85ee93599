#include "src/engine/host_streams.h"

#include "transports/partial_lender.h"

namespace seto {

Result<HostStreams> HostStreams::open(const BoundProgram& program, PeerGroup& peer_group) {
  HostStreams streams;
  for (const BoundStep& step : program.steps) {
    const std::uint64_t bytes = program.lengths[step.first_piece] * program.element_size;
    for (const BoundSource& source : program.sources_of(step)) SETO_TRY(streams.open_source(program, source, peer_group));
    for (const BoundTarget& target : program.targets_of(step)) SETO_TRY(streams.open_target(program, target, bytes, peer_group));
  }
  return streams;
}

Status HostStreams::open_source(const BoundProgram& program, const BoundSource& bound, PeerGroup& peer_group) {
  HostSource& source = sources.emplace_back();
  source.space = bound.space;
  source.coded = bound.coded;
  if (bound.space != Space::channel) return {};
  const BoundStream& end = program.streams[bound.stream];
  SETO_ASSIGN(auto stream, peer_group.open_receive(end.address, end.geometry));
  source.stream = stream.get();
  source.borrowing = stream->borrowing();
  source.sized = stream->sized();
  borrows = borrows || source.borrowing != nullptr;
  receives.push_back(std::move(stream));
  return {};
}

// `bytes`: of the first piece. A message that may be lent has no other. A short one is copied into a slot: that costs less than
// waiting until the receiver has read it.
Status HostStreams::open_target(const BoundProgram& program, const BoundTarget& bound, std::uint64_t bytes,
                                PeerGroup& peer_group) {
  HostTarget& target = targets.emplace_back();
  target.space = bound.space;
  target.coded = bound.coded;
  if (bound.space != Space::channel) return {};
  const BoundStream& end = program.streams[bound.stream];
  SETO_ASSIGN(auto stream, peer_group.open_send(end.address, end.receivers, end.geometry));
  target.stream = stream.get();
  target.peer = static_cast<Rank>(end.receivers.front());
  if (bound.lent_space != Space::channel && bytes >= end.lends_from) {
    target.lending = stream->lending();
    if (target.lending == nullptr) {
      target.lending = dynamic_cast<PartialLender*>(stream.get());
      target.lends_some = target.lending != nullptr;
    }
  }
  if (target.lending != nullptr) {
    target.space = bound.lent_space;
    target.lent_offset = bound.lent_offset;
    lending.push_back(target);
  }
  sends.push_back(std::move(stream));
  return {};
}

}  // namespace seto
