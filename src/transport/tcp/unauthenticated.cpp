#include "transport/tcp/unauthenticated.hpp"

#include <utility>

namespace syncopate::tcp {
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

}  // namespace syncopate::tcp
