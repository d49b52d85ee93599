// The text of a race: both accesses, and what should have ordered them.
#include <algorithm>
#include <string>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/race_check.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {
namespace {

std::string name_of(Scope scope) { return scope == Scope::block ? ".cta" : scope == Scope::gpu ? ".gpu" : ".sys"; }

std::string name_of(const Record& record) {
  return std::string(record.strong ? "a strong " : "a weak ") + (record.writes ? "write" : "read") + " of " +
         std::to_string(record.bytes) + " bytes";
}

}  // namespace

void RaceCheck::report(const ThreadOrder& thread, const Access& access, const Record& record, const Record& earlier) const {
  const BlockPlace& block = blocks_[earlier.at.block];
  const bool is_shared = access.shared != nullptr;
  throw Fault(FaultKind::race, std::string("race in ") + (is_shared ? "shared" : "global") + " memory at " +
                                   hexadecimal(record.address) + ": " + name_of(record) + " and, before, " + name_of(earlier) +
                                   " by " +
                                   place_in(kernels_[block.launch].request, block.index, earlier.at.thread, earlier.line) +
                                   ": nothing orders them: " + missing(thread, access, record, earlier) +
                                   "; the later access is that of this thread");
}

std::string RaceCheck::missing(const ThreadOrder& thread, const Access& access, const Record& record,
                               const Record& earlier) const {
  const bool same_gpu = record.gpu == earlier.gpu;
  const bool same_block = record.at.block == earlier.at.block;
  const Scope needed = same_block ? Scope::block : same_gpu ? Scope::gpu : Scope::system;
  if (record.strong && earlier.strong) {
    if (!record.is_same_place(earlier)) return "strong accesses of different bytes are not atomic for each other";
    const Scope narrow = std::min(record.scope, earlier.scope);
    return "the scope " + name_of(narrow) + " of one does not include the other, which takes " + name_of(needed);
  }
  if (access.order == Order::read_only) return "a read-only load may return what was there at the launch of its kernel";
  const auto& read = thread.not_acquired();
  const auto holds = [&](const Release& release) {
    return (release.at.is_same_thread(earlier.at) && release.at.clock >= earlier.at.clock) || release.past->knows(earlier.at);
  };
  if (const auto found = std::find_if(read.begin(), read.end(), holds); found != read.end()) {
    const bool reaches = includes(found->scope, found->gpu == record.gpu, found->at.block == record.at.block);
    return reaches
               ? "this thread has read a release that follows the earlier access, but without an acquire of scope " +
                     name_of(needed)
               : "a release follows the earlier access, but its scope " + name_of(found->scope) + " does not include this thread";
  }
  return std::string("no ") + (same_block ? "barrier and no " : "") + "release/acquire of scope " + name_of(needed) +
         " is between them";
}

}  // namespace seto::software_gpu
