#include "tests/software_gpu/write_sources.h"

namespace seto::software_gpu {

WriteRef WriteSources::at(std::uint64_t address, std::uint32_t bytes) const {
  if (may_have_[slot_of(address)]) {
    if (const auto found = sources_.find(granule_of(address)); found != sources_.end())
      for (const Source& source : found->second)
        if (source.address == address && source.bytes == bytes) return source.write;
  }
  return {};
}

void WriteSources::replace(std::uint64_t address, std::uint32_t bytes, const WriteRef& write) {
  std::vector<Source>& list = sources_[granule_of(address)];
  std::erase_if(
      list, [&](const Source& source) { return source.address < address + bytes && address < source.address + source.bytes; });
  if (write != nullptr) list.push_back({address, bytes, write});
  may_have_[slot_of(address)] = true;
}

void WriteSources::clear() {
  sources_.clear();
  may_have_.reset();
}

}  // namespace seto::software_gpu
