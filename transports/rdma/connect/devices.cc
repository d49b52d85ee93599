#include "transports/rdma/connect/devices.h"

#include <algorithm>
#include <utility>

namespace seto::rdma {

Result<std::unique_ptr<Devices>> Devices::open(Verbs& verbs, std::vector<PortName> only) {
  SETO_ASSIGN(const std::vector<std::string> names, verbs.devices());
  auto devices = std::make_unique<Devices>();
  for (const PortName& one : only)
    if (std::find(names.begin(), names.end(), one.device) == names.end())
      devices->troubles_.push_back("there is no RDMA device " + one.device);
  devices->only_ = std::move(only);
  for (const std::string& name : names) {
    if (!devices->wanted(name, 0)) continue;
    auto opened = verbs.open_device(name);
    if (opened.ok())
      devices->devices_[name].verbs = std::move(opened).value();
    else
      devices->troubles_.emplace_back(opened.status().text());
  }
  return devices;
}

std::vector<NamedPort> Devices::ports() {
  std::vector<DeviceFacts> all;
  for (auto& [name, device] : devices_) {
    if (device.failed) continue;
    auto facts = device.verbs->facts();
    if (facts.ok())
      all.push_back(std::move(facts).value());
    else if (!std::exchange(device.has_trouble, true))
      troubles_.emplace_back(facts.status().text());
  }
  std::vector<NamedPort> ports = ports_of(all);
  std::erase_if(ports, [this](const NamedPort& one) { return !wanted(one.device, one.facts.number); });
  return ports;
}

// `port` 0: any.
bool Devices::wanted(const std::string& device, std::uint8_t port) const {
  return only_.empty() || std::any_of(only_.begin(), only_.end(), [&](const PortName& one) {
           return one.device == device && (port == 0 || one.port == 0 || one.port == port);
         });
}

Result<Devices::Device*> Devices::device(const std::string& name) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return failure(Code::remote_error, "this process has no RDMA device %s", name.c_str());
  Device& device = found->second;
  if (device.completions == nullptr) {
    SETO_ASSIGN(device.completions, Completions::create(*device.verbs));
  }
  return &device;
}

Status Devices::poll() {
  for (auto& [name, device] : devices_) {
    if (device.completions == nullptr || device.failed) continue;
    const Result<bool> polled = device.completions->poll();
    if (!polled.ok()) return polled.status();
  }
  return {};
}

}  // namespace seto::rdma
