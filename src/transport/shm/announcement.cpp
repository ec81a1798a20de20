#include "transport/shm/announcement.hpp"

namespace syncopate::shm {

wire::SharedSegment announce(const SegmentAddress& address) {
  wire::SharedSegment out;
  out.set_machine(address.machine);
  out.set_pid(address.pid);
  out.set_file(address.descriptor);
  out.set_secret_begin(address.secret[0]);
  out.set_secret_end(address.secret[1]);
  return out;
}

SegmentAddress read(const wire::SharedSegment& segment) {
  return {.machine = segment.machine(),
          .pid = segment.pid(),
          .descriptor = segment.file(),
          .secret = {segment.secret_begin(), segment.secret_end()}};
}

}  // namespace syncopate::shm
