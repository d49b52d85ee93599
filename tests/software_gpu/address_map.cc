#include "tests/software_gpu/address_map.h"

#include <utility>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {

void AddressMap::add(Allocation allocation) {
  last_ = nullptr;
  const std::uint64_t address = allocation.address;
  allocations_[address] = std::move(allocation);
}

void AddressMap::remove(std::uint64_t address) {
  last_ = nullptr;
  allocations_.erase(address);
}

void AddressMap::set_accessible(std::uint64_t address, std::uint64_t gpus) { allocations_.at(address).accessible = gpus; }

const Allocation* AddressMap::find(std::uint64_t address) const {
  const auto found = allocations_.find(address);
  return found == allocations_.end() ? nullptr : &found->second;
}

void AddressMap::find_access(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu) {
  const auto holds = [&](const Allocation& one) { return address >= one.address && address + bytes <= one.address + one.bytes; };
  if (last_ == nullptr || !holds(*last_)) {
    const auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin() || !holds(std::prev(after)->second)) {
      throw Fault(FaultKind::out_of_bounds,
                  std::to_string(bytes) + " bytes at " + hexadecimal(address) + " are in no allocation" + nearest(address));
    }
    last_ = &std::prev(after)->second;
  }
  if (last_->is_gone && last_->is_gone())
    throw Fault(FaultKind::out_of_bounds, last_->name + ": the process that has it has ended, or freed it");
  if (((last_->accessible >> gpu) & 1) == 0) {
    throw Fault(FaultKind::out_of_bounds, std::string("GPU ") + std::to_string(gpu) + " has no access to " + last_->name +
                                              " of GPU " + std::to_string(last_->owner));
  }
}

void AddressMap::check(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu, bool writes) {
  find_access(address, bytes, gpu);
  if (last_->multicast != nullptr)
    throw Fault(FaultKind::misuse, hexadecimal(address) + " is a multimem address, which only multimem instructions may access");
  if (writes && last_->read_only) throw Fault(FaultKind::out_of_bounds, last_->name + " is constant and may not be written");
}

std::vector<std::uint64_t> AddressMap::multicast_places(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu) {
  find_access(address, bytes, gpu);
  if (last_->multicast == nullptr)
    throw Fault(FaultKind::misuse, hexadecimal(address) + " is no multimem address: " + last_->name + " is ordinary memory");
  return last_->multicast->at(address - last_->address + last_->multicast_offset, bytes);
}

std::string AddressMap::nearest(std::uint64_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  const Allocation& before = std::prev(after)->second;
  return std::string("; ") + before.name + " (" + std::to_string(before.bytes) + " bytes) ends " +
         std::to_string(address - (before.address + before.bytes)) + " bytes before";
}

}  // namespace seto::software_gpu
