#pragma once

#include <filesystem>
#include <string>

#include "base/time.hpp"

namespace syncopate {

/// The random key of a job that was started without one, in a file that only its user may read. The
/// destructor removes the file: the key is of no use after the job.
class KeyFile {
 public:
  /// Errors: DataError if the file cannot be written.
  explicit KeyFile(const std::filesystem::path& folder);
  ~KeyFile();
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  const std::string& key() const { return key_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string key_;
  std::filesystem::path path_;
};

/// A file from which the ranks of a launcher on one host read the coordinator's address. Only this
/// user can read the file and its folder.
class Rendezvous {
 public:
  struct Place {
    std::string address;  ///< of the coordinator
    std::string token;    ///< of the job

    friend bool operator==(const Place&, const Place&) = default;
  };

  /// `job` is the name of the file in `folder`, which is made if it does not exist. Errors:
  /// DataError if the folder cannot be made or belongs to another user.
  Rendezvous(const std::filesystem::path& folder, const std::string& job);

  /// The same in the system's folder for temporary files.
  explicit Rendezvous(const std::string& job);

  /// Removes the file that `publish` has written.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Errors: DataError.
  void publish(const Place& place);

  /// Waits until a running process has published its address. Errors: TimedOut, which ends with
  /// `advice` for ranks on several hosts.
  Place await(Duration limit, const std::string& advice = "use --transport mpi") const;

 private:
  const std::filesystem::path file_;
  bool published_ = false;
};

}  // namespace syncopate
