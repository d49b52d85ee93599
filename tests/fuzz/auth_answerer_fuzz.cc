#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/net/auth_handshake.h"
#include "tests/fuzz/altered.h"

// The listening side. It receives an honest caller's bytes with changes, or arbitrary bytes. It must accept only unchanged bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace seto;
  using Stage = AnswererHandshake::Stage;
  testing::Altered channel(data, size);
  const Secret key = Secret::of_text("key");
  CallerHandshake caller(key, {});
  AnswererHandshake answerer({});
  bool failed = false;
  while (!failed && answerer.stage() != Stage::over) {
    std::string bytes = channel.on_the_way(caller.take_out());
    if (bytes.empty()) break;
    while (!bytes.empty() && answerer.wanted() > 0 && !failed) {
      const std::size_t part = channel.part_of(std::min(bytes.size(), answerer.wanted()));
      failed = !answerer.feed(bytes.substr(0, part)).ok();
      bytes.erase(0, part);
    }
    if (answerer.stage() == Stage::key_wanted) answerer.set_key(key);
    if (answerer.stage() == Stage::verdict_wanted) {
      if (channel.changed()) std::abort();
      answerer.accept();
    }
    std::string answer = answerer.take_out();
    while (!answer.empty() && caller.wanted() > 0) {
      const std::size_t part = std::min(answer.size(), caller.wanted());
      if (!caller.feed(answer.substr(0, part)).ok()) return 0;
      answer.erase(0, part);
    }
  }
  if (caller.accepted() && channel.changed()) std::abort();
  return 0;
}
