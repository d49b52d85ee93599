#include "tests/soak/batch.h"

#include <atomic>

namespace seto::soak {
namespace {

// Beyond the deadline of the operations, which says more.
constexpr std::uint32_t kWaitMs = kOperationMs * 2;

void count_one(void* argument) { ++*static_cast<std::atomic<int>*>(argument); }

Heard wait_for(setoStream_t stream) {
  std::uint64_t position = 0;
  const Heard asked = heard(setoStreamPosition(stream, &position));
  if (!asked.well()) return asked;
  if (position % 4 != 0) return heard(setoStreamWait(stream, position, kWaitMs));
  setoResult_t result = setoInProgress;
  if (!eventually([&] { return (result = setoStreamPoll(stream, position)) != setoInProgress; }, kWaitMs))
    return {setoTimeout, "the stream is polled in vain"};
  return heard(result);
}

Heard run_streams(const Batch& batch, const Streams& streams) {
  Heard first;
  std::atomic<int> counted{0};
  std::size_t next = 0;
  for (const auto& call : batch) {
    const setoStream_t stream = streams[next++];
    const Heard issued = heard(call->issue(stream));
    call->issued();
    if (!issued.well()) first = issued;
    if (!issued.well()) break;
  }
  // The second stream's function comes behind all of the first.
  std::uint64_t position = 0;
  setoStreamPosition(streams[0], &position);
  setoStreamWaitFor(streams[1], streams[0], position);
  const Heard launched = heard(setoLaunchHostFunction(streams[1], count_one, &counted));
  if (first.well()) first = launched;
  for (const std::size_t index : {std::size_t{1}, std::size_t{0}}) {
    const Heard waited = wait_for(streams[index]);
    if (first.well()) first = waited;
  }
  if (first.well() && counted != 1) return {setoInternalError, "a host function ran " + std::to_string(counted) + " times"};
  return first;
}

Heard run_group(const Batch& batch, setoStream_t stream) {
  Heard first = heard(setoGroupStart());
  if (!first.well()) return first;
  for (const auto& call : batch) {
    const Heard issued = heard(call->issue(stream));
    if (first.well()) first = issued;
  }
  const Heard ended = heard(setoGroupEnd());
  for (const auto& call : batch) call->issued();
  if (first.well()) first = ended;
  if (stream == nullptr) return first;
  const Heard waited = wait_for(stream);
  return first.well() ? waited : first;
}

}  // namespace

Streams::Streams() {
  for (setoStream_t& stream : streams_) setoStreamCreate(&stream);
}

Streams::~Streams() {
  for (setoStream_t const stream : streams_) setoStreamDestroy(stream);
}

Heard run(const Batch& batch, Manner manner, const Streams& streams) {
  switch (manner) {
    case Manner::streams:
      return run_streams(batch, streams);
    case Manner::group:
      return run_group(batch, nullptr);
    case Manner::group_on_stream:
      return run_group(batch, streams[0]);
    default:
      for (const auto& call : batch) {
        const Heard done = heard(call->issue(nullptr));
        call->issued();
        if (!done.well()) return done;
      }
      return {};
  }
}

Trouble check(const Batch& batch, Tally& tally) {
  for (const auto& call : batch) {
    ++tally.operations;
    tally.bytes += call->bytes();
    ++tally.checks;
    if (const std::string difference = call->difference(); !difference.empty())
      return "WRONG RESULT of " + call->operation().text() + ": " + difference;
  }
  return {};
}

Trouble run_checked(const Batch& batch, Manner manner, const Streams& streams, Tally& tally) {
  const Heard done = run(batch, manner, streams);
  if (done.well()) return check(batch, tally);
  std::string calls;
  for (const auto& call : batch) calls += (calls.empty() ? "" : "; ") + call->operation().text();
  return "manner " + std::to_string(static_cast<int>(manner)) + ", calls (" + calls + "): " + done.told();
}

}  // namespace seto::soak
