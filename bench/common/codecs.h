#pragma once

#include <seto/seto.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "bench/common/types.h"

namespace seto::bench {

inline constexpr char kExact[] = "none";

// 0: the library knows none of that name, and its last error says what there is.
int codec_named(const std::string& name);

// Whether such sums may travel in it: "none", and a name that is none, take nothing.
bool takes(const std::string& codec, setoDataType_t type, Op op);

// The one that a text of SETO_CODEC names for some tiers or for all: "site=int8,world=none" int8; "none" if it names none.
std::string codec_of_setting(std::string_view setting);

// Bytes of that many numbers in a codec, or "none"; 0 of what is neither.
std::size_t size_in(const std::string& codec, setoDataType_t type, std::size_t count);

// What the last collective of a communicator travelled in, by its flight recorder. Empty if that is off: nobody knows.
std::string travelled_in(setoComm_t comm);
// The same, of a dump of it.
std::string last_codec(const std::string& dump_json);

}  // namespace seto::bench
