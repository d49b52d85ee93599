#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/base/types.h"

namespace seto {

std::string host_name();

// Expands a pattern of SETO_DUMP_FILE: %h is the host's name, %p the process id, %r the rank, %% a percent sign.
std::string dump_path(std::string_view pattern, Rank rank);

// Inserts a number before the extension: "dump-3.json" and 2 give "dump-3.2.json". For another communicator that wants the same
// name.
std::string numbered(const std::string& path, unsigned number);

// Fails if write_file() could not make a file with that path now: its folder does not exist, or this user may not write there.
Status check_folder_of(const std::string& path);

// Replaces the file by one with all of the text, or changes nothing. Only the owner may read the file.
Status write_file(const std::string& path, std::string_view text);

}  // namespace seto
