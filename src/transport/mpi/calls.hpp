#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace syncopate::mpi {

/// What this transport asks of MPI: all that a module holds, so that nothing else is built with an MPI.
///
/// Threads: any, one at a time, but for `sum` (`MPI_THREAD_MULTIPLE`); `finalize` from the thread that made it.
/// Errors:  each call but `abort`: InternalError, with MPI's own words.
class Calls {
 public:
  /// An operation under way, as the library knows it. Its buffer is lent until `test` says that it is done.
  struct Request {
    std::uintptr_t value = 0;
  };
  /// How an operation ended; of a receive, what came.
  struct Done {
    bool cancelled = false;
    std::uint32_t from = 0;
    std::size_t bytes = 0;
  };
  /// Communicators that keep packets from being taken for pieces of large messages.
  enum class Channel { packets, pieces };
  enum class Ranks { all, reducing };

  virtual ~Calls() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  /// "Open MPI 4.1.4".
  virtual std::string library() const = 0;
  /// The greatest tag that is allowed.
  virtual std::uint32_t greatest_tag() const = 0;

  /// Collective and blocking, for the start: a number of each rank.
  virtual void gather(std::uint64_t mine, std::span<std::uint64_t> all) = 0;
  /// Likewise: makes the group `Ranks::reducing` of those who say so; the number of its ranks.
  virtual std::uint32_t form_reducing_group(bool takes_part) = 0;

  virtual Request send(Channel channel, std::uint32_t to, std::uint32_t tag,
                       std::span<const std::byte> bytes) = 0;
  /// From anyone, where `from` is empty.
  virtual Request receive(Channel channel, std::optional<std::uint32_t> from, std::uint32_t tag,
                          std::span<std::byte> into) = 0;
  virtual Request barrier(Ranks ranks) = 0;
  /// Moves what is under way; empty as long as this is.
  virtual std::optional<Done> test(Request& request) = 0;
  /// Asks a receive to end that nothing has arrived for; `test` says how it ended.
  virtual void cancel(Request& request) = 0;

  /// Blocks until all of `Ranks::reducing` have the sum, in place. As long on every rank; at most 2³⁰. Any thread, beside
  /// all other calls: MPI's blocking allreduce are faster than those that it lets one test for.
  virtual void allreduce(std::span<float> values) = 0;

  virtual void finalize() = 0;
  virtual void abort(int status) noexcept = 0;
};

/// What a module exports by this name: starts MPI, and makes its calls, which the caller owns.
/// Errors: InternalError: MPI cannot be started, or allows one thread alone to call it.
using MakeCalls = Calls* (*)();
inline constexpr const char* make_calls_name = "syncopate_mpi_calls";

}  // namespace syncopate::mpi
