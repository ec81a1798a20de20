#include "transport/tcp/refusals.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace syncopate::tcp {

void RefusalLog::add(const std::string& remote, const std::string& reason, TimePoint now) {
  ++count_;
  if (count_ > lines && now < last_line_ + period) {
    return;
  }
  const std::uint64_t unseen = count_ - logged_ - 1;
  logged_ = count_;
  last_line_ = now;
  if (unseen == 0) {
    log::warn("turned away a connection from {}: {}", remote, reason);
  } else {
    log::warn("turned away {} connections since the last line, and one from {}: {}", unseen, remote,
              reason);
  }
}

namespace {

bool is_over(const PendingHandshake& handshake) {
  const auto exchange = handshake.lock();
  return !exchange || !exchange->is_open() || exchange->is_introduced();
}

}  // namespace

void Unauthenticated::add(PendingHandshake handshake) {
  pending_.push_back(std::move(handshake));
}

std::size_t Unauthenticated::shrink_to(std::size_t left) {
  remove_complete();
  std::size_t closed = 0;
  while (pending_.size() > left && close_oldest()) {
    ++closed;
  }
  return closed;
}

bool Unauthenticated::close_oldest() {
  remove_complete();
  if (pending_.empty()) {
    return false;
  }
  pending_.front().lock()->abandon();
  pending_.pop_front();
  return true;
}

void Unauthenticated::remove_complete() {
  std::erase_if(pending_, is_over);
}

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
