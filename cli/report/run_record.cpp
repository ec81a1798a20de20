#include "cli/report/run_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/report/log_lines.hpp"
#include "config/text.hpp"
#include "config/toml_table.hpp"
#include "job/launch/descriptor.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string option_or(const RunRecord& run, const char* key, const std::string& otherwise) {
  const auto found = run.options.find(key);
  return found == run.options.end() || found->second.empty() ? otherwise : found->second;
}

/// Reads all keys, including those that this version does not know.
void read_options(RunRecord& run) {
  const fs::path file = run.folder / "config.toml";
  run.partly = "no-config";
  if (!is_there(file)) {
    run.notes.push_back("no config.toml: grouped only by the fields of summary.json");
    return;
  }
  try {
    const auto keep = [&](std::string_view key, const OptionValue& value) {
      run.options[std::string(key)] = to_text(value);
      return true;
    };
    TomlTable::read(file, "").for_each(keep, {});
    run.partly.clear();
  } catch (const Error& error) {
    run.notes.push_back(fmt::format("config.toml cannot be read: {}", error.what()));
  }
}

void note_lines(RunRecord& run, const std::string& file, const JsonLines& lines) {
  if (lines.half_line) {
    run.notes.push_back(fmt::format("{}: its last line is not complete", file));
  }
  if (lines.damaged > 0) {
    run.notes.push_back(fmt::format("{}: {} damaged lines passed over", file, lines.damaged));
  }
}

void read_evaluations(RunRecord& run) {
  JsonLines lines = read_json_lines(run.folder / "evaluations.jsonl");
  for (const Json& object : lines.objects) {
    try {
      run.evaluations.push_back(evaluation_from(object));
    } catch (const Json::exception&) {
      ++lines.damaged;
    }
  }
  note_lines(run, "evaluations.jsonl", lines);
}

RoundTimes round_times_of(const Json& line) {
  return {.end = number_at(line, "training_seconds"),
          .data = number_at(line, "data_seconds"),
          .compute = number_at(line, "compute_seconds"),
          .communicate = number_at(line, "communicate_seconds"),
          .wait = number_at(line, "wait_seconds")};
}

void read_workers(RunRecord& run) {
  for (std::size_t rank = 0;; ++rank) {
    const std::string name = fmt::format("workers/{}.jsonl", rank);
    if (!is_there(run.folder / name)) {
      return;
    }
    const JsonLines lines = read_json_lines(run.folder / name);
    std::vector<RoundTimes>& rounds = run.workers.emplace_back();
    std::transform(lines.objects.begin(), lines.objects.end(), std::back_inserter(rounds),
                   round_times_of);
    note_lines(run, name, lines);
  }
}

/// Sets the field to `value` if the object lacks it or holds another type, such as null for a
/// number.
void complete(Json& object, const char* field, const Json& value, const std::string& prefix,
              std::vector<std::string>& lacks) {
  const bool wrong = !object.contains(field) || (value.is_number() && !object[field].is_number()) ||
                     (value.is_structured() && object[field].type() != value.type());
  if (wrong) {
    object[field] = value;
    const std::string name = prefix + field;
    if (std::find(lacks.begin(), lacks.end(), name) == lacks.end()) {
      lacks.push_back(name);
    }
  }
}

/// As `complete`, for fields that may be null.
void complete_if_absent(Json& object, const char* field) {
  const bool fits =
      object.contains(field) && (object[field].is_number() || object[field].is_null());
  if (!fits) {
    object[field] = nullptr;
  }
}

void complete_summary(Json& summary, std::vector<std::string>& lacks) {
  complete(summary, "staleness", Json::object(), "", lacks);
  for (const char* field : {"median", "p99", "max"}) {
    complete(summary["staleness"], field, 0, "staleness.", lacks);
  }
  for (const char* field : {"training_seconds", "samples", "throughput", "cluster_efficiency"}) {
    complete(summary, field, 0, "", lacks);
  }
  complete_if_absent(summary, "accuracy");
  complete_if_absent(summary, "learning_rate");
  complete(summary, "workers", Json::array(), "", lacks);
  for (Json& worker : summary["workers"]) {
    worker = worker.is_object() ? worker : Json::object();
    worker["device"] = text_at(worker, "device");
    for (const char* field :
         {"computing_time_ratio", "communication_ratio", "wait_ratio", "throughput"}) {
      complete(worker, field, 0, "workers.", lacks);
    }
  }
}

