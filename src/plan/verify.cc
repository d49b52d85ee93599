#include "src/plan/verify.h"

#include "src/plan/verify_values.h"

namespace seto {

Result<Outcome> verify(const Plan& plan, const VerifyRequest& request) {
  SETO_TRY(check_structure(plan));
  SETO_ASSIGN(const ChannelIndex index, join_channels(plan));
  SETO_ASSIGN(Outcome outcome, verify_values(plan, index, request));
  SETO_TRY(verify_progress(plan, index, request));
  return outcome;
}

}  // namespace seto
