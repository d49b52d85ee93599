#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/config.h"
#include "src/base/fd.h"
#include "transports/byte_pipe.h"
#include "transports/rdma/connect/devices.h"
#include "transports/rdma/pipes/named_registrations.h"
#include "transports/rdma/pipes/ring_pipe.h"

namespace seto::rdma {

// The ports of SETO_RDMA; empty for "auto" and "always". Not for "off".
[[nodiscard]] Result<std::vector<PortName>> ports_in(std::string_view text);

// How packets are marked and repeated, as the settings say; the rest is of no peer yet.
[[nodiscard]] QueuePairPath path_in(const Config& config);

struct PipeTerms {
  QueuePairPath path;                    // how packets are marked and repeated
  std::uint64_t registered = kNoLimit;   // bytes of named memory at most
  ConnectionManager* manager = nullptr;  // it gives paths where the peer has one, too; it outlives the pipes
};

// The pipes of one context over its RDMA devices.
class RdmaPipes final : public PipeMaker {
 public:
  // Null where SETO_RDMA is off, or there is nothing that it could use: no device, no library, no port that is up, unless
  // SETO_RDMA names ports, which may come up later. Nothing is said of that above debug level unless SETO_RDMA names ports. On a
  // machine without devices no library is opened.
  static Result<std::unique_ptr<PipeMaker>> open(const Config& config);
  // The same with devices from elsewhere, which outlive the result.
  static Result<std::unique_ptr<PipeMaker>> open(Verbs& verbs, std::string_view setting, const PipeTerms& terms = {});
  ~RdmaPipes() override;

  // All ports count, whether they are up or not.
  [[nodiscard]] std::uint32_t rails() const override { return rails_; }
  [[nodiscard]] std::uint32_t usable() const override { return usable_; }
  [[nodiscard]] bool takes_all() const override { return takes_all_; }
  [[nodiscard]] std::uint64_t changes() const override { return changes_; }
  [[nodiscard]] std::unique_ptr<PipeSetUp> begin(const Wanted& wanted) override;
  bool poll() override;
  void arm() override;
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }

 private:
  static constexpr std::uint32_t kMostRails = 4;
  // Events of devices are looked for before each sleep, and after so many polls.
  static constexpr std::uint32_t kPollsALook = 4'096;

  RdmaPipes(std::unique_ptr<Devices> devices, std::uint32_t rails, bool takes_all, Fd epoll, const PipeTerms& terms);
  void look_at_events();
  void take_event(const std::string& device, const AsyncEvent& event);
  void port_failed(const PortName& port, const Status& reason);
  void look_at_ports();
  void device_failed(const std::string& device, const Status& reason);
  [[nodiscard]] bool watch(int descriptor) const;

  const std::unique_ptr<Devices> devices_;
  NamedRegistrations memory_;
  const std::uint32_t rails_;
  const bool takes_all_;
  std::uint32_t usable_ = 0;
  std::uint64_t changes_ = 0;
  bool ports_changed_ = false;  // since they were looked at
  const QueuePairPath path_;
  ConnectionManager* const manager_;
  const Fd epoll_;
  std::vector<int> watched_;  // completion queues in epoll_
  std::uint32_t polls_ = 0;
  std::map<std::pair<std::string, std::uint8_t>, std::uint64_t> says_again_ns_;  // by port that was lost
  OpenPipes pipes_;
};

}  // namespace seto::rdma
