#pragma once

#include <cstddef>

#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"

namespace syncopate::shm {

/// Two rings between two processes, one each way, in a segment of their own.
class Duplex {
 public:
  /// Bytes of a ring: as much as stays in a core's cache beside the message that it carries.
  static constexpr std::size_t capacity = std::size_t{1} << 20;

  /// For the process that makes them, and for the other. Errors: DataError, of `Segment`.
  static Duplex create();
  static Duplex open(const SegmentAddress& address);

  SegmentAddress address() const { return segment_.address(); }
  Ring& outgoing() { return outgoing_; }
  Ring& incoming() { return incoming_; }

 private:
  Duplex(Segment segment, std::size_t outgoing, std::size_t incoming);

  Segment segment_;
  Ring outgoing_;
  Ring incoming_;
};

}  // namespace syncopate::shm
