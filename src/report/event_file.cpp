#include "report/event_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "report/tensorboard_event.pb.h"

namespace syncopate {
namespace {

/// Castagnoli's polynomial, as in iSCSI.
using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

template <class Value>
std::string packed(Value value) {
  std::array<std::byte, sizeof(Value)> bytes{};
  ByteWriter(bytes).put(value);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t mask = 0xA282EAD8;
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t checksum = crc.checksum();
  return ((checksum >> 15) | (checksum << 17)) + mask;
}

EventFile::EventFile(const std::filesystem::path& path, double wall_time)
    : path_(path.string()),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) {
    throw DataError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  }
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  append(event.SerializeAsString());
}

EventFile::~EventFile() {
  ::close(descriptor_);
}

void EventFile::write(double wall_time, std::int64_t step, std::span<const Scalar> scalars) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(scalar.tag);
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  append(event.SerializeAsString());
}

void EventFile::append(const std::string& message) {
  const std::string length = packed(std::uint64_t{message.size()});
  const std::string record =
      length + packed(masked_crc32c(length)) + message + packed(masked_crc32c(message));
  const off_t whole = ::lseek(descriptor_, 0, SEEK_END);
  const ssize_t written = ::write(descriptor_, record.data(), record.size());
  if (written == static_cast<ssize_t>(record.size())) {
    return;
  }
  const int reason = written < 0 ? errno : ENOSPC;
  const bool is_cut = written <= 0 || ::ftruncate(descriptor_, whole) == 0;
  throw DataError(fmt::format("cannot write {}{}: {}", path_,
                              is_cut ? "" : ", which ends in a part of a record",
                              std::strerror(reason)));
}

}  // namespace syncopate
