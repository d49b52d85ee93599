#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

// Bytes in order between two contexts over another medium than a socket, for links whose paths may be of several media. A
// medium implements these interfaces; the links know nothing else of it.
namespace seto {

// One end of a pipe. Nothing blocks, and nothing is allocated. One thread at a time uses all pipes of a context, but any thread
// asks way().
class BytePipe {
 public:
  virtual ~BytePipe() = default;

  // As readv() and writev() of a socket that does not block: the number of bytes, or -1 with errno. EAGAIN: nothing has come, or
  // there is no room. Another error: the pipe is broken, and nothing more will come. What had come before can still be read.
  virtual ssize_t receive(std::span<const iovec> parts) = 0;
  // A medium may read long parts where they lie after the call, if their memory has a name (NamedMemory). Those of the bytes that
  // were accepted, but not released, stay as they are until they are released, which needs nothing of the peer's program, or
  // until close() has returned.
  virtual ssize_t send(std::span<const iovec> parts) = 0;
  static constexpr std::size_t kLongPart = std::size_t{16} << 10;
  // Its device reads that memory of a GPU (NamedMemory::add_gpu) when send() gets it next. Such memory is never given to another
  // pipe, which would have the CPU read it.
  [[nodiscard]] virtual bool reads(const std::byte* memory, std::size_t size) {
    static_cast<void>(memory), static_cast<void>(size);
    return false;
  }
  [[nodiscard]] virtual std::uint64_t accepted() const = 0;
  [[nodiscard]] virtual std::uint64_t released() const = 0;
  // ---- writes into the memory of the peer (decision 55) ----
  // Memory of the peer that it allows this end to write, as it has told it.
  struct RemotePlace {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };
  struct OpenPlace {
    std::uint32_t name = 0;
    std::uint32_t key = 0;
  };
  // Lets the peer write into that memory until close_place(), or until close() has returned. Absent: it has no name, or this
  // medium cannot.
  [[nodiscard]] virtual std::optional<OpenPlace> open_place(std::byte* memory, std::size_t size) {
    return (void)memory, (void)size, std::nullopt;
  }
  virtual void close_place(std::uint32_t name) { (void)name; }
  // Writes `body` to a place that the peer has opened, and sends `head` behind it: when the peer receives `head`, the body is
  // there. Either both are accepted, and count as bytes that were accepted, or nothing is: -1 with errno. EOPNOTSUPP: the body
  // has no name, so it is to be sent.
  virtual ssize_t write_in_place(std::span<const std::byte> head, std::span<const std::byte> body, RemotePlace place) {
    return (void)head, (void)body, (void)place, errno = EOPNOTSUPP, -1;
  }
  // Everything that was accepted is in the memory of the peer. Asks the medium where that is not known yet.
  [[nodiscard]] virtual bool delivered() = 0;
  // Carries nothing any more, reads no memory of its users, and lets nothing be written there. The peer is not told: it finds out
  // when it sends.
  virtual void close() = 0;
  // Why it is broken.
  [[nodiscard]] virtual std::string why() const = 0;
  // The medium and both ends in words: "RDMA mlx5_0 port 1, 10.0.0.1 -> 10.0.0.2". Never changes.
  [[nodiscard]] virtual const std::string& way() const = 0;
};

// One end of a pipe that is being set up, by messages between both ends.
class PipeSetUp {
 public:
  virtual ~PipeSetUp() = default;
  // A message of the other end. A failure: it is malformed or out of turn, and the set-up has ended.
  virtual Status hear(std::string_view message) = 0;
  // Messages for the other end, in order.
  [[nodiscard]] virtual std::optional<std::string> next_message() = 0;
  // Goes on as far as possible. True: it has ended. Messages may still wait to be sent.
  virtual bool advance() = 0;
  // After the end: the pipe, or null with why().
  [[nodiscard]] virtual std::unique_ptr<BytePipe> take() = 0;
  [[nodiscard]] virtual Status why() const = 0;
};

// Makes the pipes of one context over one medium. One thread at a time, except where noted. Outlives its pipes and set-ups.
class PipeMaker {
 public:
  virtual ~PipeMaker() = default;

  // So many pipes side by side to one peer may be of use at some time. 0: there is no medium. Any thread, the same for as long as
  // it lives.
  [[nodiscard]] virtual std::uint32_t rails() const = 0;
  // So many of them may work now; fewer when many links have pipes.
  [[nodiscard]] virtual std::uint32_t usable() const = 0;
  // Its user wants all data on its pipes while one works, however slow they are.
  [[nodiscard]] virtual bool takes_all() const { return false; }
  // Grows when usable() has changed, or when a pipe that could not be set up may be possible now.
  [[nodiscard]] virtual std::uint64_t changes() const = 0;

  enum class Role : std::uint8_t { selects, follows };  // different at both ends
  struct Wanted {
    Role role = Role::selects;
    std::string peer;                     // as the user knows it
    std::vector<const BytePipe*> beside;  // pipes of this maker to the same peer that work: another way is wanted
    std::uint32_t interface = 0;          // own network interface from which packets to the peer leave; 0: unknown
    const void* link = nullptr;           // the same for all pipes of one link, and for no other one
  };
  [[nodiscard]] virtual std::unique_ptr<PipeSetUp> begin(const Wanted& wanted) = 0;

  // Takes what has come over all pipes, and what the medium says of them. True: something has come.
  virtual bool poll() = 0;
  // All that comes from now on makes descriptor() readable. The caller polls once more before it sleeps.
  virtual void arm() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace seto
