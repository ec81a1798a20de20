#include "transport/shm/duplex.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate::shm {
namespace {

constexpr std::size_t ring_bytes = Ring::bytes_for(Duplex::capacity);

}  // namespace

Duplex Duplex::create() {
  Segment segment = Segment::create(2 * ring_bytes);
  return {std::move(segment), 0, ring_bytes};
}

Duplex Duplex::open(const SegmentAddress& address) {
  Segment segment = Segment::open(address);
  if (segment.bytes().size() < 2 * ring_bytes) {
    throw DataError("the rings of another process are shorter than this version's");
  }
  return {std::move(segment), ring_bytes, 0};
}

Duplex::Duplex(Segment segment, std::size_t outgoing, std::size_t incoming)
    : segment_(std::move(segment)),
      outgoing_(segment_.bytes().subspan(outgoing, ring_bytes), capacity),
      incoming_(segment_.bytes().subspan(incoming, ring_bytes), capacity) {}

}  // namespace syncopate::shm
