#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/mail/mailbox.hpp"
#include "transport/payload_limits.hpp"

namespace syncopate::tcp {

/// Cuts the stream of one peer into messages.
///
/// Headers and small messages are read many at a time into an input buffer; the rest of a large
/// message is read straight into its buffer. A message that this node does not accept is dropped.
/// The reader has no socket: it offers space, and the caller reports how much of it was filled.
class FrameReader {
 public:
  FrameReader(NodeId from, mail::Mailbox& mailbox, const PayloadLimits& limits);

  /// The buffers for the next bytes, in order. Each call is followed by one of `received`.
  std::array<asio::mutable_buffer, 2> space();

  /// Takes `bytes` that were read into the last `space`. Errors: ProtocolError if the stream is
  /// damaged or a message exceeds its limit; std::bad_alloc if a message is too large to keep.
  void received(std::size_t bytes);

  /// True while a message is partly read.
  bool is_in_message() const { return arrival_.has_value(); }
  /// True while a message is partly read into the buffer of a waiting receive.
  bool is_filling_borrowed_buffer() const { return arrival_ && arrival_->waiter; }

 private:
  std::size_t buffered() const { return end_ - begin_; }
  std::size_t read_past() const;
  void parse();
  void begin_message();
  mail::Arrival arrival_of(Tag tag, std::uint64_t bytes);
  void fill_from_input();

  const NodeId from_;
  mail::Mailbox& mailbox_;
  const PayloadLimits limits_;

  std::optional<mail::Arrival> arrival_;
  std::span<std::byte> direct_;  ///< the part of the arrival's buffer in the last `space`
  std::vector<std::byte> input_;
  std::size_t begin_ = 0;  ///< the unread part of `input_`; empty while an arrival is under way
  std::size_t end_ = 0;
  bool warned_ = false;  ///< of a message that was dropped
};

}  // namespace syncopate::tcp
