#include "scheme/scheme_spec.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"

namespace syncopate {

void count_asynchronous_updates(SchemeTraits& traits, const SchemeJob& job) {
  traits.rate_divisor = 2.0 * job.workers - 1;
}

ServerClient& server_of(const SchemeContext& context) {
  if (context.server == nullptr) {
    throw InternalError("a scheme of a parameter server was made without one");
  }
  return *context.server;
}

SharedModel& shared_model_of(const SchemeContext& context, std::string_view what) {
  if (context.shared == nullptr) {
    throw ConfigError(fmt::format(
        "{} needs memory that all workers share: start them together, with `syncopate train`",
        what));
  }
  return *context.shared;
}

}  // namespace syncopate
