#include "transport/shm/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors.hpp"
#include "base/machine.hpp"

namespace syncopate::shm {
namespace {

constexpr auto seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const std::string& what, int error) {
  throw DataError(fmt::format("{}: {}", what, std::strerror(error)));
}

/// A number that no other process of the host knows.
std::array<std::uint64_t, 2> new_secret() {
  std::array<std::uint64_t, 2> secret{};
  if (::getrandom(secret.data(), sizeof secret, 0) != sizeof secret) {
    fail("no random number for a segment of shared memory", errno);
  }
  return secret;
}

/// Checks the limit on the size of files: exceeding it would end the process.
void check_file_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
    throw DataError(fmt::format(
        "shared memory needs files of {} bytes, and the limit of this process (ulimit -f) is {}",
        bytes, limit.rlim_cur));
  }
}

}  // namespace

Segment Segment::create(std::size_t bytes) {
  check_file_limit(head + bytes);
  const int descriptor = ::memfd_create("syncopate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    fail("no shared memory", errno);
  }
  if (::ftruncate(descriptor, static_cast<off_t>(head + bytes)) != 0 ||
      ::fcntl(descriptor, F_ADD_SEALS, seals) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail(fmt::format("no shared memory of {} bytes", bytes), error);
  }
  Segment segment = map(descriptor, head + bytes);
  segment.ensure(0, head);
  const auto secret = new_secret();
  std::memcpy(segment.mapped_.data(), secret.data(), sizeof secret);
  return segment;
}

Segment Segment::open(const SegmentAddress& address) {
  if (address.machine != machine_identity()) {
    throw DataError("the shared memory belongs to another machine");
  }
  const std::string name = fmt::format("/proc/{}/fd/{}", address.pid, address.descriptor);
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    fail(fmt::format("the shared memory of process {} cannot be opened", address.pid), errno);
  }
  struct stat found {};
  const bool sealed = (::fcntl(descriptor, F_GET_SEALS) & seals) == seals;
  if (!sealed || ::fstat(descriptor, &found) != 0 || found.st_size < off_t{head}) {
    ::close(descriptor);
    throw DataError(fmt::format("{} is not a segment of shared memory", name));
  }
  // Root could map it, but its peer could not map root's: sharing takes both directions.
  if (found.st_uid != ::geteuid()) {
    ::close(descriptor);
    throw DataError(fmt::format("{} belongs to another user", name));
  }
  Segment segment = map(descriptor, static_cast<std::size_t>(found.st_size));
  if (std::memcmp(segment.mapped_.data(), address.secret.data(), sizeof address.secret) != 0) {
    throw DataError(fmt::format("{} is another segment of shared memory", name));
  }
  return segment;
}

Segment Segment::map(int descriptor, std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    fail(fmt::format("shared memory of {} bytes cannot be mapped", bytes), error);
  }
  return {descriptor, {static_cast<std::byte*>(memory), bytes}};
}

Segment::Segment(Segment&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      mapped_(std::exchange(other.mapped_, {})) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Segment::~Segment() {
  if (descriptor_ >= 0) {
    ::munmap(mapped_.data(), mapped_.size());
    ::close(descriptor_);
  }
}

SegmentAddress Segment::address() const {
  SegmentAddress address{.machine = machine_identity(),
                         .pid = static_cast<std::uint32_t>(::getpid()),
                         .descriptor = static_cast<std::uint32_t>(descriptor_)};
  std::memcpy(address.secret.data(), mapped_.data(), sizeof address.secret);
  return address;
}

void Segment::reserve(std::size_t begin, std::size_t bytes) const {
  ensure(head + begin, bytes);
}

void Segment::ensure(std::size_t from, std::size_t bytes) const {
  if (::fallocate(descriptor_, 0, static_cast<off_t>(from), static_cast<off_t>(bytes)) != 0) {
    fail(fmt::format("no {} bytes of shared memory", bytes), errno);
  }
}

void Segment::release(std::size_t begin, std::size_t bytes) const noexcept {
  // If the system refuses, the memory stays allocated until the segment is destroyed.
  ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(head + begin), static_cast<off_t>(bytes));
}

}  // namespace syncopate::shm
