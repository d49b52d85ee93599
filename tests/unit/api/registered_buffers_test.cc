#include "src/api/support/registered_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace seto::api {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Names final : public NamedMemory::User {
 public:
  Names() { NamedMemory::of_process().enter(*this); }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() override { NamedMemory::of_process().leave(*this); }
  void named(NamedMemory::Name name, std::byte*, std::size_t size) override { sizes[name] = size; }
  void unnamed(NamedMemory::Name name) override { sizes.erase(name); }
  std::map<NamedMemory::Name, std::size_t> sizes;
};

TEST(RegisteredBuffers, HaveANameUntilTheyAreDeregistered) {
  const Names names;
  RegisteredBuffers buffers;
  char memory[8];
  void* const one = buffers.add(memory, sizeof memory);
  void* const other = buffers.add(memory, 4);
  EXPECT_NE(one, other) << "a buffer may be registered twice";
  EXPECT_THAT(names.sizes, SizeIs(2));
  EXPECT_TRUE(buffers.remove(one).ok());
  EXPECT_THAT(names.sizes, SizeIs(1));
  EXPECT_TRUE(buffers.remove(other).ok());
  EXPECT_THAT(names.sizes, SizeIs(0));
}

TEST(RegisteredBuffers, OfNoBytesHaveNone) {
  const Names names;
  RegisteredBuffers buffers;
  EXPECT_EQ(buffers.add(nullptr, 0), nullptr);
  EXPECT_TRUE(buffers.remove(nullptr).ok());
  EXPECT_THAT(names.sizes, SizeIs(0));
}

TEST(RegisteredBuffers, AHandleIsUsedOnceAndWhereItIsFrom) {
  const Names names;
  RegisteredBuffers buffers, others;
  char memory[8];
  void* const handle = buffers.add(memory, sizeof memory);
  EXPECT_THAT(std::string(others.remove(handle).text()), HasSubstr("not from setoCommRegister of this communicator"));
  EXPECT_THAT(names.sizes, SizeIs(1));
  EXPECT_TRUE(buffers.remove(handle).ok());
  EXPECT_FALSE(buffers.remove(handle).ok());
}

TEST(RegisteredBuffers, LoseTheirNamesWithTheCommunicator) {
  const Names names;
  char memory[8];
  {
    RegisteredBuffers buffers;
    (void)buffers.add(memory, sizeof memory);
    (void)buffers.add(memory, sizeof memory);
    EXPECT_THAT(names.sizes, SizeIs(2));
  }
  EXPECT_THAT(names.sizes, SizeIs(0));
}

}  // namespace
}  // namespace seto::api
