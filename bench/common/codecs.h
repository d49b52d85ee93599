#pragma once

#include <seto/seto.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "bench/common/types.h"

namespace seto::bench {

inline constexpr char kExact[] = "none";

// The codec that the library chooses for sums of float32 between far sites, if no codec is named.
inline constexpr char kCodecOfLinks[] = "fp16";

// Returns 0 if the library has no codec of that name; its last error lists the codecs.
int codec_named(const std::string& name);

// Whether sums of this type and operation may use the codec. False for "none" and for unknown names.
bool takes(const std::string& codec, setoDataType_t type, Op op);

// Returns the codec that a text of SETO_CODEC names for some tiers or for all: "site=int8,world=none" gives int8; "none" if it
// names none.
std::string codec_of_setting(std::string_view setting);

// Bytes of that many numbers in a codec, or in "none"; 0 for an unknown name.
std::size_t size_in(const std::string& codec, setoDataType_t type, std::size_t count);

// The codec that the last collective of a communicator used, read from its flight recorder. Empty, that is unknown, if the
// recorder is off.
std::string travelled_in(setoComm_t comm);
// The same, read from the text of a dump.
std::string last_codec(const std::string& dump_json);

}  // namespace seto::bench
