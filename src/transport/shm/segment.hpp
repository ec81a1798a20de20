#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace syncopate::shm {

/// The address by which another process maps a segment.
struct SegmentAddress {
  std::string machine;  ///< `machine_identity` of the process that made it
  std::uint32_t pid = 0;
  std::uint32_t descriptor = 0;           ///< in that process
  std::array<std::uint64_t, 2> secret{};  ///< at the segment's beginning; pids may be reused

  friend bool operator==(const SegmentAddress&, const SegmentAddress&) = default;
};

/// Memory that other processes of this host can map, if they run as the same user.
///
/// It is an anonymous file (memfd). It has no name that other users could guess or that a crash
/// could leave behind, needs no space on /dev/shm, and vanishes with the last process that holds
/// it. Other processes open it through /proc, where the kernel checks their rights.
///
/// A page takes memory from its first use on; mapped pages that are not used cost nothing.
class Segment {
 public:
  /// Creates a segment of `bytes` zeros. Errors: DataError, with the system's reason and the size.
  static Segment create(std::size_t bytes);
  /// Maps the segment of another process. Errors: DataError if the process is on another machine,
  /// has ended or belongs to another user, or if the segment has another secret.
  static Segment open(const SegmentAddress& address);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  /// The bytes after the secret, aligned to pages.
  std::span<std::byte> bytes() const { return mapped_.subspan(head); }
  /// Call this only for a segment that this process made.
  SegmentAddress address() const;

  /// Allocates the memory, so that its first use cannot fail. Errors: DataError.
  void reserve(std::size_t begin, std::size_t bytes) const;
  /// Gives memory back to the system; it is zero when it is used again.
  void release(std::size_t begin, std::size_t bytes) const noexcept;

 private:
  static constexpr std::size_t head = 4096;

  Segment(int descriptor, std::span<std::byte> mapped) : descriptor_(descriptor), mapped_(mapped) {}
  static Segment map(int descriptor, std::size_t bytes);
  void ensure(std::size_t from, std::size_t bytes) const;

  int descriptor_;
  std::span<std::byte> mapped_;
};

}  // namespace syncopate::shm
