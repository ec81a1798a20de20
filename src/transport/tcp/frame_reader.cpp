#include "transport/tcp/frame_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::tcp {
namespace {

/// Bytes of one read into a message's buffer. By measurement, smaller and larger reads are slower
/// on loopback.
constexpr std::size_t chunk = 256 * 1024;
constexpr std::size_t input_bytes = 64 * 1024;
constexpr std::size_t header_bytes_ahead = 1024;

}  // namespace

FrameReader::FrameReader(NodeId from, mail::Mailbox& mailbox, const PayloadLimits& limits)
    : from_(from), mailbox_(mailbox), limits_(limits), input_(input_bytes) {}

std::array<asio::mutable_buffer, 2> FrameReader::space() {
  std::copy(input_.begin() + static_cast<std::ptrdiff_t>(begin_),
            input_.begin() + static_cast<std::ptrdiff_t>(end_), input_.begin());
  end_ -= begin_;
  begin_ = 0;
  direct_ = {};
  if (arrival_) {
    const std::span<std::byte> rest = mailbox_.borrow(*arrival_, chunk);
    direct_ = rest.first(std::min(rest.size(), chunk));
  }
  const std::size_t room = std::min(input_.size() - end_, read_past());
  return {asio::buffer(direct_.data(), direct_.size()), asio::buffer(input_.data() + end_, room)};
}

/// Bytes that one read may fetch in addition to those for a message's buffer. A read that reaches
/// the end of a message also fetches a few bytes after it; not many, because the reader would have
/// to copy a long message that follows.
std::size_t FrameReader::read_past() const {
  if (!arrival_ || direct_.empty()) {
    return input_bytes;
  }
  return direct_.size() == arrival_->missing() ? header_bytes_ahead : 0;
}

void FrameReader::received(std::size_t bytes) {
  if (arrival_) {
    const std::size_t direct = std::min(bytes, direct_.size());
    bytes -= direct;
    mailbox_.give_back(*arrival_, direct);
    if (arrival_->missing() == 0) {
      arrival_.reset();
    }
  }
  end_ += bytes;
  parse();
}

void FrameReader::parse() {
  while (true) {
    if (arrival_) {
      if (buffered() == 0) {
        return;
      }
    } else {
      if (buffered() < wire::frame_header_bytes) {
        return;
      }
      begin_message();
    }
    fill_from_input();
  }
}

void FrameReader::begin_message() {
  const std::span<const std::byte, wire::frame_header_bytes> head(input_.data() + begin_,
                                                                  wire::frame_header_bytes);
  const wire::FrameHeader header = wire::decode_frame_header(head, limits_.message_bytes);
  if (header.kind != wire::FrameKind::message) {
    throw ProtocolError(fmt::format("expected a message, found a frame of kind {}",
                                    static_cast<unsigned>(header.kind)));
  }
  begin_ += wire::frame_header_bytes;
  arrival_ = arrival_of(Tag{header.tag}, header.length);
}

mail::Arrival FrameReader::arrival_of(Tag tag, std::uint64_t bytes) {
  const auto limit = limits_.of(tag, from_);
  if (!limit) {
    if (!std::exchange(warned_, true)) {
      log::warn("dropped a message of node {} under tag {}, which this node does not take",
                from_.value, tag.value);
    }
    return {.from = from_, .tag = tag, .bytes = bytes, .discarded = true};
  }
  if (bytes > *limit) {
    throw ProtocolError(fmt::format("expected a message of at most {} bytes under tag {}, found {}",
                                    *limit, tag.value, bytes));
  }
  return mailbox_.begin(from_, tag, bytes);
}

void FrameReader::fill_from_input() {
  const std::size_t taken = std::min(buffered(), arrival_->missing());
  const std::span<std::byte> buffer = mailbox_.borrow(*arrival_, taken);
  std::copy_n(input_.begin() + static_cast<std::ptrdiff_t>(begin_), std::min(taken, buffer.size()),
              buffer.begin());
  begin_ += taken;
  mailbox_.give_back(*arrival_, taken);
  if (arrival_->missing() == 0) {
    arrival_.reset();
  }
}

}  // namespace syncopate::tcp
