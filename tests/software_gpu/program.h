#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/instruction.h"

namespace seto::software_gpu {

// Where a parameter is in the param space of its function.
struct Parameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

// A call copies its arguments from the param space of the caller to that of the callee, and the results back.
struct CallSite {
  std::uint32_t function = 0;
  std::vector<std::uint32_t> arguments;  // offsets in the caller's param space
  std::vector<std::uint32_t> results;
};

struct Function {
  std::string name;
  bool is_entry = false;
  std::vector<Instruction> code;
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> label_tables;
  std::uint32_t register_slots = 0;
  std::uint32_t param_bytes = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t shared_bytes = 0;  // of an entry: static shared memory
  std::uint32_t most_threads = 0;  // of a block
};

class ModuleDecoder;

// A module whose variables have been placed in memory. It belongs to one GPU, as a loaded module of the driver does. The code of
// a kernel is decoded when it is first asked for: the library has about a hundred thousand instructions, of which a test executes
// those of a kernel or two.
struct Program {
  std::vector<std::unique_ptr<Function>> functions;       // a kernel has no code before its first launch
  std::map<std::string, std::uint64_t> global_addresses;  // of .global and .const variables
  std::shared_ptr<ModuleDecoder> decoder;

  // All of a kernel but its code; null: the module has none of this name.
  [[nodiscard]] const Function* entry(std::string_view name) const;
  // With its code. Throws a Fault that names the line of the first instruction that has no handler.
  [[nodiscard]] const Function* decoded_entry(std::string_view name) const;
  // The text, for reports.
  [[nodiscard]] std::string_view line(std::uint32_t number) const;
};

// Gives memory to a variable of the module.
using PlaceVariable = std::function<std::uint64_t(const VariableSyntax& variable)>;

// Throws a Fault that names a line where the text is wrong, apart from the code of kernels.
[[nodiscard]] Program decode_program(std::string_view ptx, const PlaceVariable& place);

}  // namespace seto::software_gpu