bool is_locked(const fs::path& file) {
  const Descriptor lock(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() < 0) {
    return errno == EACCES;  // belongs to another user; the file exists while a job runs
  }
  return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void note_missing_summary(RunRecord& run) {
  if (is_there(run.folder.string() + ".diverged.json")) {
    run.state = "diverged";
    run.notes.push_back("diverged: curves until then, no figures");
  } else {
    run.state = "ended by an error";
    run.notes.push_back(
        "no summary.json, the job ended by an error: curves until then, no figures");
  }
}

/// Reads the evaluations of the summary if there is no log of them, and writes back the finite
/// ones.
void take_evaluations(RunRecord& run) {
  const auto list = run.summary.find("evaluations");
  if (run.evaluations.empty() && list != run.summary.end() && list->is_array()) {
    for (const Json& object : *list) {
      try {
        run.evaluations.push_back(evaluation_from(object));
      } catch (const Json::exception&) {
        run.notes.push_back("summary.json: a damaged evaluation passed over");
      }
    }
  }
  // A test whose accuracy is not finite reached no target.
  run.summary["evaluations"] = Json::array();
  for (const EvaluationResult& one : run.evaluations) {
    if (std::isfinite(one.accuracy) && std::isfinite(one.training_seconds)) {
      run.summary["evaluations"].push_back(to_json(one));
    }
  }
}

void read_summary(RunRecord& run) {
  const fs::path file = run.folder / "summary.json";
  // A resumed run that still runs may have the summary of an earlier session.
  if (is_locked(run.folder / "run.lock")) {
    run.state = "running";
    run.notes.push_back("still running: curves until now, no figures");
    return;
  }
  if (!is_there(file)) {
    return note_missing_summary(run);
  }
  run.summary = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!run.summary.is_object()) {
    run.summary = nullptr;
    run.state = "damaged";
    run.notes.push_back("summary.json is damaged: curves, no figures");
    return;
  }
  run.state = text_at(run.summary, "ended_because");
  take_evaluations(run);
  complete_summary(run.summary, run.lacks);
  const std::string origin = text_at(run.summary, "imported_from");
  if (!origin.empty()) {
    run.partly = "imported";
  }
  if (!run.lacks.empty()) {
    run.notes.push_back(fmt::format(
        "{} {}", origin.empty() ? "summary.json of another version lacks" : origin + " do not have",
        fmt::join(run.lacks, ", ")));
  }
  if (run.state == "interrupted") {
    run.notes.push_back("interrupted: its last accuracy is that of an unfinished run");
  }
  const double target = number_at(run.summary, "target_accuracy", -1);
  run.target = target > 0 ? std::optional(target) : std::nullopt;
}

/// Sets the names by which runs are grouped; takes them from the summary without a configuration.
void settle_names(RunRecord& run) {
  for (const char* key : {"scheme", "network", "data"}) {
    if (option_or(run, key, "").empty() && run.summary.is_object()) {
      run.options[key] = text_at(run.summary, key);
    }
  }
  if (option_or(run, "split_by_class", "false") == "true") {
    run.options["split"] = "class";
  }
  run.cluster = fs::path(option_or(run, "cluster", "")).stem().string();
  const std::string seed = option_or(run, "seed", "0");
  run.seed = number_in<std::uint64_t>(seed).value_or(0);
  if (run.summary.is_object() && !run.options.contains("seed")) {
    run.seed = static_cast<std::uint64_t>(std::max(0.0, number_at(run.summary, "seed")));
  }
}

}  // namespace

bool is_run_folder(const fs::path& folder) {
  constexpr std::array files{"config.toml", "summary.json", "evaluations.jsonl"};
  return std::any_of(files.begin(), files.end(), [&](const char* file) {
    return fs::is_regular_file(file_status_of(folder / file));
  });
}

RunRecord read_run(const fs::path& folder) {
  if (!is_run_folder(folder)) {
    throw ConfigError(fmt::format(
        "{}: expected the folder of a run or of a comparison, found {}", folder.string(),
        is_there(folder) ? "no config.toml and no summary.json in it" : "nothing there"));
  }
  RunRecord run{.folder = folder};
  read_options(run);
  read_evaluations(run);
  read_workers(run);
  read_summary(run);
  settle_names(run);
  if (run.evaluations.empty()) {
    run.notes.push_back("no evaluation: no accuracy to show");
  }
  return run;
}

}  // namespace syncopate::cli
