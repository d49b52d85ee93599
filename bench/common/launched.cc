#include "bench/common/launched.h"

#include <cstdio>

namespace seto::bench {

std::unique_ptr<Launched> Launched::join(std::string& problem) {
  setoComm_t comm = nullptr;
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.memory = setoMemoryHost;
  config.commName = "bench";
  int rank = 0;
  int ranks = 1;
  if (setoCommInitEnvironment(&comm, &config) != setoSuccess || setoCommUserRank(comm, &rank) != setoSuccess ||
      setoCommCount(comm, &ranks) != setoSuccess) {
    problem = setoGetLastError(comm);
    return nullptr;
  }
  std::unique_ptr<Launched> job(new Launched(comm, rank, ranks));
  if (ranks == 1) job.reset();
  return job;
}

Launched::~Launched() {
  if (comm_ != nullptr) static_cast<void>(setoCommDestroy(comm_));
}

bool Launched::gather(void* all, std::size_t size) {
  if (comm_ == nullptr) return false;
  const auto* mine = static_cast<std::byte*>(all) + static_cast<std::size_t>(rank_) * size;
  if (setoAllGather(mine, all, size, setoUint8, comm_, nullptr) == setoSuccess) return true;
  std::fprintf(stderr, "bench: rank %d: %s\n", rank_, setoGetLastError(comm_));
  give_up();
  return false;
}

void Launched::give_up() {
  if (comm_ != nullptr) static_cast<void>(setoCommAbort(comm_));
  comm_ = nullptr;
}

}  // namespace seto::bench
