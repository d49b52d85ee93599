#include "src/core/call/call_summary.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

std::string passed_on(std::string_view reason) {
  Note note;
  put_reason(note, reason);
  return reason_of(note);
}

TEST(Notes, CarryAReasonThatFits) {
  EXPECT_EQ(passed_on(""), "");
  EXPECT_EQ(passed_on("datatype: 99 is none"), "datatype: 99 is none");
  const std::string full(sizeof Note::words, 'x');
  EXPECT_EQ(passed_on(full), full);
}

TEST(Notes, CutAReasonBetweenWords) {
  EXPECT_EQ(passed_on("a step with 65 sources and 1 targets is beyond the kernels' limits"),
            "a step with 65 sources and 1 targets...");
  EXPECT_EQ(passed_on("sendbuff: null, but 1048576 bytes are needed"), "sendbuff: null, but 1048576 bytes are...");
  EXPECT_EQ(passed_on("recvbuff: " + std::string(50, 'x')), "recvbuff...");
  EXPECT_EQ(passed_on(std::string(50, 'x')), std::string(37, 'x').append("..."));
  EXPECT_EQ(passed_on("a text whose word ends where the room does, just so"), "a text whose word ends where the room...");
}

}  // namespace
}  // namespace seto
