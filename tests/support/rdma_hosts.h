#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "transports/byte_pipe.h"
#include "transports/rdma/pipes/rdma_pipes.h"

namespace seto::support {

// The names of fake devices that one host has.
class HostVerbs final : public rdma::Verbs {
 public:
  HostVerbs(FakeFabric& fabric, std::vector<std::string> names) : all_(fabric.verbs()), names_(std::move(names)) {}
  Result<std::vector<std::string>> devices() override { return names_; }
  Result<std::unique_ptr<rdma::VerbsDevice>> open_device(const std::string& name) override { return all_->open_device(name); }

 private:
  const std::unique_ptr<rdma::Verbs> all_;
  const std::vector<std::string> names_;
};

// The pipes of one context on a host with these devices of the fabric, which outlives them.
class RdmaHost final {
 public:
  RdmaHost(FakeFabric& fabric, std::vector<std::string> names, const rdma::QueuePairPath& path = {},
           rdma::ConnectionManager* manager = nullptr, const char* setting = "auto")
      : RdmaHost(fabric, std::move(names), rdma::PipeTerms{.path = path, .manager = manager}, setting) {}
  RdmaHost(FakeFabric& fabric, std::vector<std::string> names, const rdma::PipeTerms& terms, const char* setting = "auto")
      : verbs_(fabric, std::move(names)), terms_(terms) {
    pipes_ = rdma::RdmaPipes::open(verbs_, setting, terms_).value();
    if (pipes_ != nullptr) return;
    std::fprintf(stderr, "a fake host has no RDMA\n");
    std::abort();
  }
  [[nodiscard]] PipeMaker& pipes() { return *pipes_; }
  // The same for an owner of its own.
  [[nodiscard]] std::unique_ptr<PipeMaker> open() { return rdma::RdmaPipes::open(verbs_, "auto", terms_).value(); }

 private:
  HostVerbs verbs_;
  const rdma::PipeTerms terms_;
  std::unique_ptr<PipeMaker> pipes_;
};

using PipePair = std::pair<std::unique_ptr<BytePipe>, std::unique_ptr<BytePipe>>;

// Both ends of a new pipe. `move` lets the fabric go on. Null where the set-up failed at both ends.
template <class Move>
PipePair connect_pipes(PipeMaker& one, PipeMaker& other, const Move& move, std::vector<const BytePipe*> beside = {},
                       std::vector<const BytePipe*> beside_other = {}, const void* link = nullptr) {
  const auto selects = one.begin({PipeMaker::Role::selects, "rank 1", std::move(beside), 0, link});
  const auto follows = other.begin({PipeMaker::Role::follows, "rank 0", std::move(beside_other), 0, link});
  const auto pass = [](PipeSetUp& from, PipeSetUp& to) {
    while (const auto message = from.next_message())
      if (const Status heard = to.hear(*message); !heard.ok()) std::fprintf(stderr, "%s\n", std::string(heard.text()).c_str());
  };
  for (bool here = false, there = false; !here || !there;) {
    pass(*selects, *follows);
    pass(*follows, *selects);
    move();
    here = selects->advance();
    pass(*selects, *follows);
    there = follows->advance();
    pass(*follows, *selects);
  }
  return {selects->take(), follows->take()};
}

}  // namespace seto::support
