#include "transport/mpi/packet.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/bytes.hpp"
#include "base/errors.hpp"

namespace syncopate::mpi {
namespace {

constexpr std::string_view prefix = "mpi:";
constexpr std::size_t unfinished_bytes = 16;

/// Removes a number from the beginning of `text`. Returns false if there is none.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

bool take(std::string_view& text, std::string_view word) {
  const bool found = text.substr(0, word.size()) == word;
  text.remove_prefix(found ? word.size() : 0);
  return found;
}

}  // namespace

std::string to_string(const Site& site) {
  return fmt::format("{}{}.{}", prefix, site.rank, site.slot);
}

Site parse_site(const std::string& text) {
  Site site;
  std::string_view rest = text;
  if (!take(rest, prefix) || !take_number(rest, site.rank) || !take(rest, ".") ||
      !take_number(rest, site.slot) || !rest.empty()) {
    throw ConfigError(fmt::format("expected an address like mpi:3.1, found {:?}", text));
  }
  return site;
}

std::vector<std::byte> encode(const PacketHead& head, std::span<const std::byte> payload) {
  std::vector<std::byte> bytes(packet_head_bytes + payload.size());
  ByteWriter(bytes)
      .put(static_cast<std::uint16_t>(head.kind))
      .put(head.from_slot)
      .put(head.to_slot)
      .put(std::uint16_t{0})
      .put(head.tag)
      .put(head.transfer)
      .put(head.bytes)
      .put_bytes(payload);
  return bytes;
}

PacketHead decode_packet_head(std::span<const std::byte> packet) {
  ByteReader reader(packet);
  PacketHead head;
  head.kind = static_cast<PacketKind>(reader.take<std::uint16_t>());
  head.from_slot = reader.take<std::uint16_t>();
  head.to_slot = reader.take<std::uint16_t>();
  reader.skip(sizeof(std::uint16_t));
  head.tag = reader.take<std::uint32_t>();
  head.transfer = reader.take<std::uint32_t>();
  head.bytes = reader.take<std::uint64_t>();
  return head;
}

std::vector<std::byte> encode(const std::vector<Unfinished>& unfinished) {
  std::vector<std::byte> bytes(unfinished.size() * unfinished_bytes);
  ByteWriter writer(bytes);
  for (const Unfinished& each : unfinished) {
    writer.put(each.sent).put(each.transfer).put(std::uint32_t{0});
  }
  return bytes;
}

std::vector<Unfinished> decode_unfinished(std::span<const std::byte> payload) {
  if (payload.size() % unfinished_bytes != 0) {
    throw ProtocolError(fmt::format("expected a goodbye in entries of {} bytes, found {} bytes",
                                    unfinished_bytes, payload.size()));
  }
  std::vector<Unfinished> unfinished;
  ByteReader reader(payload);
  while (reader.remaining() > 0) {
    const auto sent = reader.take<std::uint64_t>();
    unfinished.push_back({.sent = sent, .transfer = reader.take<std::uint32_t>()});
    reader.skip(sizeof(std::uint32_t));
  }
  return unfinished;
}

}  // namespace syncopate::mpi
