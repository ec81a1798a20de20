#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/launch/launcher.hpp"
#include "spec/config.hpp"

namespace syncopate::cli {

/// The parsed command line of `syncopate doctor`.
struct DoctorCommand {
  std::string data = "fashion-mnist";
  std::filesystem::path data_dir;  ///< empty: the dataset's default folder
  std::filesystem::path runs = "runs";
  TransportKind transport = TransportKind::automatic;  ///< of a launched job
  std::string join;   ///< the address of a coordinator; empty: no check of it
  std::string token;  ///< of its job
  std::optional<Launch> launch = {};
  Duration patience = std::chrono::seconds(20);  ///< time limit of waits for other ranks
  bool json = false;
};

}  // namespace syncopate::cli
