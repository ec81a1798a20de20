#include "train/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 3> networks{"mlp", "lenet5", "resnet18-v1"};
constexpr std::array<Name, 7> optimizers{"sgd",  "momentum", "nesterov", "rmsprop",
                                         "adam", "adamw",    "adagrad"};
constexpr std::array<Name, 3> schedules{"constant", "step", "cosine"};
constexpr std::array<Name, 2> inits{"broadcast", "independent"};
constexpr std::array<Name, 2> splits{"iid", "class"};
constexpr std::array<Name, 4> weights{"auto", "samples", "uniform", "data"};
constexpr std::array<Name, 3> local_rates{"auto", "step", "round"};
constexpr std::array<Name, 3> drift_corrections{"auto", "none", "scaffold"};
constexpr std::array<Name, 2> server_processes{"own", "shared"};
constexpr std::array<Name, 8> aggregates{"auto",          "shm",  "ring", "butterfly",
                                         "binary-blocks", "tree", "mpi",  "server"};
constexpr std::array<Name, 4> transports{"auto", "shm", "tcp", "mpi"};
constexpr std::array<Name, 5> compressions{"none", "bf16", "fp16", "int8", "onebit"};
constexpr std::array<Name, 2> pacings{"timed", "paper"};
constexpr std::array<Name, 3> overlaps{"auto", "on", "off"};
constexpr std::array<Name, 3> commits{"barrier", "overlap", "racy"};
constexpr std::array<Name, 2> signals{"contribution", "batch"};
constexpr std::array<Name, 2> throughs{"allreduce", "server"};
constexpr std::array<Name, 4> outer_optimizers{"auto", "sgd", "momentum", "nesterov"};
constexpr std::array<Name, 2> compensations{"constant", "adaptive"};
constexpr std::array<Name, 2> nan_policies{"stop", "skip"};
constexpr std::array<Name, 2> batch_norms{"running", "recomputed"};

/// Levenshtein's distance: insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(Name from, Name to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// Whether one exchange of neighbouring letters turns one word into the other: "trian", "train".
bool differ_by_a_swap(Name word, Name candidate) {
  if (word.size() != candidate.size()) {
    return false;
  }
  const auto [mine, theirs] = std::mismatch(word.begin(), word.end(), candidate.begin());
  return word.end() - mine >= 2 && mine[0] == theirs[1] && mine[1] == theirs[0] &&
         std::equal(mine + 2, word.end(), theirs + 2);
}

/// How unlike two words are; a swap, or a word that begins the other, is as near as a single slip.
std::size_t unlikeness(Name word, Name candidate) {
  const bool begins = !word.empty() && (candidate.starts_with(word) || word.starts_with(candidate));
  return begins || differ_by_a_swap(word, candidate) ? 1 : edit_distance(word, candidate);
}

}  // namespace

std::span<const Name> known_networks() {
  return networks;
}

std::span<const Name> known_optimizers() {
  return optimizers;
}

bool has_batch_norm(Name network) {
  return network == "resnet18-v1";
}

bool uses_momentum(Name optimizer) {
  return optimizer == "momentum" || optimizer == "nesterov";
}

bool uses_betas(Name optimizer) {
  return optimizer == "adam" || optimizer == "adamw";
}

bool uses_alpha(Name optimizer) {
  return optimizer == "rmsprop";
}

bool uses_epsilon(Name optimizer) {
  return uses_betas(optimizer) || uses_alpha(optimizer) || optimizer == "adagrad";
}

std::span<const Name> known_schedules() {
  return schedules;
}

std::span<const Name> known_inits() {
  return inits;
}

std::span<const Name> known_splits() {
  return splits;
}

std::span<const Name> known_drift_corrections() {
  return drift_corrections;
}

std::span<const Name> known_local_rates() {
  return local_rates;
}

std::span<const Name> known_weights() {
  return weights;
}

std::span<const Name> known_server_processes() {
  return server_processes;
}

std::span<const Name> known_aggregates() {
  return aggregates;
}

std::span<const Name> known_transports() {
  return transports;
}

std::span<const Name> known_compressions() {
  return compressions;
}

std::span<const Name> known_pacings() {
  return pacings;
}

std::span<const Name> known_overlaps() {
  return overlaps;
}

std::span<const Name> known_commits() {
  return commits;
}

std::span<const Name> known_signals() {
  return signals;
}

std::span<const Name> known_throughs() {
  return throughs;
}

std::span<const Name> known_outer_optimizers() {
  return outer_optimizers;
}

std::span<const Name> known_compensations() {
  return compensations;
}

std::span<const Name> known_nan_policies() {
  return nan_policies;
}

std::span<const Name> known_batch_norms() {
  return batch_norms;
}

Name nearest_name(Name word, std::span<const Name> candidates) {
  std::size_t nearest_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  Name nearest;
  for (const Name candidate : candidates) {
    const std::size_t distance = unlikeness(word, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(Name word, std::span<const Name> candidates) {
  const Name nearest = nearest_name(word, candidates);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace syncopate
