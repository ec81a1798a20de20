#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/worker_states.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// How far a training job has come. With the parameters, the buffers and the optimizer's state it
/// is all that a run needs to go on as if it had never stopped: what else is random follows from
/// the seed and these numbers.
struct TrainingProgress {
  std::uint64_t step = 0;     ///< of each worker
  std::uint64_t round = 0;    ///< meetings of the replicas
  std::uint64_t samples = 0;  ///< trained on by all workers
  Duration training{};        ///< training clock
  friend bool operator==(const TrainingProgress&, const TrainingProgress&) = default;
};

/// The name under which a checkpoint keeps the state of a replica's own optimizer.
inline constexpr const char* state_of_optimizer = "optimizer";
/// Likewise that of the pacer.
inline constexpr const char* state_of_pacer = "pacer";

/// Where the tensors of a model lie in its flat vectors.
struct ModelLayout {
  std::vector<TensorInfo> params;
  std::vector<TensorInfo> buffers;
};

ModelLayout layout_of(const Replica& replica);
std::size_t values_in(const TensorInfo& tensor);
/// As many as a flat vector has that is laid out so.
std::size_t values_in(const std::vector<TensorInfo>& layout);

/// A model as a checkpoint holds it.
struct ModelView {
  const ModelLayout& layout;
  std::span<const float> params;
  std::span<const float> buffers;
  /// Of those who update it, by name: "optimizer", "outer", or "server.0", "server.1", …; "pacer";
  /// and those of workers (`in_checkpoint`).
  States states{};
};

/// Writes parameters and buffers under the module's own names, each state's slots under its name,
/// and counters and the progress as metadata. A slot with a value for each parameter is written by
/// parameter, in its shape: "optimizer.momentum_buffer.conv1.weight"; which ones are is told by the
/// metadata `by_parameter`. Errors: DataError (a full disk).
void write_checkpoint(const std::filesystem::path& path, const TrainingProgress& progress,
                      const std::string& network, const ModelView& model);

/// What a checkpoint holds.
class Checkpoint {
 public:
  /// Takes the bytes of a whole file; `source` names it in errors.
  /// Errors: DataError, when it is damaged or belongs to another network.
  Checkpoint(std::string bytes, std::string source, const std::string& network);

  TrainingProgress progress() const;
  /// The flat vector of tensors laid out so. Errors: DataError, when they have other shapes.
  std::vector<float> values(const std::vector<TensorInfo>& layout) const;
  OptimizerState state(const std::string& name) const;
  /// What a worker remembered, by name; empty where the checkpoint has nothing of it.
  States states_of(Rank worker) const;
  /// The bytes of a checkpoint without the states of other workers than this one.
  std::string without_others(Rank worker) const;

 private:
  std::uint64_t number(const std::string& key) const;

  Safetensors file_;
  std::string source_;
};

/// Makes a replica, its own optimizer included, what a checkpoint holds.
/// Errors: DataError, when it belongs to another optimizer or the tensors have other shapes.
void load_checkpoint(const Checkpoint& checkpoint, Replica& replica);

/// The name of the checkpoint of a round: "round-0000001234.safetensors".
std::string checkpoint_name(std::uint64_t round);
/// The round in the name of a checkpoint. Errors: DataError, for another name.
std::uint64_t round_of(const std::filesystem::path& checkpoint);

/// The checkpoint of the highest round in a folder; empty when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// Removes all but the `keep` checkpoints of the highest rounds and that of round 0, the state
/// before the first step.
void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep);

}  // namespace syncopate
