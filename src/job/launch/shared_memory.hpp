#pragma once

#include <cstddef>
#include <span>

namespace syncopate::cli {

/// Memory, zero at first, that this process shares with those that it forks from now on. It has no
/// name, so nobody else can find it, and it is gone when the last of them has ended, however they end.
class SharedMemory {
 public:
  /// Nothing.
  SharedMemory() = default;
  /// Errors: DataError, when the system has no room for it.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace syncopate::cli
