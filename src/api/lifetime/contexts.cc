#include <utility>

#include "src/api/support/handles.h"
#include "src/base/fork.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status create(setoContext_t* where, const setoConfig_t* config) {
  if (where == nullptr) return null_argument("context");
  *where = nullptr;
  SETO_ASSIGN(Settings settings, settings_of_environment());
  SETO_ASSIGN(settings, with_struct(std::move(settings), config));
  refuse_forked_children();
  auto made = std::make_unique<setoContext>();
  SETO_ASSIGN(made->context, Context::create(settings.config));
  *where = made.release();
  return {};
}

// Communicators that use the context hold shares of it. No new one can appear here, because destroy excludes calls that use the
// handle.
Status destroy(setoContext* context) {
  SETO_TRY(check_handle(context));
  if (context->context.use_count() > 1)
    return failure(Code::invalid_usage, "context: a communicator uses it; destroy that first");
  delete context;
  return {};
}

}  // namespace

extern "C" {

setoResult_t setoContextCreate(setoContext_t* context, const setoConfig_t* config) {
  return enter([&] { return create(context, config); });
}

setoResult_t setoContextDestroy(setoContext_t context) {
  return enter([&] { return destroy(context); });
}

}  // extern "C"
