#pragma once

#include "transport/shm/segment.hpp"
#include "wire/handshake.pb.h"

namespace syncopate::shm {

/// A segment's address, as a handshake carries it.
wire::SharedSegment announce(const SegmentAddress& address);

SegmentAddress read(const wire::SharedSegment& segment);

}  // namespace syncopate::shm
