#include "transports/named_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/support/child_process.h"

namespace seto {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class Knowing final : public NamedMemory::User {
 public:
  explicit Knowing(NamedMemory& of) : of_(of) { of_.enter(*this); }
  Knowing(const Knowing&) = delete;
  Knowing& operator=(const Knowing&) = delete;
  ~Knowing() override { of_.leave(*this); }
  void named(NamedMemory::Name name, std::byte* memory, std::size_t) override { known[name] = memory; }
  void unnamed(NamedMemory::Name name) override { known.erase(name); }
  std::map<NamedMemory::Name, std::byte*> known;

 private:
  NamedMemory& of_;
};

TEST(NamedMemory, IsToldToAllThatWantToKnow) {
  NamedMemory names;
  std::array<std::byte, 2> memory{};
  const NamedMemory::Name first = names.add(&memory[0], 1);
  const Knowing before(names);
  EXPECT_THAT(before.known, ElementsAre(Pair(first, &memory[0])));
  const NamedMemory::Name second = names.add(&memory[1], 1);
  {
    const Knowing late(names);
    EXPECT_THAT(late.known, ElementsAre(Pair(first, &memory[0]), Pair(second, &memory[1])));
    names.remove(first);
    EXPECT_THAT(late.known, ElementsAre(Pair(second, &memory[1])));
  }
  names.remove(first);  // it has none any more
  EXPECT_THAT(before.known, ElementsAre(Pair(second, &memory[1])));
  names.remove(second);
  EXPECT_THAT(before.known, IsEmpty());
}

TEST(NamedMemory, MayHaveSeveralNames) {
  NamedMemory names;
  std::byte memory{};
  const Knowing user(names);
  const NamedMemory::Name first = names.add(&memory, 1);
  const NamedMemory::Name second = names.add(&memory, 1);
  EXPECT_NE(first, second);
  names.remove(first);
  EXPECT_THAT(user.known, ElementsAre(Pair(second, &memory)));
}

// A registration with a device belongs to the parent: a child that ended it would take it from the parent.
TEST(NamedMemory, OfAParentIsNotThatOfItsChild) {
  NamedMemory& names = NamedMemory::of_process();
  std::byte memory{};
  Knowing user(names);
  const NamedMemory::Name name = names.add(&memory, 1);
  EXPECT_EQ(&NamedMemory::of_process(), &names);
  testing::ChildProcess child([&] {
    NamedMemory& own = NamedMemory::of_process();
    own.remove(name);
    const Knowing anew(own);
    const bool untouched = &own != &names && user.known.count(name) == 1 && anew.known.empty();
    return untouched && own.add(&memory, 1) > name && anew.known.size() == 1 && user.known.size() == 1;
  });
  EXPECT_TRUE(child.wait());
  names.remove(name);
  EXPECT_THAT(user.known, IsEmpty());
}

}  // namespace
}  // namespace seto
