#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/software_gpu/ptx_syntax.h"
#include "tests/software_gpu/token_cursor.h"

namespace seto::software_gpu {

// Parses the body of a function in two steps, because only the first is needed to know the size of the function, and the second
// takes nearly all of the time. Names are looked up from the innermost scope outwards, as inline assembly declares registers and
// labels in scopes of its own.
class BodyParser final {
 public:
  explicit BodyParser(FunctionSyntax& function) : tokens_(function.body, function.body_line), function_(function) {}

  // The declarations with which the body begins.
  void parse_declarations();
  // Whether shared variables may be declared after these. nvcc makes none there; text that is written by hand may.
  [[nodiscard]] bool may_declare_shared_later() const;
  // All else.
  void parse_statements();

 private:
  struct Register {
    std::uint32_t first = 0;
    std::uint32_t count = 0;  // of a range like %r<79>; 0: one register
    std::uint32_t slots = 1;
  };
  struct Scope {
    int parent = -1;
    std::map<std::string, Register, std::less<>> registers;
    std::map<std::string, std::string, std::less<>> variables;  // the name in the text -> a unique name
    std::map<std::string, std::uint32_t, std::less<>> labels;
  };
  // A use of a label, which is looked up after the body, because labels may follow their uses.
  struct LabelUse {
    std::size_t statement, operand;
    int scope;
  };

  void parse_item();
  void parse_directive();
  void parse_registers();
  void parse_local_variable(Space space);
  void parse_label();
  void parse_label_table(const std::string& name);
  void parse_statement();
  void parse_predicate(StatementSyntax& statement);
  OperandSyntax parse_operand();
  OperandSyntax parse_sequence(std::string_view end, OperandSyntax::Kind kind);
  OperandSyntax parse_address();
  OperandSyntax parse_name();
  OperandSyntax named(const std::string& name);
  [[nodiscard]] const Register* find_register(const std::string& name, std::uint32_t& slot) const;
  [[nodiscard]] std::uint32_t find_label(const std::string& name, int scope) const;
  void resolve_labels();

  TokenCursor tokens_;
  FunctionSyntax& function_;
  std::vector<Scope> scopes_;
  int scope_ = -1;
  std::vector<LabelUse> label_uses_;
  std::map<std::string, std::pair<std::vector<std::string>, int>> tables_;
};

}  // namespace seto::software_gpu
