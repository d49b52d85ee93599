#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "tests/software_gpu/body_parser.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/operation_table.h"
#include "tests/software_gpu/program.h"
#include "tests/software_gpu/ptx_parser.h"
#include "tests/software_gpu/raw_memory.h"
#include "tests/software_gpu/register_slots.h"
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

// The text of a module by lines.
class Lines final {
 public:
  explicit Lines(std::string text) : text_(std::move(text)) {
    for (std::size_t begin = 0; begin <= text_.size(); begin = std::min(text_.find('\n', begin), text_.size()) + 1)
      begins_.push_back(begin);
    begins_.push_back(text_.size() + 1);
  }

  [[nodiscard]] std::string_view text() const { return text_; }

  // Without the blanks at its begin; empty if there is no such line.
  [[nodiscard]] std::string_view line(std::uint32_t number) const {
    if (number < 1 || number >= begins_.size()) return {};
    const std::string_view line = text().substr(begins_[number - 1], begins_[number] - begins_[number - 1] - 1);
    return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  }

 private:
  std::string text_;
  std::vector<std::size_t> begins_;
};

// A function with a body, and how far it is decoded.
struct Body {
  Body(FunctionSyntax& function_syntax, Function& decoded)
      : syntax(function_syntax), function(decoded), parser(function_syntax) {}

  FunctionSyntax& syntax;
  Function& function;
  BodyParser parser;
  std::size_t placed = 0;  // of its variables
  std::map<std::string, Operand> symbols{};
  std::map<std::string, std::uint32_t> tables{};
  std::exception_ptr failure{};  // why its code cannot be decoded
};

}  // namespace

class ModuleDecoder final {
 public:
  explicit ModuleDecoder(std::string_view text) : lines_(std::string(text)), syntax_(parse_ptx(lines_.text())) {}

  // All but the code of kernels.
  void outline(Program& program, const PlaceVariable& place) {
    place_variables(program, place);
    for (FunctionSyntax& syntax : syntax_.functions) {
      if (syntax.body.empty()) continue;
      program.functions.push_back(std::make_unique<Function>());
      Body& body = bodies_.emplace_back(syntax, *program.functions.back());
      function_numbers_[syntax.name] = static_cast<std::uint32_t>(program.functions.size() - 1);
      body.parser.parse_declarations();
      if (!syntax.is_entry || body.parser.may_declare_shared_later()) body.parser.parse_statements();
      outline(body);
    }
    for (Body& body : bodies_) place_symbols(program, body);
    for (Body& body : bodies_)
      if (!body.syntax.is_entry) decode(body);
  }

  void decode_kernel(const Function& kernel) {
    for (Body& body : bodies_)
      if (&body.function == &kernel) decode(body);
  }

  [[nodiscard]] std::string_view line(std::uint32_t number) const { return lines_.line(number); }

 private:
  void place_variables(Program& program, const PlaceVariable& place) {
    for (const VariableSyntax& variable : syntax_.variables) {
      if (variable.space == Space::shared)
        if (variable.bytes > 0)
          shared_[variable.name] = placed(module_shared_, variable);
        else
          dynamic_shared_.push_back(variable.name);
      else
        program.global_addresses[variable.name] = place(variable);
    }
    for (const VariableSyntax& variable : syntax_.variables)
      if (variable.space != Space::shared) initialise(variable, program.global_addresses);
  }

  static void initialise(const VariableSyntax& variable, const std::map<std::string, std::uint64_t>& addresses) {
    const std::uint64_t address = addresses.at(variable.name);
    std::fill_n(at_address<std::uint8_t>(address), variable.bytes, std::uint8_t{0});
    for (std::size_t i = 0; i < variable.values.size(); ++i) {
      std::uint64_t value = variable.values[i].value;
      if (const std::string& symbol = variable.values[i].symbol; !symbol.empty()) {
        const auto found = addresses.find(symbol);
        if (found == addresses.end())
          fail(variable.line, "the initial value names '" + symbol + "', which is no variable in global memory");
        value += found->second;
      }
      write_raw(address + i * size_of(variable.type), {value, 0}, size_of(variable.type));
    }
  }

  // Everything that calls of the function need. Shared variables of all functions come before those of kernels.
  void outline(Body& body) {
    const FunctionSyntax& syntax = body.syntax;
    Function& function = body.function;
    function.name = syntax.name;
    function.is_entry = syntax.is_entry;
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
  }

