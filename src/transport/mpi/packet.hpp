#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncopate::mpi {

/// The location of a node: its rank, and a slot that distinguishes the nodes of one rank and is
/// never reused.
struct Site {
  std::uint32_t rank = 0;
  std::uint16_t slot = 0;

  friend auto operator<=>(const Site&, const Site&) = default;
};

/// Node 0.
inline constexpr Site coordinator_site{};

/// "mpi:3.1", for slot 1 of rank 3.
std::string to_string(const Site& site);
/// Errors: ConfigError.
Site parse_site(const std::string& text);

enum class PacketKind : std::uint16_t {
  hello,  ///< payload: a frame of `wire::Hello`; so for the next two
  welcome,
  refused,
  small,    ///< payload: a message
  large,    ///< announces a message of `bytes`; its pieces follow as `transfer`
  grant,    ///< the sender may send pieces of `transfer` up to `bytes`
  drop,     ///< the receiver takes no more pieces of `transfer`
  credit,   ///< the receiver has taken `bytes` of small messages
  goodbye,  ///< the last packet of a stream. Payload: a list of `Unfinished`
};

/// The head of a packet. On the wire, 24 bytes: u16 kind, u16 from_slot, u16 to_slot, u16 zero,
/// u32 tag, u32 transfer, u64 bytes.
struct PacketHead {
  PacketKind kind{};
  std::uint16_t from_slot = 0;
  std::uint16_t to_slot = 0;
  std::uint32_t tag = 0;
  std::uint32_t transfer = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const PacketHead&, const PacketHead&) = default;
};
inline constexpr std::size_t packet_head_bytes = 24;

/// A large message that the end of the stream cuts off: `sent` bytes of it have left. On the wire,
/// 16 bytes: u64 sent, u32 transfer, u32 zero.
struct Unfinished {
  std::uint64_t sent = 0;
  std::uint32_t transfer = 0;

  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};

/// Messages up to this size travel in one packet, copied on both sides; longer ones travel in
/// pieces, without a copy, when their receiver asks for them. By measurement, pieces are faster
/// above this size.
inline constexpr std::size_t small_limit = 32 * 1024;
inline constexpr std::size_t packet_limit = packet_head_bytes + small_limit;
inline constexpr std::size_t piece_bytes = std::size_t{1} << 20;
/// Number of pieces that a receiver requests in advance.
inline constexpr std::size_t pieces_ahead = 4;
/// Bytes of small messages that may be on their way to a node before it takes them.
inline constexpr std::size_t small_window = std::size_t{1} << 20;
/// Number of large messages that a stream may announce in advance.
inline constexpr std::size_t announced_limit = 16;

/// A whole packet: the head and then the payload.
std::vector<std::byte> encode(const PacketHead& head, std::span<const std::byte> payload);
/// The head at the beginning of a packet. Errors: ProtocolError if the packet is shorter.
PacketHead decode_packet_head(std::span<const std::byte> packet);

std::vector<std::byte> encode(const std::vector<Unfinished>& unfinished);
/// Errors: ProtocolError.
std::vector<Unfinished> decode_unfinished(std::span<const std::byte> payload);

}  // namespace syncopate::mpi
