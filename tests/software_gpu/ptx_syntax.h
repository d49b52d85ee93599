#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/scalar_type.h"

namespace seto::software_gpu {

enum class Space : std::uint8_t { generic, global, constant, shared, local, param };

// A number, or the address of a symbol plus a number.
struct ConstantSyntax {
  std::string symbol{};
  std::uint64_t value = 0;
};

struct VariableSyntax {
  std::string name{};
  Space space = Space::global;
  ScalarType type = ScalarType::b8;
  std::uint64_t bytes = 0;  // 0: an extern array, which gets its size at launch
  std::uint64_t alignment = 1;
  std::vector<ConstantSyntax> values{};  // elements after these are 0
  std::uint32_t line = 0;
};

// Names are those of the module's text. Registers are numbered by the parser, because a name may mean several in nested scopes.
struct OperandSyntax {
  enum class Kind : std::uint8_t { reg, number, symbol, special, vector, address, list, label };

  Kind kind = Kind::number;
  std::string name{};                     // symbol, special register, label
  std::uint32_t index = 0;                // register slot
  std::uint64_t value = 0;                // number; offset of an address; statement of a label
  bool negated = false;                   // !%p
  std::vector<OperandSyntax> elements{};  // of a vector or list; the base of an address
};

struct StatementSyntax {
  std::string opcode{};  // with all modifiers
  std::vector<OperandSyntax> operands{};
  bool has_second_destination = false;  // "d|p": the first two operands are destinations
  bool has_predicate = false;
  bool predicate_negated = false;
  std::uint32_t predicate = 0;
  std::uint32_t line = 0;
};

struct FunctionSyntax {
  std::string name{};
  bool is_entry = false;
  std::string_view body{};  // with its braces; empty: only declared here
  std::uint32_t body_line = 0;
  std::uint32_t most_threads = 1024;  // of a block, by .maxntid
  std::uint32_t line = 0;
  std::vector<VariableSyntax> results{};
  std::vector<VariableSyntax> parameters{};
  // From here on, BodyParser fills in what the body says.
  std::vector<VariableSyntax> variables{};  // local, shared and param variables
  std::vector<StatementSyntax> statements{};
  std::map<std::string, std::vector<std::uint32_t>> label_tables;  // .branchtargets, as indices of statements
  std::uint32_t register_slots = 2;             // of 64 bits; slots 0 and 1 take results that are dropped ("_")
  std::vector<std::uint32_t> wide_registers{};  // those of two slots, by their first one
};

struct ModuleSyntax {
  std::string target{};  // "sm_90"
  std::vector<VariableSyntax> variables{};
  std::vector<FunctionSyntax> functions{};
};

}  // namespace seto::software_gpu
