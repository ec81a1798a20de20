#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace syncopate::shm {

/// What a process must know to map the segment of another.
struct SegmentAddress {
  std::string machine;  ///< of the process that made it, as `machine_identity` tells
  std::uint32_t pid = 0;
  std::uint32_t descriptor = 0;  ///< in that process
  std::array<std::uint64_t, 2>
      secret{};  ///< at the segment's beginning: a number may be used again

  friend bool operator==(const SegmentAddress&, const SegmentAddress&) = default;
};

/// Memory that other processes of this host can map, if they run as the same user.
///
/// It is an anonymous file (memfd): it has no name that others could guess or that would be left over,
/// needs no space on /dev/shm, and vanishes with the last process that holds it, however that ends.
/// Others open it through the file system of processes, which asks the kernel whether they may.
///
/// Pages take memory from their first use on; what is mapped and never used costs nothing.
class Segment {
 public:
  /// A new one, zero, with room for `bytes`. Errors: DataError, with the system's reason and what it
  /// was to hold.
  static Segment create(std::size_t bytes);
  /// That of another process. Errors: DataError, where it is on another machine, has ended, belongs to
  /// another user, or is no segment of that secret.
  static Segment open(const SegmentAddress& address);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  /// What follows the secret, aligned to pages.
  std::span<std::byte> bytes() const { return mapped_.subspan(head); }
  /// Of one that this process made.
  SegmentAddress address() const;

  /// Makes sure that the memory is there, so that its first use cannot fail. Errors: DataError.
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
