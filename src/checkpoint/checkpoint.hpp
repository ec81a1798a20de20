#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// The progress of a training job. A resumed run continues bit for bit from this, the parameters,
/// the buffers and the optimizer's state: its random numbers follow from the seed and these counts.
struct TrainingProgress {
  std::uint64_t step = 0;     ///< of each worker
  std::uint64_t round = 0;    ///< synchronization rounds, or updates of the model
  std::uint64_t samples = 0;  ///< trained on by all workers
  Duration training{};        ///< training clock
  friend bool operator==(const TrainingProgress&, const TrainingProgress&) = default;
};

/// The name of the state of a replica's own optimizer in a checkpoint.
inline constexpr const char* state_of_optimizer = "optimizer";
/// The name of the pacer's state in a checkpoint.
inline constexpr const char* state_of_pacer = "pacer";

/// The tensors of a model in its flat vectors.
struct ModelLayout {
  std::vector<TensorInfo> params;
  std::vector<TensorInfo> buffers;
};

ModelLayout layout_of(const Replica& replica);
std::size_t values_in(const TensorInfo& tensor);
/// The number of values in a flat vector of this layout.
std::size_t values_in(const std::vector<TensorInfo>& layout);

/// The model in a checkpoint.
struct ModelView {
  const ModelLayout& layout;
  std::span<const float> params;
  std::span<const float> buffers;
  /// States by name: of the optimizers that update the model ("optimizer", "outer", or "server.0",
  /// "server.1", …), of the "pacer", and of workers (`in_checkpoint`).
  States states{};
};

/// Writes parameters and buffers under the module's own names, each state's slots under its name,
/// and counters and the progress as metadata. A slot with a value for each parameter is written by
/// parameter, in its shape: "optimizer.momentum_buffer.conv1.weight"; the metadata `by_parameter`
/// lists these slots. Errors: DataError (a full disk).
void write_checkpoint(const std::filesystem::path& path, const TrainingProgress& progress,
                      const std::string& network, const ModelView& model);

/// The content of a checkpoint.
class Checkpoint {
 public:
  /// Takes the bytes of a whole file; `source` names it in errors.
  /// Errors: DataError, when it is damaged or belongs to another network.
  Checkpoint(std::string bytes, std::string source, const std::string& network);

  /// Errors: DataError if a number is missing or negative.
  TrainingProgress progress() const;
  /// The flat vector of this layout. Errors: DataError, if the tensors have other shapes.
  std::vector<float> values(const std::vector<TensorInfo>& layout) const;
  OptimizerState state(const std::string& name) const;
  /// The states of a worker, by name; empty if the checkpoint has none.
  States states_of(Rank worker) const;
  /// The bytes of the checkpoint without the states of the other workers.
  std::string without_others(Rank worker) const;

 private:
  std::uint64_t count(const std::string& key) const;
  std::int64_t number(const std::string& key) const;

  Safetensors file_;
  std::string source_;
};

/// Loads a replica, with its own optimizer, from a checkpoint.
/// Errors: DataError, if the checkpoint is of another optimizer or the tensors have other shapes.
void load_checkpoint(const Checkpoint& checkpoint, Replica& replica);

/// The name of the checkpoint of a round: "round-0000001234.safetensors".
std::string checkpoint_name(std::uint64_t round);
/// The round in the name of a checkpoint. Errors: DataError if the file is named differently.
std::uint64_t round_of(const std::filesystem::path& checkpoint);

/// The checkpoint of the highest round in a folder; empty when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The same among undamaged checkpoints. A damaged one is renamed, so that it is no checkpoint any
/// more; `on_damaged` gets a line that reports this. Errors: DataError if one cannot be read.
std::optional<std::filesystem::path> latest_whole_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& on_damaged);

/// Removes all but the `keep` checkpoints of the highest rounds and that of round 0, the state
/// before the first step.
void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep);

}  // namespace syncopate
