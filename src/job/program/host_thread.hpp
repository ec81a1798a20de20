#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "job/launch/own_place.hpp"
#include "job/launch/program_environment.hpp"
#include "job/launch/rendezvous.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// The coordinator of programs that another launcher than `syncopate run` has started: a thread in
/// the process of one of them.
class ProgramHostThread {
 public:
  struct Options {
    std::string address = "127.0.0.1:0";  ///< HOST:PORT where it listens; port 0: a free one
    OwnPlace place = {};                  ///< of servers
    std::string key = {};      ///< that the user has given to all hosts; empty: a new one
    bool unencrypted = false;  ///< allows addresses beyond loopback
  };

  explicit ProgramHostThread(std::uint32_t programs) : ProgramHostThread(programs, Options()) {}
  /// Errors: ConfigError, for an address that is in use or not allowed.
  ProgramHostThread(std::uint32_t programs, const Options& options);
  /// Waits until every program has left, or this one is interrupted (`interruption`), which ends
  /// the job.
  ~ProgramHostThread();
  ProgramHostThread(const ProgramHostThread&) = delete;
  ProgramHostThread& operator=(const ProgramHostThread&) = delete;

  const Rendezvous::Place& place() const { return place_; }
  /// Programs on this host find the place by a file. `job` distinguishes jobs of this user on it.
  /// Errors: DataError, where the file cannot be written.
  void publish(const std::string& job);

 private:
  void run(std::uint32_t programs, const Options& options);
  void coordinate(std::uint32_t programs, const Options& options);

  Rendezvous::Place place_;
  RealWorld world_;
  std::optional<Rendezvous> rendezvous_;
  std::atomic<bool> interrupted_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<Task> task_;  ///< last: it uses the members above
};

}  // namespace syncopate
