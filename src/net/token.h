#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace seto {

// 128 random bits known only to members of a job.
using Token = std::array<std::uint8_t, 16>;

// Fills at most 256 bytes from the kernel's random generator.
void fill_random(void* bytes, std::size_t size);

// From the kernel's random generator, which cannot fail once the machine has booted.
[[nodiscard]] Token random_token();

// Constant-time comparison.
[[nodiscard]] bool equal(const Token& left, const Token& right);

// "seto-" and 64 random bits: an abstract socket name. It is public (/proc/net/unix), so it must never derive from a token.
[[nodiscard]] std::string random_socket_name();

}  // namespace seto
