#include "tests/support/communicators.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "src/api/support/handles.h"
#include "src/core/communicator/communicator.h"

namespace seto::testing {

Context& context_of(setoComm_t comm) { return *comm->communicator()->context(); }

CommunicatorSnapshot state_of(setoComm_t comm) { return take_snapshot(comm->communicator()->sources()); }

const void* address_of(setoComm_t comm) { return comm->communicator().get(); }

bool could_know_of_rank_0(setoComm_t comm) {
  const Members& members = comm->communicator()->members();
  return members.fate_of(0).reason != 0 && members.peer_group().status().departures() != 0;
}

void pretend_far_sites(std::function<std::uint64_t()> bytes_per_second) {
  pretend_far_sites([rate = std::move(bytes_per_second)](int) { return rate(); });
}

void pretend_far_sites(std::function<std::uint64_t(int to)> bytes_per_second) {
  PretendedLinks links{60e-3, std::move(bytes_per_second)};
  PretendedLinks::of_process() = std::make_shared<const PretendedLinks>(std::move(links));
}

RateInForce rate_in_force(setoComm_t comm) {
  const RateVersions::Known known = comm->communicator()->rates().known();
  return {known.version, known.costs.world.bytes_per_second};
}

Result<std::shared_ptr<Communicator>> make_communicator(Bootstrap& bootstrap, const Config& config,
                                                        const std::shared_ptr<Context>& context) {
  SETO_ASSIGN(std::unique_ptr<Communicator> made, Communicator::create(bootstrap, {config, context, {}, nullptr, nullptr}));
  return std::shared_ptr<Communicator>(std::move(made));
}

Status run(Communicator& communicator, const Call& call) { return communicator.run(call); }

std::size_t shapes_kept_by(const Communicator& communicator) { return communicator.shapes_kept(); }

Status sum_over(Communicator& communicator) {
  std::vector<int> values(3000, communicator.rank() + 1);
  Call call;
  call.input = call.output = values.data();
  call.count = values.size();
  call.type = DataType::int32;
  SETO_TRY(communicator.run(call));
  const int ranks = communicator.ranks();
  EXPECT_EQ(values, std::vector<int>(values.size(), ranks * (ranks + 1) / 2));
  return {};
}

}  // namespace seto::testing
