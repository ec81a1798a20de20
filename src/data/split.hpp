#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "data/batch.hpp"

namespace syncopate {

/// How the samples of a training set are divided among workers.
struct Split {
  enum class Kind {
    iid,        ///< a shuffle of all samples, drawn again each epoch
    by_class,   ///< whole classes per worker
    dirichlet,  ///< the samples of each class in proportions drawn from a Dirichlet distribution
  };

  Kind kind = Kind::iid;
  double alpha =
      1;  ///< of `dirichlet`: the concentration; a smaller one makes the parts more different

  /// Reads "iid", "class" or "dirichlet:ALPHA" with ALPHA from 1e-6 to 1e6. Errors: ConfigError.
  static Split parse(std::string_view text);

  /// True if the parts differ by distribution, and each worker keeps its part for the whole job.
  bool is_skewed() const { return kind != Kind::iid; }

  friend bool operator==(const Split&, const Split&) = default;
};

/// "dirichlet:0.3", as `parse` reads it.
std::string to_string(const Split& split);

/// The names of splits without a parameter.
std::vector<std::string_view> split_names();

/// True if `text` is "dirichlet:" and an ALPHA that `Split::parse` takes.
bool is_dirichlet(std::string_view text);

/// Shares of workers in the data, by rank, in any unit: "2,1,1". Errors: ConfigError if an entry is
/// not a number from 1e-6 to 1e6.
std::vector<double> parse_shares(std::string_view text);

/// "2,1,1", as `parse_shares` reads it.
std::string shares_text(std::span<const double> shares);

/// The samples of each worker, by rank.
using Parts = std::vector<std::vector<std::uint32_t>>;

/// Sizes proportional to `shares` whose sum is `samples`, by largest remainder: each share gets the
/// whole part of its quota, and the largest fractions, lower ranks first, one sample more. The
/// shares are finite, not negative, and not all 0.
std::vector<std::size_t> apportion(std::size_t samples, std::span<const double> shares);

/// Splits whole classes evenly over `workers`. Classes are dealt in the order of their sizes, the
/// largest first: each to the worker with the fewest classes, of these to the one with the fewest
/// samples, of these to the lowest rank. So the numbers of classes differ by one at most.
///
/// With more workers than classes every worker holds samples of one class: each further worker
/// joins the class with the most samples per worker, and the workers of a class share it evenly.
///
/// Invariant: every sample is in exactly one part.
Parts parts_by_class(std::span<const Label> labels, std::uint32_t workers);

/// Splits each class over `workers` in proportions drawn from Dirichlet(α, …, α) (Hsu et al. 2019).
/// Invariant: every sample is in exactly one part. A part may be empty.
Parts dirichlet_parts(std::span<const Label> labels, std::uint32_t workers, double alpha,
                      const Random& source);

}  // namespace syncopate
