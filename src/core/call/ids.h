#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace seto {

// Ids of algorithm and codec names, for calls; 0 means unknown. Ids are equal on all ranks that run the same library version.
int algorithm_id(std::string_view name);
// Empty if the id is unknown.
std::string_view algorithm_name(int id);
// Id 1 is "none": no codec.
int codec_id(std::string_view name);
// The codec's number in plans, where 0 is no codec. The id must be a codec id.
std::uint8_t codec_number(int id);
std::string_view codec_name(std::uint8_t number);
bool is_codec_id(int id);

// "ring, direct": for error texts. With an unknown name in `like`: "...; did you mean ring".
std::string listed(const std::vector<std::string_view>& names, std::string_view like = {});
std::string known_algorithms(std::string_view like = {});
std::string known_codecs(std::string_view like = {});

// "0.7 s": the time between two moments in microseconds; 0 if the second is before the first.
std::string seconds_text(std::uint64_t from_us, std::uint64_t to_us);

}  // namespace seto