  // The symbols that are known before the statements are parsed.
  void place_symbols(const Program& program, Body& body) {
    Function& function = body.function;
    for (const auto& [name, address] : program.global_addresses) body.symbols[name] = {.value = address};
    function.shared_bytes = module_shared_;
    for (const auto& [name, offset] : shared_) body.symbols[name] = {.value = offset};
    for (std::size_t i = 0; i < body.syntax.parameters.size(); ++i)
      body.symbols[body.syntax.parameters[i].name] = {.kind = Operand::Kind::param_symbol,
                                                      .value = function.parameters[i].offset};
    for (std::size_t i = 0; i < body.syntax.results.size(); ++i)
      body.symbols[body.syntax.results[i].name] = {.kind = Operand::Kind::param_symbol, .value = function.results[i].offset};
    place_variables_of(body);
    for (const std::string& name : dynamic_shared_) {
      function.shared_bytes = (function.shared_bytes + 15U) & ~15U;
      body.symbols[name] = {.value = function.shared_bytes};
    }
  }

  void decode(Body& body) {
    if (body.failure != nullptr) std::rethrow_exception(body.failure);
    if (!body.function.code.empty()) return;
    try {
      body.parser.parse_statements();
      place_variables_of(body);
      decode_body(body);
    } catch (const Fault&) {
      body.failure = std::current_exception();
      throw;
    }
  }

  void decode_body(Body& body) {
    Function& function = body.function;
    function.register_slots = body.syntax.register_slots;
    for (const auto& [name, labels] : body.syntax.label_tables) {
      body.tables[name] = static_cast<std::uint32_t>(function.label_tables.size());
      function.label_tables.push_back(labels);
    }
    std::vector<Exit> exits;
    for (const StatementSyntax& statement : body.syntax.statements) {
      function.code.push_back(decode_statement(statement, body));
      exits.push_back(exit_of(statement.opcode));
    }
    add_end(body);
    exits.push_back(Exit::leaves);
    share_register_slots(function, exits, body.syntax.wide_registers);
    body.syntax.statements = {};
  }

  // Text that is written by hand may end without a return. Where the last instruction leaves the body, only a branch can come to
  // its end: compilers make such a branch for code that they hold to be unreachable.
  void add_end(Body& body) {
    const FunctionSyntax& syntax = body.syntax;
    StatementSyntax end{.opcode = "ret"};
    end.line = syntax.statements.empty() ? syntax.line : syntax.statements.back().line;
    Instruction instruction = decode_statement(end, body);
    if (!syntax.statements.empty() && !syntax.statements.back().has_predicate && leaves(syntax.statements.back().opcode))
      instruction.handler = [](Thread&, const Instruction&) {
        throw Fault(FaultKind::misuse,
                    "the thread ran past the last instruction: the compiler held this branch to be impossible");
      };
    body.function.code.push_back(instruction);
  }
  static bool leaves(std::string_view opcode) {
    return opcode == "ret" || opcode == "exit" || opcode == "trap" || opcode.starts_with("ret.") || opcode.starts_with("bra");
  }

  // Those that have been parsed since the last time.
  static void place_variables_of(Body& body) {
    for (; body.placed < body.syntax.variables.size(); ++body.placed) {
      const VariableSyntax& variable = body.syntax.variables[body.placed];
      Function& function = body.function;
      if (variable.space == Space::local)
        body.symbols[variable.name] = {.kind = Operand::Kind::local_symbol, .value = placed(function.local_bytes, variable)};
      else if (variable.space == Space::param)
        body.symbols[variable.name] = {.kind = Operand::Kind::param_symbol, .value = placed(function.param_bytes, variable)};
      else if (variable.space == Space::shared && body.syntax.is_entry && variable.bytes > 0)
        body.symbols[variable.name] = {.value = placed(function.shared_bytes, variable)};
    }
  }

  Instruction decode_statement(const StatementSyntax& statement, Body& body) {
    Instruction instruction;
    instruction.line = statement.line;
    instruction.predicate = statement.has_predicate ? static_cast<std::int32_t>(statement.predicate) : -1;
    instruction.predicate_negated = statement.predicate_negated;
    const std::string_view name = std::string_view(statement.opcode).substr(0, statement.opcode.find('.'));
    require_known(statement.opcode, line(statement.line), statement.line);
    if (name == "call")
      decode_call(statement, instruction, body);
    else
      decode_operands(statement, name, instruction, body);
    resolve_operation(statement.opcode, line(statement.line), instruction);
    return instruction;
  }

