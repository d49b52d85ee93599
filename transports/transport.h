#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/config.h"
#include "src/base/far_link.h"
#include "src/base/wakeup.h"
#include "transports/endpoint.h"
#include "transports/geometry.h"
#include "transports/optional_streams.h"
#include "transports/pair_streams.h"
#include "transports/peer_group.h"
#include "transports/peer_status.h"
#include "transports/streams.h"

namespace seto {

// The context that a transport serves.
struct TransportSetup {
  ContextId context = 0;
  const Config* config = nullptr;  // outlives the transport
  std::shared_ptr<const Wakeup> wakeup;
};

// One medium, as one context uses it: whom it reaches, the endpoint through which it connects, and its share of the work of the
// thread that drives the context.
class Transport {
 public:
  virtual ~Transport() = default;

  // In texts, as in "shared memory".
  [[nodiscard]] virtual const char* name() const = 0;
  // Symmetric and transitive: the contexts that reach each other are the members of a group, which all of them number alike.
  [[nodiscard]] virtual bool reaches(const Place& own, const Place& peer) const = 0;

  // Returns the endpoint. The first call makes it, and with it all that costs something: listeners, descriptors, threads.
  // `on_output` is called, on any thread, when output begins to wait: from then on a thread must call progress() until unsent()
  // is false, even if no call is active. It neither blocks nor calls back.
  using OnOutput = std::function<void()>;
  [[nodiscard]] virtual Result<Endpoint*> open(OnOutput on_output) = 0;
  // A communicator has ended, after a failure or not: after a failure its peers need no data any more.
  virtual void communicator_ended(bool failed) { (void)failed; }

  struct MemoryUse {
    std::size_t leased = 0;  // by streams
    std::size_t used = 0;    // in total
  };
  [[nodiscard]] virtual MemoryUse memory_use() const { return {}; }

  // ---- for the holder of the progress token, once the endpoint is open ----

  // Readable when progress() can move something. -1: peers end the sleep of this context by its wakeup, and progress() is not
  // called.
  [[nodiscard]] virtual int event_fd() const { return -1; }
  // Moves bytes as far as possible without blocking.
  virtual Moved progress() { return {}; }
  // Output waits, and a thread must call progress(). Any thread.
  [[nodiscard]] virtual bool unsent() const { return false; }
  // Some of that output is to be sent now. False: unsent() holds only because peers have not acknowledged everything, and
  // progress() may be called some milliseconds later.
  [[nodiscard]] virtual bool sends_now() const { return unsent(); }
  // The context is about to sleep: whatever comes from now on makes event_fd() readable or rings the wakeup. The caller looks at
  // its streams and calls progress() once more, and then sleeps, until disarm().
  virtual void arm() {}
  virtual void disarm() {}
};

}  // namespace seto
