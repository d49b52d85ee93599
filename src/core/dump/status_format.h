#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace seto {

class Communicator;

// Version of the JSON form, as kDumpSchema.
inline constexpr std::uint64_t kStatusSchema = 1;

// The present state of these communicators as JSON of at most `most_bytes`: their operations, their sites, and their
// links to ranks of other sites with what the kernel tells of the sockets. Links that would make it too long are counted only.
// Any thread, while others operate: takes no token, and no lock that is held while something waits.
std::string status_of(std::span<const Communicator* const> communicators, std::size_t most_bytes);

}  // namespace seto
