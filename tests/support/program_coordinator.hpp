#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace syncopate::test {

/// The coordinator of programs with a loop of their own, set up as by the command line.
class ProgramCoordinator {
 public:
  explicit ProgramCoordinator(std::uint32_t programs);
  ~ProgramCoordinator();

  const std::string& address() const;
  const std::string& key() const;

  /// Coordinates until all programs have left. Returns the message of the error that ended the job,
  /// or an empty text.
  std::string run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace syncopate::test
