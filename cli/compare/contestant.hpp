#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/launch/job_request.hpp"
#include "job/spec/config.hpp"

namespace syncopate::cli {

/// One that takes part in a comparison: a scheme with its options.
struct Contestant {
  std::string label;   ///< as the user has it: "esync:pacing=paper"
  TrainConfig config;  ///< not resolved; without seed, learning rate and run folder
  std::vector<double> learning_rates = {};  ///< to choose from; none: the scheme's usual one
  bool is_limit = false;  ///< one imaginary device as fast as the cluster, in virtual time always
};

/// What all contestants have in common.
struct CommonOptions {
  TrainConfig config;  ///< not resolved
  GivenOptions given;  ///< those of `config` that the user typed
  std::vector<double> learning_rates = {};
  std::optional<std::uint32_t> devices = {};  ///< of the cluster file
};

/// Reads a list such as "ssgd,esync:pacing=paper,nbssgd:commit=barrier:mini-batches=4". A term is
/// the name of a scheme and options of `train` over the common ones; a switch stands alone.
/// Every combination is checked as `train` would check it.
///
/// Errors: ConfigError: an unknown scheme or option, a value that it does not take, an option that
///         would make it another comparison (`--cluster`) or has no effect, a term twice.
std::vector<Contestant> read_contestants(std::string_view list, const CommonOptions& common);

/// "0.01,0.1". Errors: ConfigError, for what is no positive number, and for one twice.
std::vector<double> read_rates(std::string_view list);

}  // namespace syncopate::cli
