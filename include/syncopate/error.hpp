#pragma once

#include <syncopate.h>

#include <stdexcept>
#include <string>

namespace syncopate {
// The library has classes of the same names inside; this name keeps them apart.
inline namespace v0 {

/// Everything that Syncopate throws derives from this. A message is one line that names what was
/// expected, what was found, and what to do; `docs/reference/errors.md` has a page of them.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something impossible or contradictory: an option, an argument, an order of calls.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file or memory is missing, damaged, or cannot be written.
class DataError : public Error {
 public:
  using Error::Error;
};

/// Another process of the job has died, or its connection broke.
class PeerLost : public Error {
 public:
  using Error::Error;
};

/// A deadline passed. The message names who was missing.
class TimedOut : public Error {
 public:
  using Error::Error;
};

/// A gradient is not a number, and the job was to stop there.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Another process speaks another version, or sent damaged bytes.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

/// The user has ended the job, or it ended elsewhere.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// A bug of Syncopate, to be reported.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {

/// Throws what a call of the C interface reports. Errors: the class of `status`, unless it is
/// SYNCOPATE_OK.
inline void check(syncopate_status status) {
  if (status == SYNCOPATE_OK) {
    return;
  }
  const std::string message = syncopate_last_error();
  switch (status) {
    case SYNCOPATE_CONFIG_ERROR: throw ConfigError(message);
    case SYNCOPATE_DATA_ERROR: throw DataError(message);
    case SYNCOPATE_PEER_LOST: throw PeerLost(message);
    case SYNCOPATE_TIMED_OUT: throw TimedOut(message);
    case SYNCOPATE_NOT_FINITE: throw NotFinite(message);
    case SYNCOPATE_PROTOCOL_ERROR: throw ProtocolError(message);
    case SYNCOPATE_CANCELLED: throw Cancelled(message);
    case SYNCOPATE_INTERNAL_ERROR: throw InternalError(message);
    case SYNCOPATE_OK:
    case SYNCOPATE_ERROR: break;
  }
  throw Error(message);
}

/// The handle of an object. Errors: ConfigError, where the object was moved from.
template <class Owner>
typename Owner::element_type* handle_of(const Owner& owner, const char* name) {
  if (!owner) {
    throw ConfigError(std::string("this ") + name + " was moved from: use the one that it was " +
                      "moved to, or call syncopate::init first");
  }
  return owner.get();
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
