#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/net/auth_handshake.h"
#include "tests/fuzz/altered.h"

// The calling side; see auth_answerer_fuzz.cc.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace seto;
  using Stage = AnswererHandshake::Stage;
  testing::Altered channel(data, size);
  const Secret key = Secret::of_text("key");
  CallerHandshake caller(key, {});
  AnswererHandshake answerer({});
  while (!caller.over()) {
    std::string said = caller.take_out();
    while (!said.empty() && answerer.wanted() > 0) {
      const std::size_t part = std::min(said.size(), answerer.wanted());
      if (!answerer.feed(said.substr(0, part)).ok()) std::abort();  // the caller is honest
      said.erase(0, part);
    }
    if (answerer.stage() == Stage::key_wanted) answerer.set_key(key);
    if (answerer.stage() == Stage::verdict_wanted) answerer.accept();
    std::string bytes = channel.on_the_way(answerer.take_out());
    if (bytes.empty()) return 0;
    while (!bytes.empty() && caller.wanted() > 0) {
      const std::size_t part = channel.part_of(std::min(bytes.size(), caller.wanted()));
      const Status heard = caller.feed(bytes.substr(0, part));
      if (!heard.ok() && (heard.text().empty() || !caller.over())) std::abort();
      if (!heard.ok()) return 0;
      bytes.erase(0, part);
    }
  }
  if (caller.accepted() && channel.changed()) std::abort();
  return 0;
}
