#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/operation_table.h"
#include "tests/software_gpu/program.h"
#include "tests/software_gpu/ptx_parser.h"
#include "tests/software_gpu/raw_memory.h"
#include "tests/software_gpu/special_registers.h"

namespace seto::software_gpu {
namespace {

// Instructions without a destination: all of their operands are sources.
constexpr std::array<std::string_view, 16> kOnlySources{"st",        "red",      "bra",     "brx",     "call",  "ret",
                                                        "nanosleep", "prefetch", "bar",     "barrier", "fence", "membar",
                                                        "trap",      "exit",     "pmevent", "brkpt"};

std::uint32_t placed(std::uint32_t& end, const VariableSyntax& variable) {
  const auto alignment = static_cast<std::uint32_t>(variable.alignment);
  const std::uint32_t offset = (end + alignment - 1) / alignment * alignment;
  end = offset + static_cast<std::uint32_t>(variable.bytes);
  return offset;
}

class ModuleDecoder final {
 public:
  ModuleDecoder(std::string_view text, const PlaceVariable& place) : syntax_(parse_ptx(text)), place_(place) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
      program_.lines.emplace_back(line.substr(first));
      begin = end + 1;
    }
  }

  Program run() {
    place_variables();
    for (const FunctionSyntax& function : syntax_.functions) {
      if (function.has_body) {
        function_numbers_[function.name] = static_cast<std::uint32_t>(program_.functions.size());
        program_.functions.push_back(outline_of(function));
      }
    }
    for (const FunctionSyntax& function : syntax_.functions)
      if (function.has_body) decode_function(function, program_.functions[function_numbers_[function.name]]);
    return std::move(program_);
  }

 private:
  void place_variables() {
    for (const VariableSyntax& variable : syntax_.variables) {
      if (variable.space == Space::shared)
        if (variable.bytes > 0)
          shared_[variable.name] = placed(module_shared_, variable);
        else
          dynamic_shared_.push_back(variable.name);
      else
        program_.global_addresses[variable.name] = place_(variable);
    }
    for (const VariableSyntax& variable : syntax_.variables)
      if (variable.space != Space::shared) initialise(variable);
  }

  void initialise(const VariableSyntax& variable) {
    const std::uint64_t address = program_.global_addresses[variable.name];
    std::fill_n(at_address<std::uint8_t>(address), variable.bytes, std::uint8_t{0});
    for (std::size_t i = 0; i < variable.values.size(); ++i) {
      std::uint64_t value = variable.values[i].value;
      if (const std::string& symbol = variable.values[i].symbol; !symbol.empty()) {
        const auto found = program_.global_addresses.find(symbol);
        if (found == program_.global_addresses.end())
          fail(variable.line, "the initial value names '" + symbol + "', which is no variable in global memory");
        value += found->second;
      }
      write_raw(address + i * size_of(variable.type), {value, 0}, size_of(variable.type));
    }
  }

  // Everything that calls of the function need. Shared variables of all functions come before those of kernels.
  Function outline_of(const FunctionSyntax& syntax) {
    Function function;
    function.name = syntax.name;
    function.is_entry = syntax.is_entry;
    function.register_slots = syntax.register_slots;
    function.most_threads = syntax.most_threads;
    for (const auto& [list, into] : {std::pair{&syntax.parameters, &function.parameters}, {&syntax.results, &function.results}}) {
      for (const VariableSyntax& variable : *list) {
        const std::uint32_t offset = placed(function.param_bytes, variable);
        into->push_back({offset, static_cast<std::uint32_t>(variable.bytes)});
      }
    }
    if (!syntax.is_entry) {
      for (const VariableSyntax& variable : syntax.variables)
        if (variable.space == Space::shared && variable.bytes > 0) shared_[variable.name] = placed(module_shared_, variable);
    }
    return function;
  }

