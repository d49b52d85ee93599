#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/base/types.h"

namespace seto {

std::string host_name();

// A pattern of SETO_DUMP_FILE: %h is the host's name, %p this process, %r the rank, %% a percent sign; the rest stays.
std::string dump_path(std::string_view pattern, Rank rank);

// The same before the ending: "dump-3.json" and 2 give "dump-3.2.json". For another communicator that wants the same name.
std::string numbered(const std::string& path, unsigned number);

// A new file with all of the text takes the place of the old one, or nothing changes. For its owner alone.
Status write_file(const std::string& path, std::string_view text);

}  // namespace seto
