#include "src/net/version.h"

namespace seto {

std::string_view library_version() { return SETO_VERSION_TEXT; }

static_assert(sizeof SETO_VERSION_TEXT <= kVersionSize + 1);

}  // namespace seto
