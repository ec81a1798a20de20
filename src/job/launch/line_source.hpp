#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "job/launch/descriptor.hpp"

namespace syncopate {

/// The lines of a pipe.
struct LineSource {
  LineSource(Descriptor from, LineSplitter::Sink sink)
      : descriptor(std::move(from)), lines(std::move(sink)) {}

  /// Reads the available bytes, at least a full pipe; returns false at its end. The length is
  /// limited, so that a process that writes without end cannot block the supervisor.
  bool read() {
    std::array<char, 64 * 1024> bytes;
    for (int left = 4; left > 0; --left) {
      const ssize_t count = ::read(descriptor.get(), bytes.data(), bytes.size());
      if (count > 0) {
        lines.add({bytes.data(), static_cast<std::size_t>(count)});
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
        lines.finish();
        return false;
      } else if (errno == EAGAIN) {
        return true;
      }
    }
    return true;
  }

  Descriptor descriptor;
  LineSplitter lines;
};

}  // namespace syncopate
