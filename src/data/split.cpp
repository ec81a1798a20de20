#include "data/split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include "base/errors.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

using Samples = std::vector<std::uint32_t>;

/// The samples of each class that has any, by label.
std::vector<Samples> samples_by_class(std::span<const Label> labels) {
  if (labels.empty()) {
    return {};
  }
  std::vector<Samples> of_label(std::size_t{std::ranges::max(labels)} + 1);
  for (std::uint32_t sample = 0; sample < labels.size(); ++sample) {
    of_label[labels[sample]].push_back(sample);
  }
  std::vector<Samples> classes;
  std::ranges::copy_if(of_label, std::back_inserter(classes),
                       [](const Samples& samples) { return !samples.empty(); });
  return classes;
}

void append(Samples& part, std::span<const std::uint32_t> samples) {
  part.insert(part.end(), samples.begin(), samples.end());
}

/// Cuts the samples of a class into consecutive pieces, one for each of `holders`.
void cut(std::span<const std::uint32_t> samples, std::span<const std::size_t> holders,
         std::span<const double> shares, Parts& parts) {
  std::size_t begin = 0;
  const std::vector<std::size_t> sizes = apportion(samples.size(), shares);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    append(parts[holders[i]], samples.subspan(begin, sizes[i]));
    begin += sizes[i];
  }
}

/// Deals whole classes to workers, of which there are at most as many as classes.
Parts deal_classes(const std::vector<Samples>& classes, std::uint32_t workers) {
  Parts parts(workers);
  std::vector<std::size_t> held(workers);
  for (const Samples& samples : classes) {
    std::size_t next = 0;
    for (std::size_t rank = 1; rank < workers; ++rank) {
      const bool fewer_samples = parts[rank].size() < parts[next].size();
      if (held[rank] < held[next] || (held[rank] == held[next] && fewer_samples)) {
        next = rank;
      }
    }
    append(parts[next], samples);
    ++held[next];
  }
  return parts;
}

/// Shares classes among workers, of which there are more than classes.
Parts share_classes(const std::vector<Samples>& classes, std::uint32_t workers) {
  std::vector<std::vector<std::size_t>> holders(classes.size());
  for (std::size_t rank = 0; rank < workers; ++rank) {
    std::size_t joined = rank;
    if (rank >= classes.size()) {
      const auto per_holder = [&](std::size_t i) {
        return static_cast<double>(classes[i].size()) / static_cast<double>(holders[i].size());
      };
      joined = 0;
      for (std::size_t i = 1; i < classes.size(); ++i) {
        joined = per_holder(i) > per_holder(joined) ? i : joined;
      }
    }
    holders[joined].push_back(rank);
  }
  Parts parts(workers);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    cut(classes[i], holders[i], std::vector<double>(holders[i].size(), 1.0), parts);
  }
  return parts;
}

