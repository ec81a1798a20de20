#include "transport/mail/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.hpp"
#include "transport/steady_time.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::mail {
namespace {

/// Size of a kept message for the limit of unclaimed bytes. The header counts, so an empty message
/// counts, too.
std::size_t weight(const Message& message) {
  return wire::frame_header_bytes + message.payload.size();
}

std::exception_ptr wrong_size(NodeId from, Tag tag, std::size_t expected, std::size_t found) {
  return std::make_exception_ptr(WrongSize(
      fmt::format("expected a message of {} bytes from node {} under tag {}, found one of "
                  "{}",
                  expected, from.value, tag.value, found),
      expected, found));
}

/// The memory for a message may be this many times as large as the bytes that have arrived. So a
/// sender that announces much and sends little takes little memory, and a byte is rarely copied.
constexpr std::size_t growth = 4;

/// Makes room for `wanted` more bytes, or for all that are missing.
void make_room(Arrival& arrival, std::size_t wanted) {
  const std::size_t needed = arrival.have + std::min(wanted, arrival.missing());
  if (arrival.payload.size() < needed) {
    const std::size_t room = std::min(arrival.bytes, std::max(needed, growth * arrival.have));
    arrival.payload.reserve(room);  // `resize` by itself may take twice as much
    arrival.payload.resize(room);
  }
}

/// Copies a message that arrived before its receive was ready for it.
std::exception_ptr fill(Waiter& waiter, const Message& message) {
  const std::span<std::byte> into = *waiter.buffer;
  if (message.payload.size() != into.size()) {
    return wrong_size(message.from, message.tag, into.size(), message.payload.size());
  }
  std::copy(message.payload.begin(), message.payload.end(), into.begin());
  return nullptr;
}

}  // namespace

/// A receive into a borrowed buffer.
class Receiving final : public Transfer {
 public:
  Receiving(Mailbox& mailbox, std::shared_ptr<Waiter> waiter)
      : mailbox_(mailbox), waiter_(std::move(waiter)) {}
  ~Receiving() override { mailbox_.withdraw(*waiter_); }
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  void wait(TimePoint deadline) override { mailbox_.await(*waiter_, deadline); }

 private:
  Mailbox& mailbox_;
  std::shared_ptr<Waiter> waiter_;
};

Mailbox::Mailbox(std::size_t unclaimed_limit, std::function<void(NodeId)> resume,
                 ProgressFunction progress)
    : unclaimed_limit_(unclaimed_limit),
      resume_(std::move(resume)),
      progress_(std::move(progress)) {}

std::unique_ptr<Transfer> Mailbox::start_receive(NodeId from, Tag tag, std::span<std::byte> into) {
  auto waiter = std::make_shared<Waiter>();
  waiter->from = from;
  waiter->tag = tag;
  waiter->buffer = into;
  MutexLock lock(mutex_);
  if (cancelled_) {
    finish(*waiter, cancelled_);
  } else if (const auto message = take(from, tag)) {
    lock.unlock();
    waiter->error = fill(*waiter, *message);
    waiter->state = Waiter::State::done;
  } else if (const auto reason = reason_not_to_wait(from)) {
    finish(*waiter, reason);
  } else {
    line_up(waiter);
  }
  return std::make_unique<Receiving>(*this, std::move(waiter));
}

std::optional<Message> Mailbox::try_receive(std::optional<NodeId> from, Tag tag,
                                            TimePoint deadline) {
  MutexLock lock(mutex_);
  if (cancelled_) {
    std::rethrow_exception(cancelled_);
  }
  if (auto message = take(from, tag)) {
    return message;
  }
  if (const auto reason = reason_not_to_wait(from)) {
    std::rethrow_exception(reason);
  }
  const auto waiter = std::make_shared<Waiter>();
  waiter->from = from;
  waiter->tag = tag;
  line_up(waiter);
  if (!wait_for_release(*waiter, lock, deadline)) {
    finish(*waiter);
    return std::nullopt;
  }
  if (waiter->error) {
    std::rethrow_exception(waiter->error);
  }
  return std::move(waiter->message);
}

