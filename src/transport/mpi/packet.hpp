#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncopate::mpi {

/// Where a node is: nodes of one rank are told apart by their slots, numbers that are never used again.
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
  large,    ///< announces a message of `bytes`, whose pieces will come as `transfer`
  grant,    ///< pieces of `transfer` may come, as far as `bytes`
  drop,     ///< no more pieces of `transfer` are wanted
  credit,   ///< so many bytes of small messages have been taken
  goodbye,  ///< the last packet: nothing more will come. Payload: `Unfinished`, again and again
};

/// The head of a packet. On the wire, 24 bytes: u16 kind, u16 from_slot, u16 to_slot, u16 zero, u32 tag,
/// u32 transfer, u64 bytes.
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

/// A large message that ends with the stream: `sent` bytes of it have left. On the wire, 16 bytes:
/// u64 sent, u32 transfer, u32 zero.
struct Unfinished {
  std::uint64_t sent = 0;
  std::uint32_t transfer = 0;

  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};

/// Messages up to this size travel in one packet, copied on either side; longer ones in pieces, from and to
/// where they lie, when their receiver asks for them. Measured: pieces pay from here on.
inline constexpr std::size_t small_limit = 32 * 1024;
inline constexpr std::size_t packet_limit = packet_head_bytes + small_limit;
inline constexpr std::size_t piece_bytes = std::size_t{1} << 20;
/// Pieces that are asked for ahead.
inline constexpr std::size_t pieces_ahead = 4;
/// Bytes of small messages that may be on their way to a node that does not take them.
inline constexpr std::size_t small_window = std::size_t{1} << 20;
/// Large messages of one stream that may be announced.
inline constexpr std::size_t announced_limit = 16;

/// A whole packet: the head and then the payload.
std::vector<std::byte> encode(const PacketHead& head, std::span<const std::byte> payload);
/// The head at the beginning of a packet. Errors: ProtocolError, where the packet is shorter.
PacketHead decode_packet_head(std::span<const std::byte> packet);

std::vector<std::byte> encode(const std::vector<Unfinished>& unfinished);
/// Errors: ProtocolError.
std::vector<Unfinished> decode_unfinished(std::span<const std::byte> payload);

}  // namespace syncopate::mpi
