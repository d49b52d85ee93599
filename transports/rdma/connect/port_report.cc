#include "transports/rdma/connect/port_report.h"

#include <filesystem>
#include <memory>

#include "transports/rdma/connect/devices.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/verbs/libibverbs.h"

namespace seto::rdma {
namespace {

const char* text_of(PortState state) {
  switch (state) {
    case PortState::active:
      return "up";
    case PortState::armed:
      return "armed: its subnet manager has not finished";
    case PortState::initializing:
      return "initializing: no subnet manager has set it up";
    default:
      return "down";
  }
}

// The peer has the same addresses, so the choice is the one that its own addresses allow at best.
PortReport report_of(const NamedPort& port) {
  PortReport report;
  report.name = port.device + " port " + std::to_string(port.facts.number);
  report.value = text_of(port.facts.state);
  report.remark = port.facts.link_layer == LinkLayer::ethernet ? "Ethernet" : "InfiniBand";
  if (port.facts.state != PortState::active) return report;
  SelectionInput input;
  input.own = input.peer = {port};
  const Selection selection = select(input);
  if (selection.candidates.empty()) {
    report.value = "cannot be used";
    report.remark += ": " + explain_none(input, selection);
    return report;
  }
  // The text begins with the name.
  report.remark += to_text(selection.candidates.front()).substr(report.name.size());
  return report;
}

}  // namespace

Result<std::vector<PortReport>> report_ports(Verbs& verbs) {
  SETO_ASSIGN(const std::unique_ptr<Devices> devices, Devices::open(verbs));
  std::vector<PortReport> reports;
  for (const NamedPort& port : devices->ports()) reports.push_back(report_of(port));
  for (const std::string& trouble : devices->troubles()) reports.push_back({"a device", "cannot be opened", trouble});
  return reports;
}

Result<std::vector<PortReport>> report_ports() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/sys/class/infiniband", error);
  if (error || all == std::filesystem::directory_iterator()) return std::vector<PortReport>();
  SETO_ASSIGN(const std::unique_ptr<Verbs> verbs, Libibverbs::open());
  return report_ports(*verbs);
}

}  // namespace seto::rdma
