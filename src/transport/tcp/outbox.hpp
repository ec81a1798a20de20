#pragma once

#include <asio/buffer.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "transport/mail/mailbox.hpp"
#include "transport/tcp/tcp_stream.hpp"
#include "transport/transport.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {

/// Messages on their way to one peer, before and after there is a stream to it.
///
/// The sending thread does one write itself; the engine writes the rest, and while it is writing,
/// senders only queue. So a single small message wakes no other thread, and many small messages
/// leave in one write.
///
/// Threads:   any; only the engine calls `attach`, `write`, `fail` and `detach`.
/// Invariant: messages leave whole and in order; at most the front one is partly written.
class Outbox {
 public:
  /// The outbox calls these functions of its owner from any thread. The first two must not call the
  /// outbox back before they return.
  struct Engine {
    std::function<void()> flush;      ///< call `write` until it is idle
    std::function<void()> cut;        ///< break the stream, which leaves a message unfinished
    mail::ProgressFunction progress;  ///< called without a lock
  };

  enum class WriteResult {
    idle,     ///< nothing is left to write
    more,     ///< more can be written at once
    blocked,  ///< the stream takes no more for now
  };

  Outbox(NodeId to, Engine engine);

  std::unique_ptr<Transfer> start_send(Tag tag, std::span<const std::byte> payload);
  void post(Tag tag, std::vector<std::byte> payload);

  /// Refuses messages from now on, with `why`. Only the first call has an effect.
  void refuse(const std::exception_ptr& why);
  /// Refuses messages, and ends every send under way. Posted messages still leave, unless a partly
  /// written send breaks the stream.
  void cancel(const std::exception_ptr& why);
  /// Returns false at the deadline.
  bool wait_until_empty(TimePoint deadline);
  Traffic traffic() const;

  /// Begins to write to `stream`, which must exist until `detach`. Returns the same as `write`.
  WriteResult attach(Stream& stream);
  WriteResult write();
  /// Ends every send, now and later, with `why`, and drops posted messages.
  void fail(const std::exception_ptr& why);
  void detach();

 private:
  friend class Sending;

  /// The outcome of a send under way.
  struct SendHandle {
    bool done = false;
    std::exception_ptr error{};
  };
  struct QueuedMessage {
    wire::FrameHeaderBytes header;
    std::vector<std::byte> owned;        ///< the payload of a posted message
    std::span<const std::byte> payload;  ///< in `owned`, or the caller's buffer
    SendHandle* handle = nullptr;        ///< set if `payload` is the caller's buffer

    std::size_t size() const { return header.size() + payload.size(); }
  };

  void enqueue(QueuedMessage message);
  WriteResult write_some() REQUIRES(mutex_);
  bool has_begun_a_send() const REQUIRES(mutex_);
  void gather() REQUIRES(mutex_);
  void advance(std::size_t written) REQUIRES(mutex_);
  void settle(QueuedMessage& message, const std::exception_ptr& error) REQUIRES(mutex_);
  void cut_off(const char* end) REQUIRES(mutex_);
  void break_off(const std::exception_ptr& why) REQUIRES(mutex_);
  void await(SendHandle& handle, TimePoint deadline);
  bool is_done(const SendHandle& handle) const;
  void await_release(SendHandle& handle);

  const NodeId to_;
  const Engine engine_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedMessage> queue_ GUARDED_BY(mutex_);
  std::size_t written_ GUARDED_BY(mutex_) = 0;  ///< bytes of the front message that have left
  std::vector<asio::const_buffer> buffers_ GUARDED_BY(mutex_);
  Stream* stream_ GUARDED_BY(mutex_) = nullptr;
  bool flushing_ GUARDED_BY(mutex_) = false;        ///< the engine has been asked to write
  std::exception_ptr broken_ GUARDED_BY(mutex_);    ///< why no message will leave any more
  std::exception_ptr refusing_ GUARDED_BY(mutex_);  ///< why no message is accepted any more
  Traffic traffic_ GUARDED_BY(mutex_);
};

}  // namespace syncopate::tcp
