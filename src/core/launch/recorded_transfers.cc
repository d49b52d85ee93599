#include "src/core/launch/recorded_transfers.h"

namespace seto {

RecordedCall recorded(const TransferCall& call) {
  RecordedCall::Parts parts;
  for (const Transfer& transfer : call.transfers)
    if (static_cast<int>(transfer.type) < kDataTypeCount) parts.bytes += transfer.count * size_of(transfer.type);
  parts.count = call.transfers.size();
  parts.kind = call.kind == TransferKind::all_to_all_v ? RecordedKind::all_to_all_v : RecordedKind::transfers;
  if (call.transfers.size() == 1 && call.kind == TransferKind::point_to_point) {
    const Transfer& only = call.transfers.front();
    parts.kind = only.direction == LocalTransfer::Direction::send ? RecordedKind::send : RecordedKind::receive;
    parts.type = only.type;
    parts.count = only.count;
    parts.root = only.peer;
  }
  return RecordedCall::of(parts);
}

}  // namespace seto
