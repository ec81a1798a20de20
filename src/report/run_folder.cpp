#include "report/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void RunFolder::create(bool has_checkpoints) const {
  try {
    if (std::filesystem::exists(config())) {
      throw ConfigError(
          fmt::format("{} already holds a run; choose another --run-dir, or go on with a run of "
                      "syncopate train by "
                      "--resume {}",
                      root_.string(), root_.string()));
    }
    if (has_checkpoints) {
      std::filesystem::create_directories(checkpoints());
    }
    std::filesystem::create_directories(root_ / "workers");
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(
        fmt::format("cannot make the run folder {}: {}", root_.string(), error.code().message()));
  }
}

std::filesystem::path RunFolder::worker_log(Rank rank) const {
  return root_ / "workers" / fmt::format("{}.jsonl", rank.value);
}

std::vector<Rank> RunFolder::logged_workers() const {
  const std::filesystem::path folder = worker_log(Rank{0}).parent_path();
  std::vector<Rank> workers;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto rank = number_in<std::uint32_t>(entry->path().stem().string());
    if (rank && entry->path() == worker_log(Rank{*rank})) {
      workers.push_back(Rank{*rank});
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw DataError(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  }
  std::ranges::sort(workers);
  return workers;
}

std::filesystem::path RunFolder::events(double wall_time) const {
  return root_ / fmt::format("events.out.tfevents.{:010.0f}.syncopate", wall_time);
}

std::filesystem::path RunFolder::spans_of(std::string_view role, Rank rank) const {
  return spans() / fmt::format("{}-{}.jsonl", role, rank.value);
}

void keep_rounds_up_to(const std::filesystem::path& log, std::uint64_t round) {
  if (!is_there(log)) {
    return;
  }
  std::istringstream lines(read_file(log));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto logged = object.is_object() ? object.find("round") : object.end();
    if (logged != object.end() && logged->is_number_unsigned() && *logged <= round) {
      kept += line + '\n';
    }
  }
  write_file(log, kept);
}

void PaceLog::decided(const Pace& pace, Duration moment) {
  Round& round = rounds_[pace.worker];
  round.decisions.push_back({.pace = pace, .moment = moment, .steps_before = round.steps});
}

void PaceLog::stepped(Rank worker, const StepReport& report) {
  Round& round = rounds_[worker];
  round.steps = report.steps;
  round.samples += report.samples;
  if (report.synchronizes) {
    write(round, /*synchronized=*/true);
    round = {};
  }
}

void PaceLog::finish() {
  for (const auto& [rank, round] : rounds_) {
    write(round, /*synchronized=*/false);
  }
  rounds_.clear();
  lines_.flush();
}

void PaceLog::write(const Round& round, bool synchronized) {
  for (const Decision& decision : round.decisions) {
    const Pace& pace = decision.pace;
    lines_.write({{"worker", pace.worker.value},
                  {"round", pace.round},
                  {"seconds", to_seconds(decision.moment)},
                  {"steps_before", decision.steps_before},
                  {"planned_steps", pace.sync_after ? Json(*pace.sync_after) : Json(nullptr)},
                  {"step_samples", pace.step_samples},
                  {"reason", std::string(words_for(pace.reason))},
                  {"taken_steps", synchronized ? Json(round.steps) : Json(nullptr)},
                  {"round_samples", synchronized ? Json(round.samples) : Json(nullptr)}});
  }
}

}  // namespace syncopate
