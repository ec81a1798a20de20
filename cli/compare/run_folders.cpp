#include "cli/compare/run_folders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "spec/config_file.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json read_json(const fs::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const Json::exception&) {
    throw DataError(fmt::format(
        "{}: expected the JSON of a comparison, found other text; remove the file to run it again",
        path.string()));
  }
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
  }
}

bool holds_nothing(const fs::path& folder) {
  std::error_code error;
  const bool is = fs::is_empty(folder, error);
  if (error) {
    throw DataError(fmt::format("--out: cannot read {}: {}; choose another folder", folder.string(),
                                error.message()));
  }
  return is;
}

/// False for a run that the user interrupted.
bool is_whole(const Json& summary) {
  return summary.value("ended_because", "interrupted") != "interrupted";
}

}  // namespace

void RunFolders::claim(const Json& agreement) const {
  if (is_there(memory())) {
    const std::string differs =
        difference(agreement, read_json(memory()).value("agreement", Json()));
    if (!differs.empty()) {
      throw ConfigError(fmt::format("--out: {} holds another comparison: {}; choose another folder",
                                    root_.string(), differs));
    }
  } else if (is_there(root_) && !holds_nothing(root_)) {
    throw ConfigError(
        fmt::format("--out: {} is not empty, and holds no comparison", root_.string()));
  }
  make_folder(root_ / "runs");
  if (!is_there(memory())) {
    write_file(memory(), json_text(Json{{"agreement", agreement}}, 2) + "\n");
  }
}

Descriptor RunFolders::lock() const {
  const std::string path = (root_ / ".lock").string();
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    return lock;
  }
  const int why = errno;
  if (why == EWOULDBLOCK) {
    throw ConfigError(fmt::format(
        "--out: another comparison runs in {}; wait until it ends, or choose another folder",
        root_.string()));
  }
  throw DataError(fmt::format("cannot lock {}: {}", path, std::strerror(why)));
}

std::optional<RunFigures> RunFolders::figures(const Run& run, std::optional<double> target) const {
  if (is_there(beside(run, ".diverged.json"))) {
    return RunFigures{.learning_rate = run.point.learning_rate, .batch_size = run.point.batch_size};
  }
  const fs::path summary = this->run(run) / "summary.json";
  if (!is_there(summary)) {
    return std::nullopt;
  }
  const Json json = read_json(summary);
  return is_whole(json) ? std::optional(figures_of(json, target)) : std::nullopt;
}

void RunFolders::prepare(const Run& run, const TrainConfig& config) const {
  std::error_code error;
  fs::remove_all(this->run(run), error);
  if (error) {
    throw DataError(fmt::format("cannot clear {}: {}", this->run(run).string(), error.message()));
  }
  write_file(this->config(run), to_toml(config));
}

void RunFolders::note_divergence(const Run& run, const std::string& error) const {
  write_file(beside(run, ".diverged.json"), json_text(Json{{"error", error}}) + "\n");
}

fs::path RunFolders::beside(const Run& run, const char* suffix) const {
  return root_ / "runs" / (run.name() + suffix);
}

}  // namespace syncopate::cli
