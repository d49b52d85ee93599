#include "tests/software_gpu/body_parser.h"

#include <utility>

#include "tests/software_gpu/variable_parser.h"

namespace seto::software_gpu {
namespace {

bool ends_with_line(std::string_view directive) {
  return directive == ".loc" || directive == ".file" || directive == ".section" || directive == ".pragma";
}

}  // namespace

void BodyParser::parse_declarations() {
  tokens_.expect("{");
  scopes_.push_back({});
  scope_ = 0;
  while (tokens_.peek().kind == Token::Kind::word && tokens_.peek().text.starts_with(".")) parse_directive();
}

bool BodyParser::may_declare_shared_later() const {
  constexpr std::string_view kDirective = ".shared";
  const auto begin = static_cast<std::size_t>(tokens_.peek().text.data() - function_.body.data());
  for (std::size_t at = begin; (at = function_.body.find(kDirective, at)) != std::string_view::npos; at += kDirective.size())
    if (!is_word(function_.body[at - 1])) return true;  // elsewhere it is a part of the name of an instruction
  return false;
}

void BodyParser::parse_statements() {
  while (scope_ >= 0) parse_item();
  resolve_labels();
}

void BodyParser::parse_item() {
  const Token& token = tokens_.peek();
  if (tokens_.take("{")) {
    scopes_.push_back({.parent = scope_, .registers = {}, .variables = {}, .labels = {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
  } else if (tokens_.take("}")) {
    scope_ = scopes_[static_cast<std::size_t>(scope_)].parent;
  } else if (tokens_.take(";")) {
    return;  // inline assembly often ends with one too many
  } else if (token.text.starts_with(".") && token.kind == Token::Kind::word) {
    parse_directive();
  } else if (token.kind == Token::Kind::word && tokens_.peek_second().is(":")) {
    parse_label();
  } else if (token.kind == Token::Kind::word || token.is("@")) {
    parse_statement();
  } else {
    tokens_.fail("a statement expected");
  }
}

void BodyParser::parse_directive() {
  if (ends_with_line(tokens_.peek().text)) {
    tokens_.skip_line();
    return;
  }
  const std::string directive = tokens_.word();
  if (directive == ".reg")
    parse_registers();
  else if (const auto space = space_named(directive))
    parse_local_variable(*space);
  else
    tokens_.fail("the directive '" + directive + "' is not known in a function, before this place");
  tokens_.expect(";");
}

void BodyParser::parse_registers() {
  const std::string type_name = tokens_.word();
  const auto type = type_named(std::string_view(type_name).substr(1));
  if (!type) tokens_.fail(std::string("'") + type_name + "' is not a type that is known here");
  auto& registers = scopes_[static_cast<std::size_t>(scope_)].registers;
  do {
    Register added{.first = function_.register_slots, .count = 0, .slots = size_of(*type) > 8 ? 2U : 1U};
    const std::string name = tokens_.word();
    if (tokens_.take("<")) {
      added.count = static_cast<std::uint32_t>(tokens_.number());
      tokens_.expect(">");
    }
    for (std::uint32_t i = 0; added.slots == 2 && i < std::max(added.count, 1U); ++i)
      function_.wide_registers.push_back(added.first + 2 * i);
    function_.register_slots += std::max(added.count, 1U) * added.slots;
    registers[name] = added;
  } while (tokens_.take(","));
}

void BodyParser::parse_local_variable(Space space) {
  VariableSyntax variable = parse_variable(tokens_, space);
  auto& variables = scopes_[static_cast<std::size_t>(scope_)].variables;
  const std::string unique = scope_ == 0 ? variable.name : variable.name + "#" + std::to_string(scope_);
  variables[variable.name] = unique;
  variable.name = unique;
  function_.variables.push_back(std::move(variable));
}

void BodyParser::parse_label() {
  const std::string name = tokens_.word();
  tokens_.expect(":");
  if (tokens_.peek().is(".branchtargets")) {
    parse_label_table(name);
    return;
  }
  scopes_[static_cast<std::size_t>(scope_)].labels[name] = static_cast<std::uint32_t>(function_.statements.size());
}

void BodyParser::parse_label_table(const std::string& name) {
  tokens_.next();
  std::vector<std::string> labels;
  do {
    labels.push_back(tokens_.word());
  } while (tokens_.take(","));
  tokens_.expect(";");
  tables_[name] = {std::move(labels), scope_};
}

void BodyParser::parse_statement() {
  StatementSyntax statement;
  statement.line = tokens_.peek().line;
  parse_predicate(statement);
  statement.opcode = tokens_.word();
  const bool branches = statement.opcode.starts_with("bra");
  while (!tokens_.peek().is(";")) {
    if (branches) {
      label_uses_.push_back({function_.statements.size(), statement.operands.size(), scope_});
      OperandSyntax label{.kind = OperandSyntax::Kind::label};
      label.name = tokens_.word();
      statement.operands.push_back(std::move(label));
    } else {
      statement.operands.push_back(parse_operand());
    }
    if (tokens_.take("|"))
      statement.has_second_destination = true;
    else if (!tokens_.take(",") && !tokens_.peek().is(";"))
      tokens_.fail("',' or ';' expected");
  }
  tokens_.expect(";");
  function_.statements.push_back(std::move(statement));
}

void BodyParser::parse_predicate(StatementSyntax& statement) {
  if (!tokens_.take("@")) return;
  statement.has_predicate = true;
  statement.predicate_negated = tokens_.take("!");
  const OperandSyntax predicate = parse_name();
  if (predicate.kind != OperandSyntax::Kind::reg) tokens_.fail("a predicate register expected before this place");
  statement.predicate = predicate.index;
}

OperandSyntax BodyParser::parse_operand() {
  if (tokens_.take("{")) return parse_sequence("}", OperandSyntax::Kind::vector);
  if (tokens_.take("(")) return parse_sequence(")", OperandSyntax::Kind::list);
  if (tokens_.take("[")) return parse_address();
  if (tokens_.take("!")) {
    OperandSyntax operand = parse_name();
    operand.negated = true;
    return operand;
  }
  if (tokens_.peek().kind == Token::Kind::word) {
    OperandSyntax operand = parse_name();
    if (operand.kind == OperandSyntax::Kind::symbol && tokens_.take("+")) operand.value = tokens_.number();
    return operand;
  }
  OperandSyntax operand;
  operand.value = tokens_.number();
  return operand;
}

OperandSyntax BodyParser::parse_sequence(std::string_view end, OperandSyntax::Kind kind) {
  OperandSyntax sequence{.kind = kind};
  while (!tokens_.take(end)) {
    sequence.elements.push_back(parse_operand());
    tokens_.take(",");
  }
  return sequence;
}

OperandSyntax BodyParser::parse_address() {
  OperandSyntax address{.kind = OperandSyntax::Kind::address};
  if (tokens_.peek().kind == Token::Kind::word) {
    address.elements.push_back(parse_name());
    if (tokens_.take("+") || tokens_.peek().is("-")) address.value = tokens_.number();
  } else {
    address.elements.push_back({});
    address.value = tokens_.number();
  }
  if (!tokens_.take("]")) tokens_.fail("']' expected: addresses are [base+offset]");
  return address;
}

OperandSyntax BodyParser::parse_name() { return named(tokens_.word()); }

OperandSyntax BodyParser::named(const std::string& name) {
  OperandSyntax operand;
  std::uint32_t slot = 0;
  if (name == "_") {
    operand.kind = OperandSyntax::Kind::reg;
  } else if (find_register(name, slot) != nullptr) {
    operand.kind = OperandSyntax::Kind::reg;
    operand.index = slot;
  } else if (name.starts_with("%")) {
    operand.kind = OperandSyntax::Kind::special;
    operand.name = name;
  } else {
    operand.kind = OperandSyntax::Kind::symbol;
    operand.name = name;
    for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)].parent) {
      const auto& variables = scopes_[static_cast<std::size_t>(scope)].variables;
      if (const auto found = variables.find(name); found != variables.end()) {
        operand.name = found->second;
        break;
      }
    }
  }
  return operand;
}

const BodyParser::Register* BodyParser::find_register(const std::string& name, std::uint32_t& slot) const {
  const std::size_t stem = name.find_last_not_of("0123456789") + 1;
  for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)].parent) {
    const auto& registers = scopes_[static_cast<std::size_t>(scope)].registers;
    if (const auto found = registers.find(name); found != registers.end() && found->second.count == 0) {
      slot = found->second.first;
      return &found->second;
    }
    if (stem == name.size()) continue;
    const auto found = registers.find(std::string_view(name).substr(0, stem));
    if (found == registers.end() || found->second.count == 0) continue;
    if (const unsigned long number = std::stoul(name.substr(stem)); number < found->second.count) {
      slot = found->second.first + static_cast<std::uint32_t>(number) * found->second.slots;
      return &found->second;
    }
  }
  return nullptr;
}

std::uint32_t BodyParser::find_label(const std::string& name, int scope) const {
  for (; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)].parent) {
    const auto& labels = scopes_[static_cast<std::size_t>(scope)].labels;
    if (const auto found = labels.find(name); found != labels.end()) return found->second;
  }
  throw Fault(FaultKind::syntax, "function " + function_.name + " has no label '" + name + "' where a branch uses it");
}

void BodyParser::resolve_labels() {
  for (const LabelUse& use : label_uses_) {
    OperandSyntax& operand = function_.statements[use.statement].operands[use.operand];
    operand.value = find_label(operand.name, use.scope);
  }
  for (const auto& [name, table] : tables_)
    for (const std::string& label : table.first) function_.label_tables[name].push_back(find_label(label, table.second));
}

}  // namespace seto::software_gpu
