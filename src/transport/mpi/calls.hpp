#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace syncopate::mpi {

/// The MPI calls that this transport needs. A module implements them; only the module is built with
/// MPI.
///
/// Threads: any, one at a time, except `allreduce` (`MPI_THREAD_MULTIPLE`); `finalize` from the
///          thread that made this object.
/// Errors:  every call except `abort`: InternalError, with MPI's own message.
class Calls {
 public:
  /// An operation under way. MPI borrows its buffer until `test` reports the end.
  struct Request {
    std::uintptr_t value = 0;
  };
  /// The result of an operation; for a receive, also the sender and the size.
  struct Done {
    bool cancelled = false;
    std::uint32_t from = 0;
    std::size_t bytes = 0;
  };
  /// Two communicators keep packets and pieces of large messages apart.
  enum class Channel { packets, pieces };
  enum class Ranks { all, reducing };

  virtual ~Calls() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  /// "Open MPI 4.1.4".
  virtual std::string library() const = 0;
  /// The greatest tag that is allowed.
  virtual std::uint32_t greatest_tag() const = 0;

  /// Collective and blocking, for the start: gathers one number from each rank.
  virtual void gather(std::uint64_t mine, std::span<std::uint64_t> all) = 0;
  /// Also collective and blocking: makes the group `Ranks::reducing` of the ranks that take part.
  /// Returns the number of its ranks.
  virtual std::uint32_t form_reducing_group(bool takes_part) = 0;

  virtual Request send(Channel channel, std::uint32_t to, std::uint32_t tag,
                       std::span<const std::byte> bytes) = 0;
  /// Receives from any rank if `from` is empty.
  virtual Request receive(Channel channel, std::optional<std::uint32_t> from, std::uint32_t tag,
                          std::span<std::byte> into) = 0;
  virtual Request barrier(Ranks ranks) = 0;
  /// Makes progress; empty while the operation is under way.
  virtual std::optional<Done> test(Request& request) = 0;
  /// Cancels a receive for which nothing has arrived; `test` reports how it ended.
  virtual void cancel(Request& request) = 0;

  /// Replaces `values` by their sum over `Ranks::reducing`, and blocks until all ranks have it.
  /// Shape: the same length on every rank; at most 2³⁰. Any thread, in parallel to all other calls.
  /// MPI's blocking allreduce is faster than one that `test` polls.
  virtual void allreduce(std::span<float> values) = 0;

  virtual void finalize() = 0;
  virtual void abort(int status) noexcept = 0;
};

/// The function that a module exports under this name: it starts MPI and returns its calls, which
/// the caller owns. Errors: InternalError if MPI does not start, or if it allows calls from only
/// one thread.
using MakeCalls = Calls* (*)();
inline constexpr const char* make_calls_name = "syncopate_mpi_calls";

}  // namespace syncopate::mpi
