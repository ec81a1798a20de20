#include "job/launch/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::cli {

SharedMemory::SharedMemory(std::size_t bytes) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw DataError(fmt::format("there is no room for {} bytes of shared memory ({})", bytes,
                                std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(address), bytes};
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
  }
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace syncopate::cli
