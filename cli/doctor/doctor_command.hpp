#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/launch/launcher.hpp"
#include "job/spec/config.hpp"

namespace syncopate::cli {

/// `syncopate doctor`, read and checked.
struct DoctorCommand {
  std::string data = "fashion-mnist";
  std::filesystem::path data_dir;  ///< empty: the dataset's default place
  std::filesystem::path runs = "runs";
  TransportKind transport = TransportKind::automatic;  ///< of a launched job
  std::string join;   ///< where a coordinator listens; empty: none is asked
  std::string token;  ///< of its job
  std::optional<Launch> launch = {};
  Duration patience = std::chrono::seconds(20);  ///< for other ranks
  bool json = false;
};

}  // namespace syncopate::cli
