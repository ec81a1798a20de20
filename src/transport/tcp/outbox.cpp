#include "transport/tcp/outbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::tcp {
namespace {

/// Bytes of one write. By measurement, smaller and larger writes are slower on loopback.
constexpr std::size_t write_bytes = 256 * 1024;
/// Number of buffers of one write: Asio passes no more to the kernel at once.
constexpr std::size_t max_buffers = 64;

wire::FrameHeaderBytes header_of(Tag tag, std::size_t bytes) {
  return wire::encode(wire::FrameHeader{wire::FrameKind::message, tag.value, bytes});
}

}  // namespace

/// A send from a borrowed buffer.
class Sending final : public Transfer {
 public:
  Sending(Outbox& outbox, Tag tag, std::span<const std::byte> payload) : outbox_(outbox) {
    outbox_.enqueue({header_of(tag, payload.size()), {}, payload, &handle_});
  }
  ~Sending() override { outbox_.await_release(handle_); }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  void wait(TimePoint deadline) override { outbox_.await(handle_, deadline); }

 private:
  Outbox& outbox_;
  Outbox::SendHandle handle_;
};

Outbox::Outbox(NodeId to, Engine engine) : to_(to), engine_(std::move(engine)) {
  buffers_.reserve(max_buffers);
}

std::unique_ptr<Transfer> Outbox::start_send(Tag tag, std::span<const std::byte> payload) {
  return std::make_unique<Sending>(*this, tag, payload);
}

void Outbox::post(Tag tag, std::vector<std::byte> payload) {
  const std::span<const std::byte> view = payload;
  enqueue({header_of(tag, payload.size()), std::move(payload), view, nullptr});
}

void Outbox::enqueue(QueuedMessage message) {
  const MutexLock lock(mutex_);
  const std::exception_ptr& obstacle = refusing_ ? refusing_ : broken_;
  if (obstacle) {
    if (!message.handle && refusing_) {
      std::rethrow_exception(refusing_);
    }
    settle(message, obstacle);
    return;
  }
  ++traffic_.messages_sent;
  traffic_.bytes_sent += message.size();
  queue_.push_back(std::move(message));
  if (stream_ != nullptr && !flushing_ && write_some() != WriteResult::idle) {
    flushing_ = true;
    engine_.flush();
  }
}

void Outbox::refuse(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  if (!refusing_) {
    refusing_ = why;
  }
}

void Outbox::cancel(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  if (!refusing_) {
    refusing_ = why;
  }
  if (has_begun_a_send()) {
    break_off(why);
    engine_.cut();
    return;
  }
  for (QueuedMessage& message : queue_) {
    if (message.handle != nullptr) {
      settle(message, why);
    }
  }
  std::erase_if(queue_, [](const QueuedMessage& message) { return message.handle != nullptr; });
  changed_.notify_all();
}

/// True if bytes of a send have left, or are in a record that will.
bool Outbox::has_begun_a_send() const {
  std::size_t begun = written_ + (stream_ != nullptr ? stream_->held_bytes() : 0);
  for (const QueuedMessage& message : queue_) {
    if (begun == 0 || message.handle != nullptr) {
      return begun > 0;
    }
    begun -= std::min(begun, message.size());
  }
  return false;
}

bool Outbox::wait_until_empty(TimePoint deadline) {
  MutexLock lock(mutex_);
  return changed_.wait_until(lock.native(), to_steady(deadline),
                             [&]() REQUIRES(mutex_) { return queue_.empty(); });
}

Traffic Outbox::traffic() const {
  const MutexLock lock(mutex_);
  return traffic_;
}

Outbox::WriteResult Outbox::attach(Stream& stream) {
  const MutexLock lock(mutex_);
  stream_ = &stream;
  flushing_ = !queue_.empty();
  return flushing_ ? WriteResult::more : WriteResult::idle;
}

Outbox::WriteResult Outbox::write() {
  const MutexLock lock(mutex_);
  const WriteResult result = write_some();
  flushing_ = result != WriteResult::idle;
  return result;
}

void Outbox::fail(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  break_off(why);
}

void Outbox::detach() {
  const MutexLock lock(mutex_);
  stream_ = nullptr;
}

Outbox::WriteResult Outbox::write_some() {
  if (queue_.empty() || stream_ == nullptr) {
    return WriteResult::idle;
  }
  gather();
  asio::error_code error;
  const std::size_t written = stream_->write_some(buffers_, error);
  if (error == asio::error::would_block) {
    return WriteResult::blocked;
  }
  if (error) {
    // The engine may still read what this peer had sent before it broke the stream, and declares
    // the loss when reading ends.
    break_off(std::make_exception_ptr(PeerLost(
        to_,
        fmt::format("node {} is lost: sending to it failed: {}", to_.value, error.message()))));
    return WriteResult::idle;
  }
  advance(written);
  return queue_.empty() ? WriteResult::idle : WriteResult::more;
}

void Outbox::gather() {
  buffers_.clear();
  std::size_t skip = written_;
  std::size_t room = write_bytes;
  for (const QueuedMessage& message : queue_) {
    if (room == 0 || buffers_.size() + 2 > max_buffers) {
      return;
    }
    for (const auto bytes : {std::span<const std::byte>(message.header), message.payload}) {
      const std::size_t skipped = std::min(skip, bytes.size());
      skip -= skipped;
      const std::size_t taken = std::min(room, bytes.size() - skipped);
      room -= taken;
      if (taken > 0) {
        buffers_.emplace_back(bytes.data() + skipped, taken);
      }
    }
  }
}

void Outbox::advance(std::size_t written) {
  written_ += written;
  while (!queue_.empty() && written_ >= queue_.front().size()) {
    written_ -= queue_.front().size();
    settle(queue_.front(), nullptr);
    queue_.pop_front();
  }
  if (queue_.empty()) {
    changed_.notify_all();
  }
}

void Outbox::settle(QueuedMessage& message, const std::exception_ptr& error) {
  if (message.handle != nullptr) {
    message.handle->done = true;
    message.handle->error = error;
    changed_.notify_all();
  }
}

void Outbox::break_off(const std::exception_ptr& why) {
  if (!broken_) {
    broken_ = why;
  }
  for (QueuedMessage& message : queue_) {
    settle(message, broken_);
  }
  queue_.clear();
  written_ = 0;
  changed_.notify_all();
}

void Outbox::await(SendHandle& handle, TimePoint deadline) {
  engine_.progress([&] { return is_done(handle); }, deadline);
  MutexLock lock(mutex_);
  while (!changed_.wait_until(lock.native(), to_steady(end_of_slice(deadline)),
                              [&] { return handle.done; })) {
    if (steady_now() >= deadline) {
      cut_off("timed out");
      throw PeerTimedOut(to_, "a message was not taken before its deadline");
    }
    if (interruption::is_requested(lock)) {
      cut_off("was interrupted");
      throw interruption::Interrupted();
    }
  }
  if (handle.error) {
    std::rethrow_exception(handle.error);
  }
}

/// A send that its caller gives up has written a part of its message.
void Outbox::cut_off(const char* end) {
  break_off(std::make_exception_ptr(PeerLost(
      to_, fmt::format("node {} is lost: a send to it {}, which cut the stream", to_.value, end))));
  engine_.cut();
}

bool Outbox::is_done(const SendHandle& handle) const {
  const MutexLock lock(mutex_);
  return handle.done;
}

void Outbox::await_release(SendHandle& handle) {
  MutexLock lock(mutex_);
  while (!handle.done) {
    changed_.wait(lock.native());
  }
}

}  // namespace syncopate::tcp
