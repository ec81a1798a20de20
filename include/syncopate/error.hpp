#pragma once

#include <syncopate.h>

#include <stdexcept>
#include <string>

namespace syncopate {
// The library has internal classes of the same names; this namespace keeps them separate.
inline namespace v0 {

/// The base class of all errors that Syncopate throws. A message is one line with the expected and
/// the found value and the remedy; `docs/reference/errors.md` lists the messages.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invalid or contradictory option, argument or order of calls.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file or memory is missing, damaged, or cannot be written.
class DataError : public Error {
 public:
  using Error::Error;
};

/// Another process of the job has died, or the connection to it is broken.
class PeerLost : public Error {
 public:
  using Error::Error;
};

/// A time limit has passed. The message names the missing worker.
class TimedOut : public Error {
 public:
  using Error::Error;
};

/// A gradient is not finite, and the job is configured to stop in this case.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Another process uses another protocol version, or sent damaged bytes.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

/// The user has ended the job, or it ended elsewhere.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// A bug of Syncopate: please report it.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {

/// Throws the error that a call of the C interface returned. Errors: the class that belongs to
/// `status`, unless that is SYNCOPATE_OK.
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

/// Returns the handle of an object. Errors: ConfigError if the object was moved from.
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
