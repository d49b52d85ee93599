#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace seto {

// 128 random bits that only members of a job know.
using Token = std::array<std::uint8_t, 16>;

// From the kernel's generator, at most 256 bytes.
void fill_random(void* bytes, std::size_t size);

// From the kernel's generator, which cannot fail once the machine has booted.
[[nodiscard]] Token random_token();

// Takes the same time wherever the first difference lies.
[[nodiscard]] bool equal(const Token& left, const Token& right);

// "seto-" and 64 random bits: an abstract socket name. It is public (/proc/net/unix), so it must never derive from a token.
[[nodiscard]] std::string random_socket_name();

}  // namespace seto