void Mailbox::await(Waiter& waiter, TimePoint deadline) {
  MutexLock lock(mutex_);
  if (!wait_for_release(waiter, lock, deadline)) {
    throw_no_message(waiter.from);
  }
  if (waiter.error) {
    std::rethrow_exception(waiter.error);
  }
}

/// Returns false at the deadline.
bool Mailbox::wait_for_release(Waiter& waiter, MutexLock& lock, TimePoint deadline) {
  if (progress_ && !waiter.is_released()) {
    lock.unlock();
    const auto released = [&] {
      const MutexLock looking(mutex_);
      return waiter.is_released();
    };
    progress_(released, deadline);
    lock.lock();
  }
  return waiter.changed.wait_until(lock.native(), to_steady(deadline),
                                   [&] { return waiter.is_released(); });
}

void Mailbox::withdraw(Waiter& waiter) {
  MutexLock lock(mutex_);
  if (waiter.state == Waiter::State::waiting) {
    finish(waiter);
  }
  wait_for_release(waiter, lock, no_deadline);
}

void Mailbox::cancel(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  if (cancelled_) {
    return;
  }
  cancelled_ = why;
  while (!waiters_.empty()) {
    finish(*waiters_.front(), why);
  }
  messages_.clear();
  for (const auto& entry : peers_) {
    resume_if_paused(entry.first);
  }
}

Arrival Mailbox::begin(NodeId from, Tag tag, std::size_t bytes) {
  Arrival arrival{from, tag, bytes};
  {
    const MutexLock lock(mutex_);
    const auto waiter = first_in_line(from, tag);
    if (waiter && waiter->buffer) {
      const std::size_t expected = waiter->buffer->size();
      if (bytes != expected) {
        finish(*waiter, wrong_size(from, tag, expected, bytes));
        arrival.discarded = true;
      } else {
        waiter->state = Waiter::State::arriving;
        arrival.waiter = waiter;
      }
      return arrival;
    }
    arrival.discarded = cancelled_ != nullptr;
  }
  return arrival;
}

std::span<std::byte> Mailbox::borrow(Arrival& arrival, std::size_t wanted) {
  if (arrival.discarded) {
    return {};
  }
  if (!arrival.waiter) {
    make_room(arrival, wanted);
    return std::span(arrival.payload).subspan(arrival.have);
  }
  const MutexLock lock(mutex_);
  Waiter& waiter = *arrival.waiter;
  if (waiter.state == Waiter::State::done) {
    arrival.waiter.reset();
    arrival.discarded = true;
    return {};
  }
  waiter.borrowed = true;
  return waiter.buffer->subspan(arrival.have);
}

void Mailbox::give_back(Arrival& arrival, std::size_t bytes) {
  arrival.have += bytes;
  MutexLock lock(mutex_);
  if (arrival.waiter) {
    arrival.waiter->borrowed = false;
    if (arrival.waiter->state == Waiter::State::done) {
      arrival.waiter->changed.notify_all();
    } else if (arrival.missing() == 0) {
      finish(*arrival.waiter);
    }
  } else if (arrival.missing() == 0 && !arrival.discarded) {
    deliver({arrival.from, arrival.tag, std::move(arrival.payload)}, lock);
  }
}

bool Mailbox::is_wanted(const Arrival& arrival) const {
  const MutexLock lock(mutex_);
  return !arrival.discarded &&
         (arrival.waiter ? arrival.waiter->state != Waiter::State::done : cancelled_ == nullptr);
}

bool Mailbox::may_read(NodeId from) {
  const MutexLock lock(mutex_);
  Peer& peer = peers_[from];
  const auto awaits = [&](const std::shared_ptr<Waiter>& waiter) {
    return waiter->state == Waiter::State::waiting && waiter->could_take(from, waiter->tag);
  };
  peer.paused = !cancelled_ && peer.unclaimed > unclaimed_limit_ &&
                std::none_of(waiters_.begin(), waiters_.end(), awaits);
  return !peer.paused;
}

