#include "server/messages.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/errors.hpp"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "messages travel in little-endian order");

/// A request as it travels; its ranks follow.
struct RequestBytes {
  std::uint64_t step;
  std::uint64_t samples;
  double loss_sum;
  std::uint64_t push_offset;
  std::uint64_t pull_offset;
  float weight;
  std::uint8_t kind;
  std::uint8_t push;
  std::uint8_t pull;
  std::uint8_t unused;
};
static_assert(sizeof(RequestBytes) == 48 && std::is_trivially_copyable_v<RequestBytes>);

/// A reply as it travels; its ranks follow.
struct ReplyBytes {
  std::uint64_t version;
  std::uint64_t samples;
  double loss_sum;
  std::uint64_t staleness;
  std::uint64_t steps;
  std::int64_t training_ns;
  std::int64_t paused_ns;
  std::uint8_t kind;
  std::uint8_t dropped;
  std::uint8_t reaches_memory;
  std::uint8_t unused[5];
};
static_assert(sizeof(ReplyBytes) == 64 && std::is_trivially_copyable_v<ReplyBytes>);

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

std::optional<std::uint64_t> place_in(std::uint64_t value) {
  return value == nowhere ? std::nullopt : std::optional(value);
}

template <class Head>
std::vector<std::byte> join(const Head& head, const std::vector<Rank>& ranks) {
  static_assert(sizeof(Rank) == sizeof(std::uint32_t));
  std::vector<std::byte> bytes(sizeof head + ranks.size() * sizeof(Rank));
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!ranks.empty()) {
    std::memcpy(bytes.data() + sizeof head, ranks.data(), ranks.size() * sizeof(Rank));
  }
  return bytes;
}

template <class Head>
std::vector<Rank> split(std::span<const std::byte> bytes, Head& head, const char* what) {
  if (bytes.size() < sizeof head || (bytes.size() - sizeof head) % sizeof(Rank) != 0) {
    throw ProtocolError(fmt::format("a server's {} of {} bytes; expected {} and whole ranks", what,
                                    bytes.size(), sizeof head));
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  std::vector<Rank> ranks((bytes.size() - sizeof head) / sizeof(Rank));
  if (!ranks.empty()) {
    std::memcpy(ranks.data(), bytes.data() + sizeof head, ranks.size() * sizeof(Rank));
  }
  return ranks;
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
  return join(RequestBytes{.step = request.step,
                           .samples = request.samples,
                           .loss_sum = request.loss_sum,
                           .push_offset = request.push_offset.value_or(nowhere),
                           .pull_offset = request.pull_offset.value_or(nowhere),
                           .weight = request.weight,
                           .kind = static_cast<std::uint8_t>(request.kind),
                           .push = request.push,
                           .pull = request.pull,
                           .unused = 0},
              request.ranks);
}

std::vector<std::byte> encode(const Reply& reply) {
  return join(ReplyBytes{.version = reply.version,
                         .samples = reply.samples,
                         .loss_sum = reply.loss_sum,
                         .staleness = reply.staleness,
                         .steps = reply.steps,
                         .training_ns = reply.training.count(),
                         .paused_ns = reply.paused.count(),
                         .kind = static_cast<std::uint8_t>(reply.kind),
                         .dropped = reply.dropped,
                         .reaches_memory = reply.reaches_memory,
                         .unused = {}},
              reply.ranks);
}

Request decode_request(std::span<const std::byte> bytes) {
  RequestBytes head{};
  std::vector<Rank> ranks = split(bytes, head, "request");
  return {.kind = kind_in(head.kind, Request::Kind::finish, "request"),
          .push = head.push != 0,
          .pull = head.pull != 0,
          .step = head.step,
          .samples = head.samples,
          .loss_sum = head.loss_sum,
          .weight = head.weight,
          .push_offset = place_in(head.push_offset),
          .pull_offset = place_in(head.pull_offset),
          .ranks = std::move(ranks)};
}

Reply decode_reply(std::span<const std::byte> bytes) {
  ReplyBytes head{};
  std::vector<Rank> ranks = split(bytes, head, "reply");
  return {.kind = kind_in(head.kind, Reply::Kind::held, "reply"),
          .reaches_memory = head.reaches_memory != 0,
          .dropped = head.dropped != 0,
          .version = head.version,
          .samples = head.samples,
          .loss_sum = head.loss_sum,
          .staleness = head.staleness,
          .steps = head.steps,
          .training = Duration(head.training_ns),
          .paused = Duration(head.paused_ns),
          .ranks = std::move(ranks)};
}

}  // namespace syncopate
