#include "transport/transport_registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

#define TRANSPORT(name) TransportSpec name##_transport();
#include "transport/transports.inc"
#undef TRANSPORT

namespace {

/// Errors: ConfigError if no transport has this name, or if it is not available.
const TransportSpec& find_available(std::string_view name, const TransportOptions& options) {
  const auto all = all_transports();
  const auto found = std::ranges::find(all, name, &TransportSpec::name);
  if (found == all.end()) {
    throw ConfigError(fmt::format("expected one of the transports {}, found \"{}\"",
                                  fmt::join(transport_names, ", "), name));
  }
  if (!found->available(options)) {
    throw ConfigError(fmt::format("transport {} is not available in this process", name));
  }
  return *found;
}

}  // namespace

std::span<const TransportSpec> all_transports() {
  static const auto all = std::to_array<TransportSpec>({
#define TRANSPORT(name) name##_transport(),
#include "transport/transports.inc"
#undef TRANSPORT
  });
  return all;
}

std::unique_ptr<Transport> listen_over(std::string_view transport,
                                       const TransportOptions& options) {
  return find_available(transport, options).listen(options);
}

std::unique_ptr<Transport> join_over(std::string_view transport, const TransportOptions& options) {
  return find_available(transport, options).join(options);
}

}  // namespace syncopate
