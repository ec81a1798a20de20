#include "report/run_folder.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {

void RunFolder::create() const {
  if (std::filesystem::exists(config())) {
    throw ConfigError(fmt::format(
        "{} already holds a run; choose another --run-dir, or go on with it by --resume {}",
        root_.string(), root_.string()));
  }
  try {
    std::filesystem::create_directories(checkpoints());
    std::filesystem::create_directories(root_ / "workers");
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(
        fmt::format("cannot make the run folder {}: {}", root_.string(), error.code().message()));
  }
}

std::filesystem::path RunFolder::worker_log(Rank rank) const {
  return root_ / "workers" / fmt::format("{}.jsonl", rank.value);
}

void keep_rounds_up_to(const std::filesystem::path& log, std::uint64_t round) {
  if (!std::filesystem::exists(log)) {
    return;
  }
  std::istringstream lines(read_file(log));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object() && object.value("round", std::uint64_t{0}) <= round) {
      kept += line + '\n';
    }
  }
  write_file(log, kept);
}

}  // namespace syncopate
