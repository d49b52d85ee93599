#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "include/seto/seto.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/snapshot.h"

namespace seto {
class Communicator;
class Context;
struct Call;
struct Config;
}  // namespace seto

// Tests see the communicator of a handle through these, and make communicators of their own. The header of Communicator
// includes most of the library, so a test that includes only this one is compiled less often and faster.
namespace seto::testing {

Context& context_of(setoComm_t comm);
CommunicatorSnapshot state_of(setoComm_t comm);
const void* address_of(setoComm_t comm);
// Whether this rank could know that rank 0 failed. Reads what the announcement wrote, and acts on nothing.
bool could_know_of_rank_0(setoComm_t comm);

// From now on the sites of this process's communicators are 60 ms apart, and it sends so many bytes per second to other sites.
void pretend_far_sites(std::function<std::uint64_t()> bytes_per_second);
// The rate depends on the rank to which this process sends.
void pretend_far_sites(std::function<std::uint64_t(int to)> bytes_per_second);
// The version of the rates between sites that the latest operation used, and the rate.
struct RateInForce {
  std::uint64_t version = 0;
  double bytes_per_second = 0;
};
RateInForce rate_in_force(setoComm_t comm);

Result<std::shared_ptr<Communicator>> make_communicator(Bootstrap& bootstrap, const Config& config,
                                                        const std::shared_ptr<Context>& context);
Status run(Communicator& communicator, const Call& call);
std::size_t shapes_kept_by(const Communicator& communicator);
// An all_reduce. Each rank gives its number and one; the test fails if the result is wrong.
Status sum_over(Communicator& communicator);

}  // namespace seto::testing