  static void decode_operands(const StatementSyntax& statement, std::string_view name, Instruction& instruction,
                              const Body& body) {
    const bool only_sources = std::find(kOnlySources.begin(), kOnlySources.end(), name) != kOnlySources.end();
    std::size_t destinations = only_sources ? 0 : statement.has_second_destination ? 2 : 1;
    if (statement.opcode.find(".red.") != std::string::npos && name.starts_with("bar")) destinations = 1;
    for (std::size_t i = 0; i < statement.operands.size(); ++i) {
      const OperandSyntax& operand = statement.operands[i];
      if (operand.kind == OperandSyntax::Kind::address) {
        instruction.base = decode_operand(operand.elements[0], statement, body);
        instruction.offset = operand.value;
      } else if (operand.kind == OperandSyntax::Kind::label) {
        instruction.target = static_cast<std::uint32_t>(operand.value);
      } else if (name == "brx" && i == 1) {
        instruction.target = table_of(operand.name, statement, body);
      } else if (operand.kind == OperandSyntax::Kind::vector) {
        for (const OperandSyntax& element : operand.elements)
          add_operand(decode_operand(element, statement, body), i < destinations, statement, instruction);
      } else {
        add_operand(decode_operand(operand, statement, body), i < destinations, statement, instruction);
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

  static Operand decode_operand(const OperandSyntax& syntax, const StatementSyntax& statement, const Body& body) {
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
        const auto found = body.symbols.find(syntax.name);
        if (found == body.symbols.end()) fail(statement.line, "the symbol '" + syntax.name + "' is not defined");
        Operand operand = found->second;
        operand.value += syntax.value;
        return operand;
      }
      default:
        fail(statement.line, "an operand in this place is not known");
    }
  }

  void decode_call(const StatementSyntax& statement, Instruction& instruction, Body& body) {
    CallSite site;
    const OperandSyntax* callee = nullptr;
    for (const OperandSyntax& operand : statement.operands) {
      if (operand.kind == OperandSyntax::Kind::list) {
        auto& into = callee == nullptr ? site.results : site.arguments;
        for (const OperandSyntax& element : operand.elements) {
          const Operand symbol = decode_operand(element, statement, body);
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
    const Function& target = bodies_[site.function].function;
    if (site.arguments.size() != target.parameters.size() || site.results.size() != target.results.size())
      fail(statement.line, "the call has other arguments than '" + callee->name + "'");
    instruction.target = static_cast<std::uint32_t>(body.function.calls.size());
    body.function.calls.push_back(std::move(site));
  }

  static std::uint32_t table_of(const std::string& name, const StatementSyntax& statement, const Body& body) {
    const auto found = body.tables.find(name);
    if (found == body.tables.end()) fail(statement.line, std::string("'") + name + "' is not a table of labels");
    return found->second;
  }

  [[noreturn]] static void fail(std::uint32_t line, const std::string& why) {
    throw Fault(FaultKind::syntax, "ptx line " + std::to_string(line) + ": " + why);
  }

  const Lines lines_;
  ModuleSyntax syntax_;
  std::deque<Body> bodies_;  // in the order of the functions of the program
  std::map<std::string, std::uint32_t> function_numbers_;
  std::map<std::string, std::uint32_t> shared_;  // static variables outside kernels
  std::vector<std::string> dynamic_shared_;
  std::uint32_t module_shared_ = 0;
};

Program decode_program(std::string_view ptx, const PlaceVariable& place) {
  Program program;
  program.decoder = std::make_shared<ModuleDecoder>(ptx);
  program.decoder->outline(program, place);
  return program;
}

const Function* Program::entry(std::string_view name) const {
  for (const auto& function : functions)
    if (function->is_entry && function->name == name) return function.get();
  return nullptr;
}

const Function* Program::decoded_entry(std::string_view name) const {
  const Function* const found = entry(name);
  if (found != nullptr) decoder->decode_kernel(*found);
  return found;
}

std::string_view Program::line(std::uint32_t number) const {
  return decoder == nullptr ? std::string_view{} : decoder->line(number);
}

}  // namespace seto::software_gpu
