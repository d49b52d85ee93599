#include "src/command/checked_calls.h"

namespace seto::command {
namespace {

constexpr std::uint32_t kCallMs = 30'000;

}  // namespace

CheckedCalls::CheckedCalls(setoComm_t comm) : comm_(comm) { config_.deadlineMs = kCallMs; }

void CheckedCalls::send(const void* data, std::size_t size, int peer) {
  if (ok()) note(setoSendConfig(data, size, setoUint8, peer, comm_, nullptr, &config_));
}

void CheckedCalls::receive(void* data, std::size_t size, int peer) {
  if (ok()) note(setoRecvConfig(data, size, setoUint8, peer, comm_, nullptr, &config_));
}

void CheckedCalls::barrier() {
  if (ok()) note(setoBarrierConfig(comm_, nullptr, &config_));
}

void CheckedCalls::gather(const void* own, void* all, std::size_t size) {
  if (ok()) note(setoAllGatherConfig(own, all, size, setoUint8, comm_, nullptr, &config_));
}

void CheckedCalls::add(double* values, std::size_t count) {
  if (ok()) note(setoAllReduceConfig(values, values, count, setoFloat64, setoSum, comm_, nullptr, &config_));
}

void CheckedCalls::note(setoResult_t result) {
  if (result != setoSuccess && ok()) failure_ = std::string(setoGetErrorString(result)) + ": " + setoGetLastError(nullptr);
}

}  // namespace seto::command
