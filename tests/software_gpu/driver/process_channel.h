#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstring>

#include "src/base/fd.h"
#include "src/device/cuda/driver.h"

namespace seto::software_gpu::driver {

inline constexpr int kDeadlineSeconds = 30;

// A message of one process to the other, with a descriptor or without.
struct Message {
  cuda::IpcMemoryHandle handle{};
  int step = 0;
};

// Two processes tell each other how far they are.
class Channel final {
 public:
  Channel() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const timeval limit{.tv_sec = kDeadlineSeconds, .tv_usec = 0};
    for (std::size_t i = 0; i < 2; ++i) {
      ends_[i] = Fd(ends[i]);
      EXPECT_EQ(setsockopt(ends[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    }
  }

  // side: 0 is the parent, 1 the child.
  void send(int side, Message message, int file = -1) const {
    iovec part{&message, sizeof(message)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (file >= 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &file, sizeof(int));
    }
    EXPECT_EQ(sendmsg(ends_[static_cast<std::size_t>(side)].get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(message)));
  }

  Message receive(int side, Fd* file = nullptr) const {
    Message message;
    iovec part{&message, sizeof(message)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    EXPECT_EQ(recvmsg(ends_[static_cast<std::size_t>(side)].get(), &header, MSG_CMSG_CLOEXEC),
              static_cast<ssize_t>(sizeof(message)))
        << "the other process sent nothing in " << kDeadlineSeconds << " s";
    if (const cmsghdr* const rights = CMSG_FIRSTHDR(&header); rights != nullptr && file != nullptr) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(rights), sizeof(int));
      *file = Fd(number);
    }
    return message;
  }

 private:
  std::array<Fd, 2> ends_;
};

}  // namespace seto::software_gpu::driver
