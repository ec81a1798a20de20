#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

/// How the samples of a training set are divided among workers.
struct Split {
  enum class Kind {
    iid,        ///< a shuffle of all samples, drawn again each epoch
    by_class,   ///< whole classes per worker
    dirichlet,  ///< the samples of each class in proportions drawn from a Dirichlet distribution
  };

  Kind kind = Kind::iid;
  double alpha = 1;  ///< of `dirichlet`: the concentration; the smaller, the less alike the parts

  /// Reads "iid", "class" or "dirichlet:ALPHA" with a finite ALPHA above 0; empty for anything else.
  static std::optional<Split> named(std::string_view name);
  std::string to_string() const;

  /// True where the parts differ by distribution, and each worker keeps its part for the whole job.
  bool is_skewed() const { return kind != Kind::iid; }

  friend bool operator==(const Split&, const Split&) = default;
};

}  // namespace syncopate
