#include "runtime/control_link.hpp"

#include <string>

#include "base/errors.hpp"
#include "base/printable.hpp"

namespace syncopate {

std::exception_ptr to_error(const wire::Abort& abort) {
  const std::string reason = printable(abort.reason());
  switch (abort.kind()) {
    case wire::Abort::KIND_PEER_LOST:
      return std::make_exception_ptr(MemberLost(NodeId{abort.node()}, reason));
    case wire::Abort::KIND_TIMED_OUT: return std::make_exception_ptr(TimedOut(reason));
    case wire::Abort::KIND_CONFIG: return std::make_exception_ptr(ConfigError(reason));
    case wire::Abort::KIND_DATA: return std::make_exception_ptr(DataError(reason));
    case wire::Abort::KIND_NOT_FINITE: return std::make_exception_ptr(NotFinite(reason));
    default: return std::make_exception_ptr(Error(reason));
  }
}

wire::Abort to_abort(const std::exception& error) {
  wire::Abort abort;
  abort.set_reason(error.what());
  if (dynamic_cast<const ConfigError*>(&error)) {
    abort.set_kind(wire::Abort::KIND_CONFIG);
  } else if (dynamic_cast<const DataError*>(&error)) {
    abort.set_kind(wire::Abort::KIND_DATA);
  } else if (dynamic_cast<const NotFinite*>(&error)) {
    abort.set_kind(wire::Abort::KIND_NOT_FINITE);
  } else if (dynamic_cast<const TimedOut*>(&error)) {
    abort.set_kind(wire::Abort::KIND_TIMED_OUT);
    if (const auto* silent = dynamic_cast<const PeerTimedOut*>(&error)) {
      abort.set_node(silent->peer().value);
    }
  } else if (const auto* loss = dynamic_cast<const PeerLost*>(&error)) {
    abort.set_kind(wire::Abort::KIND_PEER_LOST);
    abort.set_node(loss->peer().value);
  }
  return abort;
}

}  // namespace syncopate