  void decode_function(const FunctionSyntax& syntax, Function& function) {
    symbols_.clear();
    for (const auto& [name, address] : program_.global_addresses) symbols_[name] = {.value = address};
    function.shared_bytes = module_shared_;
    for (const auto& [name, offset] : shared_) symbols_[name] = {.value = offset};
    for (std::size_t i = 0; i < syntax.parameters.size(); ++i)
      symbols_[syntax.parameters[i].name] = {.kind = Operand::Kind::param_symbol, .value = function.parameters[i].offset};
    for (std::size_t i = 0; i < syntax.results.size(); ++i)
      symbols_[syntax.results[i].name] = {.kind = Operand::Kind::param_symbol, .value = function.results[i].offset};
    place_locals(syntax, function);
    for (const std::string& name : dynamic_shared_) {
      symbols_[name] = {.value = (function.shared_bytes + 15U) & ~15U};
      function.shared_bytes = (function.shared_bytes + 15U) & ~15U;
    }
    for (const auto& [name, labels] : syntax.label_tables) {
      tables_[name] = static_cast<std::uint32_t>(function.label_tables.size());
      function.label_tables.push_back(labels);
    }
    for (const StatementSyntax& statement : syntax.statements) function.code.push_back(decode_statement(statement, function));
    add_end(syntax, function);
  }

  // Text that is written by hand may end without a return. Where the last instruction leaves the body, only a branch can come to
  // its end: compilers make such a branch for code that they hold to be unreachable.
  void add_end(const FunctionSyntax& syntax, Function& function) {
    StatementSyntax end{.opcode = "ret"};
    end.line = syntax.statements.empty() ? syntax.line : syntax.statements.back().line;
    Instruction instruction = decode_statement(end, function);
    if (!syntax.statements.empty() && !syntax.statements.back().has_predicate && leaves(syntax.statements.back().opcode))
      instruction.handler = [](Thread&, const Instruction&) {
        throw Fault(FaultKind::misuse,
                    "the thread ran past the last instruction: the compiler held this branch to be impossible");
      };
    function.code.push_back(instruction);
  }
  static bool leaves(std::string_view opcode) {
    return opcode == "ret" || opcode == "exit" || opcode == "trap" || opcode.starts_with("ret.") || opcode.starts_with("bra");
  }

  void place_locals(const FunctionSyntax& syntax, Function& function) {
    for (const VariableSyntax& variable : syntax.variables)
      if (variable.space == Space::local)
        symbols_[variable.name] = {.kind = Operand::Kind::local_symbol, .value = placed(function.local_bytes, variable)};
      else if (variable.space == Space::param)
        symbols_[variable.name] = {.kind = Operand::Kind::param_symbol, .value = placed(function.param_bytes, variable)};
      else if (variable.space == Space::shared && syntax.is_entry && variable.bytes > 0)
        symbols_[variable.name] = {.value = placed(function.shared_bytes, variable)};
  }

  Instruction decode_statement(const StatementSyntax& statement, Function& function) {
    Instruction instruction;
    instruction.line = statement.line;
    instruction.predicate = statement.has_predicate ? static_cast<std::int32_t>(statement.predicate) : -1;
    instruction.predicate_negated = statement.predicate_negated;
    const std::string_view name = std::string_view(statement.opcode).substr(0, statement.opcode.find('.'));
    require_known(statement.opcode, program_.line(statement.line), statement.line);
    if (name == "call")
      decode_call(statement, instruction, function);
    else
      decode_operands(statement, name, instruction);
    resolve_operation(statement.opcode, program_.line(statement.line), instruction);
    return instruction;
  }

  void decode_operands(const StatementSyntax& statement, std::string_view name, Instruction& instruction) {
    const bool only_sources = std::find(kOnlySources.begin(), kOnlySources.end(), name) != kOnlySources.end();
    std::size_t destinations = only_sources ? 0 : statement.has_second_destination ? 2 : 1;
    if (statement.opcode.find(".red.") != std::string::npos && name.starts_with("bar")) destinations = 1;
    for (std::size_t i = 0; i < statement.operands.size(); ++i) {
      const OperandSyntax& operand = statement.operands[i];
      if (operand.kind == OperandSyntax::Kind::address) {
        instruction.base = decode_operand(operand.elements[0], statement);
        instruction.offset = operand.value;
      } else if (operand.kind == OperandSyntax::Kind::label) {
        instruction.target = static_cast<std::uint32_t>(operand.value);
      } else if (name == "brx" && i == 1) {
        instruction.target = table_of(operand.name, statement);
      } else if (operand.kind == OperandSyntax::Kind::vector) {
        for (const OperandSyntax& element : operand.elements)
          add_operand(decode_operand(element, statement), i < destinations, statement, instruction);
      } else {
        add_operand(decode_operand(operand, statement), i < destinations, statement, instruction);
      }
    }
  }

