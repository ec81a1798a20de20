#pragma once

#include <asio/buffer.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/tcp/stream.hpp"
#include "transport/transport.hpp"
#include "wire/frame.hpp"

namespace syncopate::tcp {

/// Messages on their way to one peer, before and after there is a stream to it.
///
/// The thread that sends also writes, as far as one write gets; the rest is the engine's, and as
/// long as it has some, whoever sends only lines up. So a lone small message wakes no other thread,
/// and many of them leave in one write.
///
/// Threads:   any, but `attach`, `write`, `fail` and `detach`: the engine.
/// Invariant: letters leave whole and in order; at most the front one is half written.
class Outbox {
 public:
  /// What the outbox asks of its owner, from any thread. None of the first two may call back at once.
  struct Engine {
    std::function<void()> flush;      ///< call `write` until it is idle
    std::function<void()> cut;        ///< break the stream, in which a message will stay unfinished
    mail::ProgressFunction progress;  ///< called without a lock
  };

  enum class Progress {
    idle,     ///< nothing is left to write
    more,     ///< more can be written at once
    blocked,  ///< the stream takes no more for now
  };

  Outbox(NodeId to, Engine engine);

  std::unique_ptr<Transfer> start_send(Tag tag, std::span<const std::byte> payload);
  void post(Tag tag, std::vector<std::byte> payload);

  /// Refuses what begins later with `why`. The first reason counts.
  void refuse(const std::exception_ptr& why);
  /// Refuses, and ends every send under way. What was posted still leaves, unless a send that had
  /// half left takes the stream with it.
  void cancel(const std::exception_ptr& why);
  /// False at the deadline.
  bool wait_until_empty(TimePoint deadline);
  Traffic traffic() const;

  /// Begins to write to `stream`, which stays until `detach`. Progress as of `write`.
  Progress attach(Stream& stream);
  Progress write();
  /// Ends every send, now and later, with `why`, and drops what was posted.
  void fail(const std::exception_ptr& why);
  void detach();

 private:
  friend class Sending;

  /// What a send under way is told.
  struct SendHandle {
    bool done = false;
    std::exception_ptr error{};
  };
  struct QueuedMessage {
    wire::FrameHeaderBytes header;
    std::vector<std::byte> owned;        ///< the payload, where it was posted
    std::span<const std::byte> payload;  ///< in `owned`, or lent
    SendHandle* handle = nullptr;        ///< where it is lent

    std::size_t size() const { return header.size() + payload.size(); }
  };

  void enqueue(QueuedMessage message);
  Progress write_some();
  void gather();
  void advance(std::size_t written);
  void settle(QueuedMessage& message, const std::exception_ptr& error);
  void break_off(const std::exception_ptr& why);
  void await(SendHandle& handle, TimePoint deadline);
  bool is_done(const SendHandle& handle) const;
  void await_release(SendHandle& handle);

  const NodeId to_;
  const Engine engine_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedMessage> queue_;
  std::size_t written_ = 0;  ///< bytes of the front message that have left
  std::vector<asio::const_buffer> buffers_;
  Stream* stream_ = nullptr;
  bool flushing_ = false;        ///< the engine has been asked to write
  std::exception_ptr broken_;    ///< no message will leave any more
  std::exception_ptr refusing_;  ///< no message is taken any more
  Traffic traffic_;
};

}  // namespace syncopate::tcp
