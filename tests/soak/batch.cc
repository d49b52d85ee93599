#include "tests/soak/batch.h"

#include <atomic>

namespace seto::soak {
namespace {

// Longer than the deadline of the operations, whose text says more.
constexpr std::uint32_t kWaitMs = kOperationMs * 2;

void count_one(void* argument) { ++*static_cast<std::atomic<int>*>(argument); }

CallResult wait_for(setoStream_t stream) {
  std::uint64_t position = 0;
  const CallResult asked = call_result_of(setoStreamPosition(stream, &position));
  if (!asked.ok()) return asked;
  if (position % 4 != 0) return call_result_of(setoStreamWait(stream, position, kWaitMs));
  setoResult_t result = setoInProgress;
  if (!eventually([&] { return (result = setoStreamPoll(stream, position)) != setoInProgress; }, kWaitMs))
    return {setoTimeout, "the stream did not end while it was polled"};
  return call_result_of(result);
}

CallResult run_streams(const Batch& batch, const Streams& streams) {
  CallResult first;
  std::atomic<int> counted{0};
  std::size_t next = 0;
  for (const auto& call : batch) {
    const setoStream_t stream = streams[next++];
    const CallResult issued = call_result_of(call->issue(stream));
    call->issued();
    if (!issued.ok()) first = issued;
    if (!issued.ok()) break;
  }
  // The second stream's function is queued behind all items of the first stream.
  std::uint64_t position = 0;
  setoStreamPosition(streams[0], &position);
  setoStreamWaitFor(streams[1], streams[0], position);
  const CallResult launched = call_result_of(setoLaunchHostFunction(streams[1], count_one, &counted));
  if (first.ok()) first = launched;
  for (const std::size_t index : {std::size_t{1}, std::size_t{0}}) {
    const CallResult waited = wait_for(streams[index]);
    if (first.ok()) first = waited;
  }
  if (first.ok() && counted != 1) return {setoInternalError, "a host function ran " + std::to_string(counted) + " times"};
  return first;
}

CallResult run_group(const Batch& batch, setoStream_t stream) {
  CallResult first = call_result_of(setoGroupStart());
  if (!first.ok()) return first;
  for (const auto& call : batch) {
    const CallResult issued = call_result_of(call->issue(stream));
    if (first.ok()) first = issued;
  }
  const CallResult ended = call_result_of(setoGroupEnd());
  for (const auto& call : batch) call->issued();
  if (first.ok()) first = ended;
  if (stream == nullptr) return first;
  const CallResult waited = wait_for(stream);
  return first.ok() ? waited : first;
}

}  // namespace

Streams::Streams() {
  for (setoStream_t& stream : streams_) setoStreamCreate(&stream);
}

Streams::~Streams() {
  for (setoStream_t const stream : streams_) setoStreamDestroy(stream);
}

CallResult run(const Batch& batch, Manner manner, const Streams& streams) {
  switch (manner) {
    case Manner::streams:
      return run_streams(batch, streams);
    case Manner::group:
      return run_group(batch, nullptr);
    case Manner::group_on_stream:
      return run_group(batch, streams[0]);
    default:
      for (const auto& call : batch) {
        const CallResult done = call_result_of(call->issue(nullptr));
        call->issued();
        if (!done.ok()) return done;
      }
      return {};
  }
}

Problem check(const Batch& batch, Tally& tally) {
  for (const auto& call : batch) {
    ++tally.operations;
    tally.bytes += call->bytes();
    ++tally.checks;
    if (const std::string difference = call->difference(); !difference.empty())
      return "WRONG RESULT of " + call->operation().text() + ": " + difference;
  }
  return {};
}

Problem run_checked(const Batch& batch, Manner manner, const Streams& streams, Tally& tally) {
  const CallResult done = run(batch, manner, streams);
  if (done.ok()) return check(batch, tally);
  std::string calls;
  for (const auto& call : batch) calls += (calls.empty() ? "" : "; ") + call->operation().text();
  return "manner " + std::to_string(static_cast<int>(manner)) + ", calls (" + calls + "): " + done.description();
}

}  // namespace seto::soak
