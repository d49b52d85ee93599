#include "transports/rdma/connect/devices.h"

namespace seto::rdma {

Result<std::unique_ptr<Devices>> Devices::open(Verbs& verbs) {
  SETO_ASSIGN(const std::vector<std::string> names, verbs.devices());
  auto devices = std::make_unique<Devices>();
  for (const std::string& name : names) {
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
  for (auto& [name, device] : devices_)
    if (auto facts = device.verbs->facts(); facts.ok()) all.push_back(std::move(facts).value());
  return ports_of(all);
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
    if (device.completions == nullptr) continue;
    const Result<bool> polled = device.completions->poll();
    if (!polled.ok()) return polled.status();
  }
  return {};
}

}  // namespace seto::rdma
