#pragma once

#include <array>

#include "config/option_groups.hpp"
#include "scheme/round_book.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// When a round of nbssgd closes for a worker that has contributed to it.
enum class Commit {
  barrier,  ///< when the sum has come, for which it waits
  overlap,  ///< likewise, but it computes on meanwhile
  racy,     ///< at once: the contribution is added to shared memory, or applied by a server
};
constexpr auto names_of(Commit) {
  return std::to_array<Named<Commit>>(
      {{"barrier", Commit::barrier}, {"overlap", Commit::overlap}, {"racy", Commit::racy}});
}

constexpr auto names_of(SignalRule) {
  return std::to_array<Named<SignalRule>>(
      {{"contribution", SignalRule::contribution}, {"batch", SignalRule::batch}});
}

namespace option {

inline constexpr Option<std::uint32_t> mini_batches{.name = "mini-batches",
                                                    .group = option_group::synchronization,
                                                    .value = "N",
                                                    .help = "into which nbssgd cuts a batch",
                                                    .initial = 8,
                                                    .limits = at_least_one};

inline constexpr Option<SignalRule> signal{
    .name = "signal",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "when a worker of nbssgd ends a round: its contribution amounts to a batch, or its "
        "batch ends",
    .initial = SignalRule::contribution};

inline constexpr Option<Commit> commit{
    .name = "commit",
    .group = option_group::synchronization,
    .value = "NAME",
    .help =
        "of nbssgd: wait for the allreduce of a round, compute on, or update one model "
        "without rounds",
    .initial = Commit::overlap};

}  // namespace option

}  // namespace syncopate
