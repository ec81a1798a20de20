#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/launch/job_request.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/config.hpp"

namespace syncopate::cli {

/// A point of a comparison's grid. Empty: the scheme's default rate, the common batch size.
struct GridPoint {
  std::optional<double> learning_rate = {};
  std::optional<std::uint32_t> batch_size = {};

  friend bool operator==(const GridPoint&, const GridPoint&) = default;
};

/// A scheme with its options that a comparison runs.
struct Contestant {
  std::string label;   ///< as the user typed it: "esync:pacing=paper"
  TrainConfig config;  ///< not resolved; without seed, learning rate and run folder
  std::vector<double> learning_rates = {};      ///< candidates; none: the scheme's default
  std::vector<std::uint32_t> batch_sizes = {};  ///< candidates; none: that of `config`
  bool is_limit = false;       ///< the upper bound: one imaginary device as fast as the cluster
  std::uint32_t fastest = 0;   ///< takes only that many of the fastest devices; 0: all
  std::string prefix_of = "";  ///< the label of the contestant that this one is on fewer devices
  bool usual_batch = false;    ///< `config` has the part of the usual global batch

  /// Each rate with each batch size; one point if there is nothing to choose.
  std::vector<GridPoint> grid() const;
};

/// The options that all contestants share.
struct CommonOptions {
  TrainConfig config;  ///< not resolved
  GivenOptions given;  ///< those of `config` that the user typed
  std::vector<double> learning_rates = {};
  std::vector<std::uint32_t> batch_sizes = {};
  std::optional<std::uint32_t> devices = {};  ///< of the cluster file
};

/// Gives a contestant that averages over its workers, and has no batch yet, its part of the usual
/// global batch, which is the default of esync: all contestants then take steps of as many samples.
/// Errors: ConfigError, for a configuration that `train` does not take.
void use_usual_global_batch(Contestant& contestant, std::optional<std::uint32_t> devices);

/// The common options for a scheme that the user did not name: without servers if it has none.
TrainConfig baseline_config(const TrainConfig& common, const SchemeSpec& scheme);

/// Reads a list such as "ssgd,esync:pacing=paper,nbssgd:commit=barrier:mini-batches=4". A term is
/// the name of a scheme, followed by options of `train`, which override the common ones; a switch
/// has no value. A part without "=" that names no option belongs to the value before it, as in
/// "compress=topk:0.01". Every combination passes the checks of `train`.
///
/// Errors: ConfigError if a scheme or an option is unknown, an option does not accept its value,
///         must be equal for all schemes (`--cluster`) or has no effect, or a term appears twice.
std::vector<Contestant> read_contestants(std::string_view list, const CommonOptions& common);

/// Reads "0.01,0.1". Errors: ConfigError if a term is not a positive number or appears twice.
std::vector<double> read_rates(std::string_view list);
/// Reads "16,64". Errors: ConfigError if a term is not a batch size or appears twice.
std::vector<std::uint32_t> read_batch_sizes(std::string_view list);

}  // namespace syncopate::cli
