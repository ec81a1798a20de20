#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "job/launch/program_environment.hpp"
#include "job/launch/rendezvous.hpp"
#include "runtime/real_world.hpp"

namespace syncopate {

/// The coordinator of programs that another launcher than `syncopate run` has started: a thread in
/// the process of worker 0. The others, on the same host, find it by a file.
class ProgramHostThread {
 public:
  /// `job` distinguishes jobs of this user on the host. Errors: DataError, where the file cannot
  /// be written.
  ProgramHostThread(std::uint32_t programs, const std::string& job);
  /// Waits until every program has left.
  ~ProgramHostThread();
  ProgramHostThread(const ProgramHostThread&) = delete;
  ProgramHostThread& operator=(const ProgramHostThread&) = delete;

  Rendezvous::Place place() const { return place_; }

 private:
  void run(std::uint32_t programs);

  Rendezvous::Place place_;
  RealWorld world_;
  Rendezvous rendezvous_;
  std::unique_ptr<Task> task_;  ///< last: it uses the members above
};

}  // namespace syncopate
