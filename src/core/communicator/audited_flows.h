#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/json_writer.h"
#include "src/core/communicator/members.h"
#include "src/core/record/audit_log.h"

namespace seto {

// The lines of one communicator in the audit log: one for each rank of another site when the communicator is complete, and one
// when it ends. Does nothing where no audit file is set or all ranks are at one site.
class AuditedFlows final {
 public:
  explicit AuditedFlows(const Members& members) : members_(members) {}
  AuditedFlows(const AuditedFlows&) = delete;
  AuditedFlows& operator=(const AuditedFlows&) = delete;

  // `name`: of the communicator, as a person knows it.
  void begin(const Config& config, const std::string& name);
  // `outcome`: why the communicator failed, if it did. Waits for the disk, but not long.
  void end(const Status& outcome);

 private:
  struct Flow {
    Rank peer = 0;
    Connection::Traffic before;  // of its connection, which communicators share
  };
  void describe(JsonWriter& json, const char* event, Rank peer) const;

  const Members& members_;
  std::shared_ptr<AuditLog> log_;  // null: nothing to do
  std::string name_;
  std::string codec_;
  std::uint64_t start_us_ = 0;  // wall clock
  std::vector<Flow> flows_;
};

}  // namespace seto
