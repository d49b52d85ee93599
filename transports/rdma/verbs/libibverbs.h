#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/rdma/verbs/libibverbs_functions.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

inline constexpr const char* kVerbsLibrary = "libibverbs.so.1";

// The verbs of this machine. The library is opened at run time, and stays open until the process ends.
class Libibverbs final : public Verbs {
 public:
  static Result<std::unique_ptr<Verbs>> open(const std::string& file = kVerbsLibrary);
  // With functions from elsewhere, which a test provides.
  explicit Libibverbs(const LibibverbsFunctions& functions) : functions_(functions) {}

  Result<std::vector<std::string>> devices() override;
  Result<std::unique_ptr<VerbsDevice>> open_device(const std::string& name) override;

 private:
  LibibverbsFunctions functions_;
};

}  // namespace seto::rdma
