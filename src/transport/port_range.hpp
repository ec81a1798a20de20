#pragma once

#include <cstdint>

namespace syncopate {

/// The ports at which a node may listen, both ends included. 0 and 0: a free one that the system
/// chooses.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  explicit operator bool() const { return last != 0; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

}  // namespace syncopate
