#pragma once

#include <span>
#include <string>
#include <string_view>

/// The names that a configuration may use, for those who check one without libtorch at hand.
namespace syncopate {

/// The same names as `torch_backend::network_names()`.
std::span<const std::string_view> known_networks();
/// The same names as `torch_backend::optimizer_names()`.
std::span<const std::string_view> known_optimizers();
/// Whether `network` has BatchNorm, whose running statistics its buffers are.
bool has_batch_norm(std::string_view network);
/// Whether `optimizer` reads `TrainConfig::momentum`, `beta1` and `beta2`, `alpha`, `epsilon`.
bool uses_momentum(std::string_view optimizer);
bool uses_betas(std::string_view optimizer);
bool uses_alpha(std::string_view optimizer);
bool uses_epsilon(std::string_view optimizer);

/// How the learning rate moves: `TrainConfig::schedule`.
std::span<const std::string_view> known_schedules();
/// `broadcast`: all replicas begin as rank 0's. `independent`: each draws its own, and all take the
/// sum over √P, whose variance is that of one draw.
std::span<const std::string_view> known_inits();
/// How data is split over workers, besides dirichlet:ALPHA.
std::span<const std::string_view> known_splits();
/// The weight of a worker in a mean: its `samples`, the same for all (`uniform`), or its share of the
/// training `data`.
std::span<const std::string_view> known_weights();
/// What keeps local steps on different data from drifting apart.
std::span<const std::string_view> known_drift_corrections();
/// Whether the learning rate is that of a local step, or of a round of them.
std::span<const std::string_view> known_local_rates();
std::span<const std::string_view> known_server_processes();
/// What adds up where all workers meet: an algorithm of `collective/algorithm.hpp`, or a server.
std::span<const std::string_view> known_aggregates();
std::span<const std::string_view> known_transports();
/// What values become while they travel, but for topk:RATIO.
std::span<const std::string_view> known_compressions();
/// What a round of `esync` is as long as: its sums want it, or the slowest takes for a mini-batch.
std::span<const std::string_view> known_pacings();
/// Whether sums travel while workers compute; `auto`: where it pays.
std::span<const std::string_view> known_overlaps();
/// When a worker of nbssgd goes on after it has contributed to a round, and what adds the round up.
std::span<const std::string_view> known_commits();
std::span<const std::string_view> known_signals();
std::span<const std::string_view> known_throughs();
/// Over rounds of local steps; `auto`: that of the scheme.
std::span<const std::string_view> known_outer_optimizers();
std::span<const std::string_view> known_compensations();
std::span<const std::string_view> known_nan_policies();
/// With which of BatchNorm's statistics a model is evaluated.
std::span<const std::string_view> known_batch_norms();

/// The candidate most like `word`, when that is near enough to be what was meant, else empty.
/// Near: an edit distance of at most a third of the word's length, or one is a prefix of the other.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

/// "; did you mean 'ssgd'?", or nothing when no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace syncopate