void Mailbox::lose(NodeId from, const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  peers_[from].lost = why;
  std::vector<std::shared_ptr<Waiter>> bereft;
  std::shared_ptr<Waiter> first_from_anyone;
  for (const auto& waiter : waiters_) {
    if (waiter->from == from) {
      bereft.push_back(waiter);
    } else if (!waiter->from && !first_from_anyone) {
      first_from_anyone = waiter;
    }
  }
  for (const auto& waiter : bereft) {
    finish(*waiter, why);
  }
  if (first_from_anyone) {
    finish(*first_from_anyone, why);
  } else {
    unreported_losses_.push_back(why);
  }
}

void Mailbox::forget(NodeId from) {
  const MutexLock lock(mutex_);
  for (auto& [tag, kept] : messages_) {
    std::erase_if(kept, [&](const Message& message) { return message.from == from; });
  }
  std::erase_if(messages_, [](const auto& entry) { return entry.second.empty(); });
  peers_[from].unclaimed = 0;
}

std::shared_ptr<Waiter> Mailbox::first_in_line(NodeId from, Tag tag) const {
  const auto found = std::find_if(waiters_.begin(), waiters_.end(), [&](const auto& waiter) {
    return waiter->state == Waiter::State::waiting && waiter->could_take(from, tag);
  });
  return found == waiters_.end() ? nullptr : *found;
}

std::optional<Message> Mailbox::take(std::optional<NodeId> from, Tag tag) {
  const auto entry = messages_.find(tag);
  if (entry == messages_.end()) {
    return std::nullopt;
  }
  auto& kept = entry->second;
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const Message& message) {
    return !from || message.from == *from;
  });
  if (found == kept.end()) {
    return std::nullopt;
  }
  Message message = std::move(*found);
  kept.erase(found);
  if (kept.empty()) {
    messages_.erase(entry);
  }
  Peer& peer = peers_[message.from];
  peer.unclaimed -= weight(message);
  if (peer.unclaimed <= unclaimed_limit_) {
    resume_if_paused(message.from);
  }
  return message;
}

std::exception_ptr Mailbox::reason_not_to_wait(std::optional<NodeId> from) {
  if (from) {
    return peers_[*from].lost;
  }
  if (unreported_losses_.empty()) {
    return nullptr;
  }
  const auto loss = unreported_losses_.front();
  unreported_losses_.pop_front();
  return loss;
}

void Mailbox::line_up(const std::shared_ptr<Waiter>& waiter) {
  waiters_.push_back(waiter);
  for (const auto& entry : peers_) {
    if (waiter->could_take(entry.first, waiter->tag)) {
      resume_if_paused(entry.first);
    }
  }
}

void Mailbox::finish(Waiter& waiter, const std::exception_ptr& error) {
  waiter.error = error;
  waiter.state = Waiter::State::done;
  waiter.changed.notify_all();
  // Last: the list may be the only owner.
  waiters_.remove_if([&](const auto& other) { return other.get() == &waiter; });
}

void Mailbox::deliver(Message message, MutexLock& lock) {
  if (cancelled_) {
    return;
  }
  const auto waiter = first_in_line(message.from, message.tag);
  if (!waiter) {
    peers_[message.from].unclaimed += weight(message);
    messages_[message.tag].push_back(std::move(message));
    return;
  }
  if (!waiter->buffer) {
    waiter->message = std::move(message);
    finish(*waiter);
    return;
  }
  waiter->state = Waiter::State::arriving;
  waiter->borrowed = true;
  lock.unlock();
  const auto error = fill(*waiter, message);
  lock.lock();
  waiter->borrowed = false;
  if (waiter->state == Waiter::State::done) {
    waiter->changed.notify_all();
  } else {
    finish(*waiter, error);
  }
}

void Mailbox::resume_if_paused(NodeId from) {
  if (std::exchange(peers_[from].paused, false)) {
    resume_(from);
  }
}

}  // namespace syncopate::mail
