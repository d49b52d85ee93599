#include "tests/software_gpu/ptx_parser.h"

#include <array>
#include <utility>

#include "tests/software_gpu/token_cursor.h"
#include "tests/software_gpu/variable_parser.h"

namespace seto::software_gpu {
namespace {

class ModuleParser final {
 public:
  explicit ModuleParser(std::string_view text) : tokens_(text) {}

  ModuleSyntax run() {
    while (!tokens_.at_end()) parse_item();
    return std::move(module_);
  }

 private:
  void parse_item() {
    const std::string_view directive = tokens_.peek().text;
    if (directive == ".version" || directive == ".address_size" || directive == ".file" || directive == ".loc" ||
        directive == ".pragma") {
      tokens_.skip_line();
    } else if (directive == ".target") {
      tokens_.next();
      module_.target = tokens_.peek().text;
      tokens_.skip_line();
    } else if (directive == ".section") {
      while (!tokens_.at_end() && !tokens_.peek().is("{")) tokens_.next();
      tokens_.take_block();
    } else if (is_linkage(directive)) {
      tokens_.next();
    } else if (directive == ".entry" || directive == ".func") {
      parse_function();
    } else if (const auto space = space_named(directive)) {
      tokens_.next();
      do {
        module_.variables.push_back(parse_variable(tokens_, *space));
      } while (tokens_.take(","));
      tokens_.expect(";");
    } else if (!tokens_.take(";")) {
      tokens_.fail("a directive of a module expected");
    }
  }

  static bool is_linkage(std::string_view directive) {
    return directive == ".visible" || directive == ".extern" || directive == ".weak" || directive == ".common";
  }

  void parse_function() {
    FunctionSyntax function;
    function.line = tokens_.peek().line;
    function.is_entry = tokens_.word() == ".entry";
    if (tokens_.peek().is("(")) function.results = parse_parameters();
    function.name = tokens_.word();
    if (tokens_.peek().is("(")) function.parameters = parse_parameters();
    parse_attributes(function);
    if (!tokens_.take(";")) {
      function.body_line = tokens_.peek().line;
      function.body = tokens_.take_block();
    }
    module_.functions.push_back(std::move(function));
  }

  std::vector<VariableSyntax> parse_parameters() {
    std::vector<VariableSyntax> parameters;
    tokens_.expect("(");
    while (!tokens_.take(")")) {
      tokens_.expect(".param");
      parameters.push_back(parse_variable(tokens_, Space::param));
      tokens_.take(",");
    }
    return parameters;
  }

  // Limits of registers matter to ptxas only. A cluster changes what the kernel does, so it is refused.
  void parse_attributes(FunctionSyntax& function) {
    while (tokens_.peek().text.starts_with(".") && !tokens_.at_end()) {
      const std::string name = tokens_.word();
      if (name.find("cluster") != std::string::npos || name == ".reqnctapercluster") {
        throw Fault(FaultKind::refused,
                    "ptx line " + std::to_string(tokens_.peek().line) + ": " + name + ": the software GPU has no clusters");
      }
      if (name == ".maxntid") {
        function.most_threads = static_cast<std::uint32_t>(tokens_.number());
        while (tokens_.take(",")) function.most_threads *= static_cast<std::uint32_t>(tokens_.number());
      }
      while (tokens_.peek().kind == Token::Kind::number || tokens_.peek().is(",") || tokens_.peek().kind == Token::Kind::text)
        tokens_.next();
    }
  }

  TokenCursor tokens_;
  ModuleSyntax module_;
};

}  // namespace

ModuleSyntax parse_ptx(std::string_view text) { return ModuleParser(text).run(); }

}  // namespace seto::software_gpu
