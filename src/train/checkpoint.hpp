#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The tensors of a model's flat vectors.
struct ModelLayout {
  std::vector<TensorInfo> params;
  std::vector<TensorInfo> buffers;
};
ModelLayout layout_of(const Replica& replica);

/// How far a training job has come. With the parameters, the buffers and the optimizer's state it is
/// all that a run needs to go on as if it had never stopped: what else is random follows from the
/// seed and these numbers.
struct Progress {
  std::uint64_t step = 0;     ///< of each worker
  std::uint64_t round = 0;    ///< meetings of the replicas
  std::uint64_t samples = 0;  ///< trained on by all workers
  Duration training{};        ///< training clock
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// Writes parameters and buffers under the module's own names, the optimizer's slots under
/// `optimizer.`, and the progress as metadata. Errors: DataError (a full disk).
void write_checkpoint(const std::filesystem::path& path, const Progress& progress,
                      const std::string& network, Replica& replica);

/// Loads the bytes of a checkpoint into `replica`. `source` names it in errors.
/// Errors: DataError, when it is damaged or belongs to another network or optimizer.
Progress load_checkpoint(std::string bytes, const std::string& source, const std::string& network,
                         Replica& replica);

/// The name of the checkpoint of a round: "round-0000001234.safetensors".
std::string checkpoint_name(std::uint64_t round);
/// The round in the name of a checkpoint. Errors: DataError, for another name.
std::uint64_t round_of(const std::filesystem::path& checkpoint);

/// The checkpoint of the highest round in a folder; empty when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// Removes all but the `keep` checkpoints of the highest rounds.
void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep);

}  // namespace syncopate
