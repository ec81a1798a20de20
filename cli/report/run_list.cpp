#include "cli/report/run_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/report/log_lines.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Sets what all runs of a comparison share. The upper bound is always simulated, but it takes the
/// clock of the comparison, to stand beside runs in real time.
void take_from(const Json& comparison, RunRecord& run) {
  const Json agreement = comparison.value("agreement", Json::object());
  for (const char* key : {"network", "data", "split"}) {
    if (const std::string value = text_at(agreement, key); !value.empty()) {
      run.options[key] = value;
    }
  }
  const auto clock = comparison.find("virtual_time");
  if (clock != comparison.end() && clock->is_boolean()) {
    run.options["virtual_time"] = clock->get<bool>() ? "true" : "false";
  }
  run.cluster = fs::path(text_at(agreement, "cluster")).stem().string();
  const double target = number_at(comparison, "target_accuracy", -1);
  run.target = target > 0 ? std::optional(target) : run.target;
}

/// The runs of a comparison that has not ended, including those that try learning rates.
std::vector<RunRecord> unfinished(const fs::path& folder, const Json& comparison) {
  std::vector<fs::path> folders;
  if (fs::is_directory(file_status_of(folder / "runs"))) {
    std::error_code error;
    fs::directory_iterator entry(folder / "runs", error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (fs::is_directory(file_status_of(entry->path())) && is_run_folder(entry->path())) {
        folders.push_back(entry->path());
      }
    }
    if (error) {
      throw DataError(
          fmt::format("cannot read {}: {}", (folder / "runs").string(), error.message()));
    }
  }
  std::sort(folders.begin(), folders.end());
  std::vector<RunRecord> runs;
  for (const fs::path& one : folders) {
    runs.push_back(read_run(one));
    take_from(comparison, runs.back());
    runs.back().notes.push_back("belongs to a comparison that has not ended");
  }
  return runs;
}

/// Leaves out numbers of devices with which most seeds did not reach the target.
std::vector<TimeOnDevices> times_by_devices(const Json& comparison, const std::string& label) {
  std::vector<TimeOnDevices> times;
  for (const Json& one : comparison.value("device_benefits", Json::array())) {
    const auto time = one.find("time_to_target_seconds");
    if (text_at(one, "label") == label && time != one.end() && time->is_object()) {
      times.push_back({.devices = number_at(one, "devices"),
                       .median = number_at(*time, "median"),
                       .least = number_at(*time, "least"),
                       .most = number_at(*time, "most")});
    }
  }
  return times;
}

/// A run that diverged leaves no folder; the folder of another run may have been removed.
RunRecord counted_run(const fs::path& folder, const Json& counted) {
  if (is_run_folder(folder)) {
    return read_run(folder);
  }
  RunRecord run{.folder = folder};
  if (is_there(folder.string() + ".diverged.json")) {
    run.state = "diverged";
    run.notes = {"diverged: no figures"};
  } else if ((run.kept = kept_figures(counted))) {
    run.state = "figures of comparison.json";
    run.lacks = {"staleness.median"};
  } else {
    run.state = "missing";
    run.notes = {"its folder is missing: no figures"};
  }
  return run;
}

/// Adds one note for all runs of which only the figures exist.
void note_kept(std::vector<RunRecord>& runs) {
  const auto is_kept = [](const RunRecord& run) { return run.kept.has_value(); };
  const auto first = std::find_if(runs.begin(), runs.end(), is_kept);
  if (first != runs.end()) {
    first->notes.push_back(
        fmt::format("{} of {} runs have no folder: their figures are those in comparison.json; "
                    "curves and time lines need the runs",
                    std::count_if(runs.begin(), runs.end(), is_kept), runs.size()));
  }
}

std::vector<RunRecord> runs_of_comparison(const fs::path& folder) {
  const fs::path file = folder / "comparison.json";
  const Json comparison = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!comparison.is_object()) {
    throw DataError(
        fmt::format("{}: expected the JSON of a comparison, found other text", file.string()));
  }
  if (!comparison.contains("runs") || !comparison.at("runs").is_array()) {
    return unfinished(folder, comparison);
  }
  std::vector<RunRecord> runs;
  for (const Json& counted : comparison.at("runs")) {
    if (counted.contains("prefix_of")) {
      continue;  // its figures are among those of the contestant on all devices
    }
    runs.push_back(counted_run(folder / "runs" / text_at(counted, "name"), counted));
    runs.back().label = text_at(counted, "label");
    runs.back().comparison = folder;
    runs.back().seed = static_cast<std::uint64_t>(std::max(0.0, number_at(counted, "seed")));
    take_from(comparison, runs.back());
    runs.back().on_fewer_devices = times_by_devices(comparison, runs.back().label);
  }
  note_kept(runs);
  return runs;
}

/// Returns the folder's path with a name at its end: "runs/a" for "runs/a/", the whole path for
/// ".".
fs::path named_folder(fs::path folder) {
  if (!folder.has_filename() && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  const fs::path name = folder.filename();
  return name == "." || name == ".." ? fs::weakly_canonical(folder) : folder;
}

}  // namespace

std::vector<RunRecord> read_runs(const std::vector<fs::path>& folders) {
  std::vector<RunRecord> runs;
  std::set<fs::path> seen;
  for (const fs::path& given : folders) {
    const fs::path folder = named_folder(given);
    std::vector<RunRecord> found;
    if (is_there(folder / "comparison.json")) {
      found = runs_of_comparison(folder);
    } else {
      found.push_back(read_run(folder));
    }
    for (RunRecord& run : found) {
      if (seen.insert(fs::weakly_canonical(run.folder)).second) {
        runs.push_back(std::move(run));
      }
    }
  }
  return runs;
}

}  // namespace syncopate::cli
