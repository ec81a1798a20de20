#pragma once

#include <filesystem>
#include <string>

#include "base/time.hpp"

namespace syncopate {

/// Where the ranks that a launcher started on one host find the coordinator: a file that this user
/// alone can read, in a folder that is this user's alone.
class Rendezvous {
 public:
  struct Place {
    std::string address;  ///< where the coordinator listens
    std::string token;    ///< of the job

    friend bool operator==(const Place&, const Place&) = default;
  };

  /// `job` names the file, in `folder`, which is made where it is not there.
  /// Errors: DataError, where the folder cannot be made, or is another user's.
  Rendezvous(const std::filesystem::path& folder, const std::string& job);

  /// In the system's folder for temporary files.
  explicit Rendezvous(const std::string& job);

  /// Removes what `publish` wrote.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Errors: DataError.
  void publish(const Place& place);

  /// Waits until a process that is still alive has published a place.
  /// Errors: TimedOut.
  Place await(Duration limit) const;

 private:
  const std::filesystem::path file_;
  bool published_ = false;
};

}  // namespace syncopate
