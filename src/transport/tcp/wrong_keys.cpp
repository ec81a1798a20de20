#include "transport/tcp/wrong_keys.hpp"

#include <algorithm>

namespace syncopate::tcp {
namespace {

/// After this number of doublings, a delay is the longest one in any case.
constexpr std::uint32_t most_doublings = 16;

}  // namespace

WrongKeys::Delay WrongKeys::count(const std::string& address) {
  const bool own_count = counts_.contains(address) || counts_.size() < most_addresses;
  std::uint32_t& earlier = counts_[own_count ? address : std::string()];
  const Delay delay = first_ * (1U << earlier);
  earlier = std::min(earlier + 1, most_doublings);
  return std::min(delay, std::max(first_, longest));
}

}  // namespace syncopate::tcp
