#pragma once

#include <functional>
#include <string>

#include "include/seto/seto.h"

namespace seto::testing {

enum class Ranks { as_threads, as_processes };

struct ApiRank {
  int rank = 0;
  int ranks = 1;
  setoComm_t comm = nullptr;
};

// Runs the body on every rank of a new communicator, which it may destroy (then it sets comm to null). The test's own process
// never uses the library, so that it may fork again. Returns true if every body ended without a failed expectation.
bool run_ranks(Ranks kind, int ranks, const std::function<void(ApiRank&)>& body);

// Runs the body in a child process.
bool run_alone(const std::function<void()>& body);

// "setoSuccess", or the name of the code and the last error, for expectations.
std::string outcome(setoResult_t result);

}  // namespace seto::testing
