#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "transport/transport.hpp"

namespace syncopate::mpi {

/// The libraries are not binary compatible, so each has a module of its own.
enum class Library { open_mpi, mpich };

struct ListenOptions {
  std::string token;          ///< the secret that every node of the job knows
  bool shared_memory = true;  ///< among the nodes of a host
};

struct JoinOptions {
  std::string token;                          ///< as node 0 has it
  std::chrono::milliseconds timeout{60'000};  ///< for node 0 to appear and to answer
  bool shared_memory = true;                  ///< among the nodes of a host
};

/// This process among the ranks that a launcher started. A process has at most one session, and
/// does not fork once it has one.
///
/// Threads:  any, at any time; `start`, `barrier` and the destructor are collective: all ranks call
///           them, in the same order.
/// Lifetime: it outlives its transports, which outlive their transfers.
/// Loss:     MPI ends the job if a process dies; a node that closes, or is given up, is lost to the
///           others as with any transport. MPI returns a buffer only when both sides have moved the
///           piece (1 MiB) that they began: if a process hangs in the middle of a piece, `Transfer`
///           waits until that process continues or the job ends.
class Session {
 public:
  /// Leaves MPI. Blocks until all ranks do, so a rank that failed calls `abort` instead.
  virtual ~Session() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  /// "Open MPI 4.1.4"
  virtual std::string library() const = 0;
  /// The host of each rank; hosts are numbered from 0 in the order of their lowest rank.
  virtual std::vector<std::uint32_t> hosts() const = 0;

  /// Opens node 0 of a job. Errors: InternalError on any rank except 0, or if there is a node 0
  /// already.
  virtual std::unique_ptr<Transport> listen(const ListenOptions& options) = 0;

  /// Opens a node with the number that node 0 gives it. Every rank, including rank 0, may open one
  /// or several.
  /// Errors: TimedOut; ConfigError, with the reason, if node 0 refuses it.
  virtual std::unique_ptr<Transport> join(const JoinOptions& options) = 0;

  /// Blocks until all ranks are here, without taking a core. Errors: TimedOut, after which the
  /// caller may only call `abort` and the destructor.
  virtual void barrier(TimePoint deadline) = 0;

  /// Ends all ranks at once, with `status` if the launcher passes it on. Prints nothing.
  [[noreturn]] virtual void abort(int status) = 0;
};

struct SessionOptions {
  std::uint32_t expected_size;  ///< ranks, by the launcher's environment
  bool allreduce;               ///< this rank takes part in `Transport::native_allreduce`
  /// The folder of the modules; empty: beside the program, or where it was installed.
  std::string modules{};
};

/// True if `start` would find the module of this library. `modules`: as in `SessionOptions`.
bool is_built(Library library, const std::string& modules);

/// Loads the module and starts MPI.
///
/// Errors: ConfigError if there is no module for the library (the message names the package to
///         install), the module does not load, or the library sees another number of ranks than the
///         launcher started.
std::unique_ptr<Session> start(Library library, const SessionOptions& options);

}  // namespace syncopate::mpi
