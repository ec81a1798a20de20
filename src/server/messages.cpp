#include "server/messages.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/errors.hpp"

namespace syncopate {
namespace {

/// Wire format of a request: u64 step, u64 samples, f64 loss sum, u64 push offset, u64 pull offset,
/// f32 weight, u8 kind, 2 flags (push, pull), 1 zero; its ranks follow, a u32 each.
constexpr std::size_t request_bytes = 48;

/// Wire format of a reply: u64 version, u64 samples, f64 loss sum, u64 staleness, u64 steps, i64 ns
/// of training time, i64 ns of pause, u8 kind, 2 flags (dropped, reaches memory), 5 zeros; its
/// ranks follow.
constexpr std::size_t reply_bytes = 64;

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

std::optional<std::uint64_t> place_in(std::uint64_t value) {
  return value == nowhere ? std::nullopt : std::optional(value);
}

void put_ranks(ByteWriter& writer, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    writer.put(rank.value);
  }
}

std::vector<Rank> take_ranks(ByteReader& reader) {
  std::vector<Rank> ranks;
  while (reader.remaining() > 0) {
    ranks.push_back(Rank{reader.take<std::uint32_t>()});
  }
  return ranks;
}

void check_size(std::size_t found, std::size_t head, const char* what) {
  if (found < head || (found - head) % sizeof(std::uint32_t) != 0) {
    throw ProtocolError(
        fmt::format("a server's {} of {} bytes; expected {} and 4 per rank", what, found, head));
  }
}

template <class Kind>
Kind kind_in(std::uint8_t value, Kind last, const char* what) {
  if (value == 0 || value > static_cast<std::uint8_t>(last)) {
    throw ProtocolError(fmt::format("a server's {} of unknown kind {}", what, value));
  }
  return static_cast<Kind>(value);
}

}  // namespace

std::vector<std::byte> encode(const Request& request) {
  std::vector<std::byte> bytes(request_bytes + request.ranks.size() * sizeof(std::uint32_t));
  ByteWriter writer(bytes);
  writer.put(request.step)
      .put(request.samples)
      .put(request.loss_sum)
      .put(request.push_offset.value_or(nowhere))
      .put(request.pull_offset.value_or(nowhere))
      .put(request.weight)
      .put(static_cast<std::uint8_t>(request.kind))
      .put(request.push)
      .put(request.pull)
      .put_zeros(1);
  put_ranks(writer, request.ranks);
  return bytes;
}

std::vector<std::byte> encode(const Reply& reply) {
  std::vector<std::byte> bytes(reply_bytes + reply.ranks.size() * sizeof(std::uint32_t));
  ByteWriter writer(bytes);
  writer.put(reply.version)
      .put(reply.samples)
      .put(reply.loss_sum)
      .put(reply.staleness)
      .put(reply.steps)
      .put(std::int64_t{reply.training.count()})
      .put(std::int64_t{reply.paused.count()})
      .put(static_cast<std::uint8_t>(reply.kind))
      .put(reply.dropped)
      .put(reply.reaches_memory)
      .put_zeros(5);
  put_ranks(writer, reply.ranks);
  return bytes;
}

Request decode_request(std::span<const std::byte> bytes) {
  check_size(bytes.size(), request_bytes, "request");
  ByteReader reader(bytes);
  Request request;
  request.step = reader.take<std::uint64_t>();
  request.samples = reader.take<std::uint64_t>();
  request.loss_sum = reader.take<double>();
  request.push_offset = place_in(reader.take<std::uint64_t>());
  request.pull_offset = place_in(reader.take<std::uint64_t>());
  request.weight = reader.take<float>();
  request.kind = kind_in(reader.take<std::uint8_t>(), Request::Kind::rest, "request");
  request.push = reader.take<bool>();
  request.pull = reader.take<bool>();
  reader.skip(1);
  request.ranks = take_ranks(reader);
  return request;
}

Reply decode_reply(std::span<const std::byte> bytes) {
  check_size(bytes.size(), reply_bytes, "reply");
  ByteReader reader(bytes);
  Reply reply;
  reply.version = reader.take<std::uint64_t>();
  reply.samples = reader.take<std::uint64_t>();
  reply.loss_sum = reader.take<double>();
  reply.staleness = reader.take<std::uint64_t>();
  reply.steps = reader.take<std::uint64_t>();
  reply.training = Duration(reader.take<std::int64_t>());
  reply.paused = Duration(reader.take<std::int64_t>());
  reply.kind = kind_in(reader.take<std::uint8_t>(), Reply::Kind::held, "reply");
  reply.dropped = reader.take<bool>();
  reply.reaches_memory = reader.take<bool>();
  reader.skip(5);
  reply.ranks = take_ranks(reader);
  return reply;
}

}  // namespace syncopate
