#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/scoreboard.hpp"

/// The events of a training job: JSON objects, one a line, each with its kind under `event`. The
/// coordinator writes them; `syncopate train --json` prints them as they are.
///
///     {"event": "started", "run_dir", "scheme", "network", "data", "epochs", "target_accuracy",
///      "virtual_time", "workers": [{"rank", "device", "host", "pid"}]}
///     {"event": "status", "training_seconds", "samples", "epoch", "round", "loss", "throughput",
///      "workers": [{"rank", "phase", "samples", "steps", "round", "compute", "communicate",
///                   "wait", "samples_per_second"}]}
///                 and, in a job that is paced, "round_seconds", and of each worker "pace":
///                 {"step_seconds", "step_samples", "steps", "meet_after", "reason", "overdue"}
///     {"event": "evaluation", "round", "samples", "epoch", "training_seconds", "accuracy", "loss",
///      "evaluation_seconds", "batch_norm"}
///     {"event": "checkpoint", "path", "round"}
///     {"event": "note", "text"}
///     {"event": "finished", "reason", "summary": {…}}
///     {"event": "failed", "kind", "error"}
///
/// Seconds are of the training clock; `compute`, `communicate` and `wait` are shares of it; an
/// accuracy is a share of the test set. `batch_norm` says with which statistics of BatchNorm a
/// model was evaluated, and is null for a network without. A number that is not finite, such as the
/// loss of a training that diverged, is null. `summary` is what `summary.json` holds. `finished` or
/// `failed` is the last (`end_in`).
namespace syncopate::events {

struct Started {
  struct Worker {
    std::uint32_t rank = 0;
    std::string device;
    std::string host;
    std::int64_t pid = 0;
  };

  std::string run_dir;
  std::string scheme;
  std::string network;
  std::string data;
  double epochs = 0;
  std::optional<double> target_accuracy = {};
  bool virtual_time = false;
  std::vector<Worker> workers = {};
};

struct Status {
  /// The pacer's estimate of a worker, and its last decision.
  struct Pace {
    double step_seconds = 0;  ///< estimated, of its next steps; 0: unknown
    std::uint32_t step_samples = 0;
    std::uint32_t period = 1;                      ///< it synchronizes in one round of that many
    std::uint64_t round = 0;                       ///< in which it synchronizes next; 0: unknown
    std::uint64_t steps = 0;                       ///< since it synchronized last
    std::optional<std::uint64_t> meet_after = {};  ///< of these steps, once decided
    std::string reason = {};                       ///< of the last decision, in words
    bool overdue = false;
  };

  struct Worker {
    std::uint32_t rank = 0;
    std::uint64_t samples = 0;
    std::uint64_t steps = 0;
    std::uint64_t round = 0;
    std::string phase;
    double compute = 0;
    double communicate = 0;
    double wait = 0;
    double samples_per_second = 0;
    std::optional<Pace> pace = {};
  };

  double training_seconds = 0;
  std::uint64_t samples = 0;
  double epoch = 0;  ///< passes done, fraction included
  std::uint64_t round = 0;
  double loss = 0;  ///< mean per sample of recent steps
  double throughput = 0;
  std::optional<double> round_seconds = {};  ///< planned, of a round that is paced
  std::vector<Worker> workers = {};
};

struct Checkpoint {
  std::string path;
  std::uint64_t round = 0;
};

/// A message for the user.
struct Note {
  std::string text;
};

struct Finished {
  std::string reason;
  nlohmann::ordered_json summary;
};

struct Failed {
  std::string kind;
  std::string error;
};

using Event = std::variant<Started, Status, EvaluationResult, Checkpoint, Note, Finished, Failed>;

/// Reads one line, and ignores unknown fields.
/// Errors: ProtocolError, which quotes the line, if it is no event.
Event parse_event(std::string_view line);

/// If this line is the last event of a job, returns whether the job ended well; empty for any other
/// line. Reads only the first field, which `Recorder` writes first.
std::optional<bool> end_in(std::string_view line);

/// {"event": "left", "worker"}: a program of the user has left a job that does not train, or has
/// ended. Only for the supervisor.
nlohmann::ordered_json left(std::uint32_t worker);
/// Returns the worker that has left, by this line; empty for any other line.
std::optional<std::uint32_t> left_in(std::string_view line);

}  // namespace syncopate::events