  static void add_operand(const Operand& operand, bool is_destination, const StatementSyntax& statement,
                          Instruction& instruction) {
    auto& list = is_destination ? instruction.d : instruction.s;
    std::uint8_t& count = is_destination ? instruction.destinations : instruction.sources;
    if (count == list.size()) fail(statement.line, "too many operands");
    if (is_destination && operand.kind != Operand::Kind::reg) fail(statement.line, "a destination must be a register");
    list[count++] = operand;
  }

  Operand decode_operand(const OperandSyntax& syntax, const StatementSyntax& statement) const {
    switch (syntax.kind) {
      case OperandSyntax::Kind::reg:
        return {.kind = Operand::Kind::reg, .negated = syntax.negated, .index = syntax.index};
      case OperandSyntax::Kind::number:
        return {.value = syntax.value};
      case OperandSyntax::Kind::special: {
        const auto special = special_register_named(syntax.name);
        if (!special) {
          fail(statement.line, std::string("'") + syntax.name +
                                   "' is neither a register of the function nor a special register that is known here");
        }
        return {.kind = Operand::Kind::special, .index = static_cast<std::uint32_t>(*special)};
      }
      case OperandSyntax::Kind::symbol: {
        const auto found = symbols_.find(syntax.name);
        if (found == symbols_.end()) fail(statement.line, "the symbol '" + syntax.name + "' is not defined");
        Operand operand = found->second;
        operand.value += syntax.value;
        return operand;
      }
      default:
        fail(statement.line, "an operand in this place is not known");
    }
  }

  void decode_call(const StatementSyntax& statement, Instruction& instruction, Function& function) {
    CallSite site;
    const OperandSyntax* callee = nullptr;
    for (const OperandSyntax& operand : statement.operands) {
      if (operand.kind == OperandSyntax::Kind::list) {
        auto& into = callee == nullptr ? site.results : site.arguments;
        for (const OperandSyntax& element : operand.elements) {
          const Operand symbol = decode_operand(element, statement);
          if (symbol.kind != Operand::Kind::param_symbol) fail(statement.line, "arguments of calls must be .param variables");
          into.push_back(static_cast<std::uint32_t>(symbol.value));
        }
      } else if (callee == nullptr && operand.kind == OperandSyntax::Kind::symbol) {
        callee = &operand;
      } else {
        fail(statement.line, "indirect calls are not known here");
      }
    }
    const auto found = callee == nullptr ? function_numbers_.end() : function_numbers_.find(callee->name);
    if (found == function_numbers_.end()) {
      throw Fault(FaultKind::refused, "ptx line " + std::to_string(statement.line) + ": a call of '" +
                                          (callee == nullptr ? "" : callee->name) + "', which the module does not define");
    }
    site.function = found->second;
    const Function& target = program_.functions[site.function];
    if (site.arguments.size() != target.parameters.size() || site.results.size() != target.results.size())
      fail(statement.line, "the call has other arguments than '" + callee->name + "'");
    instruction.target = static_cast<std::uint32_t>(function.calls.size());
    function.calls.push_back(std::move(site));
  }

  std::uint32_t table_of(const std::string& name, const StatementSyntax& statement) const {
    const auto found = tables_.find(name);
    if (found == tables_.end()) fail(statement.line, std::string("'") + name + "' is not a table of labels");
    return found->second;
  }

  [[noreturn]] static void fail(std::uint32_t line, const std::string& why) {
    throw Fault(FaultKind::syntax, "ptx line " + std::to_string(line) + ": " + why);
  }

  ModuleSyntax syntax_;
  const PlaceVariable& place_;
  Program program_;
  std::map<std::string, std::uint32_t> function_numbers_;
  std::map<std::string, std::uint32_t> shared_;  // static variables outside kernels
  std::vector<std::string> dynamic_shared_;
  std::uint32_t module_shared_ = 0;
  std::map<std::string, Operand> symbols_;       // of the function that is decoded
  std::map<std::string, std::uint32_t> tables_;  // likewise
};

}  // namespace

Program decode_program(std::string_view ptx, const PlaceVariable& place) { return ModuleDecoder(ptx, place).run(); }

}  // namespace seto::software_gpu
