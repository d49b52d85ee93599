#include "transports/rdma/connect/port_report.h"

#include <memory>

#include "transports/rdma/connect/devices.h"
#include "transports/rdma/connect/selection.h"
#include "transports/rdma/verbs/process_verbs.h"

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
  report.device = port.device;
  report.port = port.facts.number;
  report.remark = report.link_layer = port.facts.link_layer == LinkLayer::ethernet ? "Ethernet" : "InfiniBand";
  report.mtu = port.facts.mtu;
  report.rate_mbit = port.facts.rate_mbit;
  if (port.facts.state != PortState::active) return report;
  SelectionInput input;
  input.own = input.peer = {port};
  const Selection selection = select(input);
  if (selection.candidates.empty()) {
    report.value = "cannot be used";
    report.why = explain_none(input, selection);
    report.remark += ": " + report.why;
    return report;
  }
  Candidate best = selection.candidates.front();
  if (best.own.gid_index && port.facts.gids.size() > 1)
    best.why += ", the best of " + std::to_string(port.facts.gids.size()) +
                " GIDs (v2 before v1, routable before link-local, IPv4 before IPv6)";
  report.why = best.why;
  report.gid_index = best.own.gid_index;
  if (best.own.gid_index) report.gid = to_text(best.own.gid);
  // The text begins with the name.
  report.remark += to_text(best).substr(report.name.size());
  return report;
}

}  // namespace

Result<std::vector<PortReport>> report_ports(Verbs& verbs) {
  SETO_ASSIGN(const std::unique_ptr<Devices> devices, Devices::open(verbs));
  std::vector<PortReport> reports;
  for (const NamedPort& port : devices->ports()) reports.push_back(report_of(port));
  for (const std::string& trouble : devices->troubles()) {
    PortReport& report = reports.emplace_back();
    report.name = "a device";
    report.value = "cannot be opened";
    report.remark = trouble;
  }
  return reports;
}

Result<std::vector<PortReport>> report_ports() {
  if (!has_devices()) return std::vector<PortReport>();
  SETO_ASSIGN(Verbs* const verbs, verbs_of_process());
  return report_ports(*verbs);
}

}  // namespace seto::rdma
