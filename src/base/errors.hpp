#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// Everything that Syncopate throws on purpose derives from this.
///
/// A message names the expected and the found value, the location, and a remedy.
/// `docs/reference/errors.md` lists which component throws which error, and the exit status of
/// each.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user asked for something impossible or contradictory: an option, a configuration, a cluster.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file is missing, damaged, of another format, or cannot be written.
class DataError : public Error {
 public:
  using Error::Error;
};

/// Another node died, or its connection broke, before an operation with it ended.
class PeerLost : public Error {
 public:
  PeerLost(NodeId peer, const std::string& message) : Error(message), peer_(peer) {}
  NodeId peer() const { return peer_; }

 private:
  NodeId peer_;
};

/// The coordinator has decided that a member is lost: the message names the member.
class MemberLost : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

/// A deadline passed.
class TimedOut : public Error {
 public:
  using Error::Error;
};

/// A peer did not send, or did not take, a message before a deadline. The peer's number means
/// nothing to a user: the coordinator names the node.
class PeerTimedOut : public TimedOut {
 public:
  PeerTimedOut(NodeId peer, const std::string& message) : TimedOut(message), peer_(peer) {}
  NodeId peer() const { return peer_; }

 private:
  NodeId peer_;
};

/// A wait of a member for others, as it is reported.
struct LongWait {
  std::vector<Rank> ranks;  ///< missing ranks of the job; empty: the wait is for no worker
  std::string operation;    ///< "allgather"
  Duration waited{};
  Duration usual{};             ///< of such waits
  Duration limit{};             ///< the shortest limit, which holds while no worker computes
  std::vector<Rank> servers{};  ///< servers of the job that have not answered
};

/// A wait for other members took longer than its limit.
class RanksMissing : public TimedOut {
 public:
  RanksMissing(const std::string& message, LongWait wait)
      : TimedOut(message), wait_(std::move(wait)) {}
  const LongWait& wait() const { return wait_; }

 private:
  LongWait wait_;
};

/// The membership changed under an operation that was bound to one view.
class ViewChanged : public Error {
 public:
  using Error::Error;
};

/// A worker's gradient or loss is not a number, and the user wanted training to stop there.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Another node violated the protocol: another version, size, type or order.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

/// A message had another size than its receiver expected.
class WrongSize : public ProtocolError {
 public:
  WrongSize(const std::string& what, std::size_t expected, std::size_t found)
      : ProtocolError(what), expected_(expected), found_(found) {}

  /// In bytes.
  std::size_t expected() const { return expected_; }
  std::size_t found() const { return found_; }

 private:
  std::size_t expected_;
  std::size_t found_;
};

/// The work was cancelled, by the user or because the job ended elsewhere.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// An invariant of Syncopate itself does not hold: a bug, to be reported.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace syncopate
