#include "transport/mpi/sender.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::mpi {

void Sender::enqueue(QueuedMessage message) {
  if (refusing_ && !message.handle) {
    std::rethrow_exception(refusing_);
  }
  if (const std::exception_ptr obstacle = refusing_ ? refusing_ : broken_) {
    return settle(message, obstacle);
  }
  ++traffic_.messages_sent;
  traffic_.bytes_sent += message.size();
  queue_.push_back(std::move(message));
  work();
}

bool Sender::work() {
  bool moved = false;
  while (is_open_ && !queue_.empty() && may_leave(queue_.front())) {
    QueuedMessage message = std::move(queue_.front());
    queue_.pop_front();
    leave(std::move(message));
    moved = true;
  }
  return moved;
}

bool Sender::may_leave(const QueuedMessage& message) const {
  if (message.payload.size() > small_limit) {
    return announced_.size() < announced_limit;
  }
  return uncredited_ == 0 || uncredited_ + message.size() <= small_window;
}

void Sender::leave(QueuedMessage message) {
  const bool is_small = message.payload.size() <= small_limit;
  PacketHead announcement = head(is_small ? PacketKind::small : PacketKind::large);
  announcement.tag = message.tag.value;
  announcement.bytes = message.payload.size();
  if (is_small) {
    uncredited_ += message.size();
    engine_.send(there_, announcement, message.payload);
    settle(message, nullptr);
    return;
  }
  announcement.transfer = engine_.next_transfer();
  engine_.send(there_, announcement);
  const auto announced = std::make_shared<Announced>();
  announced->message = std::move(message);
  announced->transfer = announcement.transfer;
  announced_[announcement.transfer] = announced;
}

void Sender::granted(std::uint32_t transfer, std::uint64_t upto) {
  const auto found = announced_.find(transfer);
  if (found != announced_.end() && !found->second->broken) {
    found->second->granted = std::min<std::uint64_t>(upto, found->second->message.payload.size());
    send_pieces(found->second);
  }
}

void Sender::send_pieces(const std::shared_ptr<Announced>& announced) {
  while (announced->sent < announced->granted) {
    const std::uint64_t size =
        std::min<std::uint64_t>(piece_bytes, announced->granted - announced->sent);
    const auto piece = announced->message.payload.subspan(announced->sent, size);
    announced->sent += size;
    ++announced->flying;
    engine_.send_piece(there_.rank, announced->transfer, piece,
                       [this, announced](const Calls::Done&) {
                         --announced->flying;
                         finish_if_done(*announced);
                       });
  }
}

void Sender::finish_if_done(Announced& announced) {
  const bool is_complete = announced.sent == announced.message.payload.size();
  if (announced.flying > 0 || (!is_complete && !announced.broken)) {
    return;
  }
  settle(announced.message, announced.broken);
  announced_.erase(announced.transfer);
}

/// The peer takes no more of this message.
void Sender::dropped(std::uint32_t transfer) {
  const auto found = announced_.find(transfer);
  if (found != announced_.end() && !found->second->broken) {
    const auto announced = found->second;
    announced->sent = announced->message.payload.size();
    finish_if_done(*announced);
  }
}

void Sender::credited(std::uint64_t bytes) {
  uncredited_ -= std::min<std::uint64_t>(bytes, uncredited_);
}

void Sender::refuse(const std::exception_ptr& why) {
  if (!refusing_) {
    refusing_ = why;
  }
}

bool Sender::cancel(const std::exception_ptr& why) {
  refuse(why);
  for (const QueuedMessage& message : queue_) {
    if (message.handle) {
      settle(message, why);
    }
  }
  std::erase_if(queue_, [](const QueuedMessage& message) { return message.handle != nullptr; });
  return std::any_of(announced_.begin(), announced_.end(),
                     [](const auto& entry) { return entry.second->message.handle != nullptr; });
}

void Sender::break_off(const std::exception_ptr& why) {
  if (!broken_) {
    broken_ = why;
  }
  for (const QueuedMessage& message : std::exchange(queue_, {})) {
    settle(message, why);
  }
  const auto all = announced_;
  for (const auto& [transfer, announced] : all) {
    // A message that has left completely may have arrived completely: the peer may close before MPI
    // reports the end of the send here.
    const bool has_left = announced->sent == announced->message.payload.size();
    if (!announced->broken && !has_left) {
      announced->broken = why;
      finish_if_done(*announced);
    }
  }
}

std::vector<Unfinished> Sender::unfinished() const {
  std::vector<Unfinished> all;
  for (const auto& [transfer, announced] : announced_) {
    all.push_back({.sent = announced->sent, .transfer = transfer});
  }
  return all;
}

PacketHead Sender::head(PacketKind kind) const {
  return {.kind = kind, .from_slot = here_.slot, .to_slot = there_.slot};
}

void Sender::settle(const QueuedMessage& message, const std::exception_ptr& error) {
  if (message.handle) {
    message.handle->done = true;
    message.handle->error = error;
  }
  engine_.changed().notify_all();
}

}  // namespace syncopate::mpi