/// The logarithm of a draw from Gamma(`shape`, 1) (Marsaglia & Tsang 2000): for a small shape the
/// draw itself would underflow to 0.
double log_gamma_draw(double shape, Random& random) {
  if (shape < 1) {
    const double uniform = 1 - random.uniform();  // above 0
    return log_gamma_draw(shape + 1, random) + std::log(uniform) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) {
      continue;
    }
    const double uniform = 1 - random.uniform();
    if (std::log(uniform) < x * x / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

/// Proportional to a draw from Dirichlet(α, …, α); the largest is 1.
std::vector<double> dirichlet_draw(double alpha, std::size_t count, Random& random) {
  std::vector<double> shares(count);
  std::ranges::generate(shares, [&] { return log_gamma_draw(alpha, random); });
  const double largest = std::ranges::max(shares);
  std::ranges::transform(shares, shares.begin(),
                         [&](double share) { return std::exp(share - largest); });
  return shares;
}

constexpr std::string_view iid = "iid";
constexpr std::string_view by_class = "class";
constexpr std::string_view dirichlet_prefix = "dirichlet:";

std::optional<double> alpha_of(std::string_view text) {
  if (!text.starts_with(dirichlet_prefix)) {
    return std::nullopt;
  }
  // Below the least, every class would go to one worker; above the most, all parts are alike.
  constexpr double least = 1e-6;
  constexpr double most = 1e6;
  const auto alpha = number_in<double>(text.substr(dirichlet_prefix.size()));
  return alpha && *alpha >= least && *alpha <= most ? alpha : std::nullopt;
}

}  // namespace

Split Split::parse(std::string_view text) {
  if (text == iid) {
    return {};
  }
  if (text == by_class) {
    return {.kind = Kind::by_class};
  }
  if (const auto alpha = alpha_of(text)) {
    return {.kind = Kind::dirichlet, .alpha = *alpha};
  }
  throw ConfigError(fmt::format(
      "expected one of iid, class, dirichlet:ALPHA with ALPHA from 1e-06 to 1e+06; found '{}'",
      text));
}

std::string to_string(const Split& split) {
  switch (split.kind) {
    case Split::Kind::iid: return std::string(iid);
    case Split::Kind::by_class: return std::string(by_class);
    case Split::Kind::dirichlet: return fmt::format("{}{}", dirichlet_prefix, split.alpha);
  }
  throw InternalError("a split without a name");
}

std::vector<double> parse_shares(std::string_view text) {
  constexpr double least = 1e-6;
  constexpr double most = 1e6;
  std::vector<double> shares;
  for (const std::string_view entry : entries_of(text)) {
    const auto share = number_in<double>(trimmed(entry));
    if (!share || !(*share >= least && *share <= most)) {
      throw ConfigError(fmt::format(
          "expected numbers from 1e-06 to 1e+06 with commas between them, one per worker, such as "
          "2,1,1; found '{}'",
          text));
    }
    shares.push_back(*share);
  }
  return shares;
}

std::string shares_text(std::span<const double> shares) {
  return fmt::format("{}", fmt::join(shares, ","));
}

std::vector<std::string_view> split_names() {
  return {iid, by_class};
}

bool is_dirichlet(std::string_view text) {
  return alpha_of(text).has_value();
}

std::vector<std::size_t> apportion(std::size_t samples, std::span<const double> shares) {
  // Divided by the largest, so that the sum cannot overflow.
  const double largest = std::ranges::max(shares);
  double sum = 0;
  for (const double share : shares) {
    sum += share / largest;
  }
  std::vector<std::size_t> sizes;
  std::vector<double> remainders;
  for (const double share : shares) {
    const double quota = static_cast<double>(samples) * (share / largest) / sum;
    sizes.push_back(static_cast<std::size_t>(quota));
    remainders.push_back(quota - std::floor(quota));
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t rank) { return remainders[rank]; });
  const std::size_t given = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  for (std::size_t extra = 0; extra < samples - given; ++extra) {
    ++sizes[order[extra]];
  }
  return sizes;
}

Parts parts_by_class(std::span<const Label> labels, std::uint32_t workers) {
  std::vector<Samples> classes = samples_by_class(labels);
  std::ranges::stable_sort(classes, std::ranges::greater{}, &Samples::size);
  return classes.size() < workers ? share_classes(classes, workers)
                                  : deal_classes(classes, workers);
}

Parts dirichlet_parts(std::span<const Label> labels, std::uint32_t workers, double alpha,
                      const Random& source) {
  std::vector<std::size_t> holders(workers);
  std::iota(holders.begin(), holders.end(), std::size_t{0});
  Parts parts(workers);
  for (Samples& samples : samples_by_class(labels)) {
    Random random = source.fork("class", labels[samples.front()]);
    random.shuffle(std::span(samples));
    cut(samples, holders, dirichlet_draw(alpha, workers, random), parts);
  }
  return parts;
}

}  // namespace syncopate
