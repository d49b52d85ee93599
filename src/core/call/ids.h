#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace seto {

// Ids of names, for calls: 0 is none. Of one version of the library, the same on all ranks.
int algorithm_id(std::string_view name);
// Empty for what is no id.
std::string_view algorithm_name(int id);
// 1 is "none": exact.
int codec_id(std::string_view name);
// As plans number codecs: 0 is none. Of an id that is one.
std::uint8_t codec_number(int id);
std::string_view codec_name(std::uint8_t number);
bool is_codec_id(int id);

// "ring, direct": for the text of a failure. Of `like`, which is none of them: "...; did you mean ring".
std::string listed(const std::vector<std::string_view>& names, std::string_view like = {});
std::string known_algorithms(std::string_view like = {});
std::string known_codecs(std::string_view like = {});

// "0.7 s", of two times in microseconds; 0 where the second is before the first.
std::string seconds_text(std::uint64_t from_us, std::uint64_t to_us);

}  // namespace seto
