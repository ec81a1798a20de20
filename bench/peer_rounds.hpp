#pragma once

// Measures the allreduce of a peer in the same way as `syncopate bench allreduce`. Each round
// begins with a barrier and takes as long as its slowest rank. Warm-up rounds fill a tenth of the
// time. The result of the first round is checked.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace peer {

/// The operations of a library that a measurement needs.
struct Library {
  int rank = 0;
  int ranks = 0;
  std::function<void()> barrier = {};
  /// Replaces each number by its maximum over all ranks.
  std::function<void(std::vector<double>&)> greatest = {};
};

struct Effort {
  std::vector<std::size_t> bytes;
  double seconds = 0.5;  ///< time for each size
};

/// Parses a list such as "1000,44700000".
inline std::vector<std::size_t> read_list(const std::string& text) {
  std::vector<std::size_t> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    numbers.push_back(std::stoull(word));
  }
  return numbers;
}

inline double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline std::vector<double> run(const Library& library, const std::function<void()>& sum,
                               std::uint64_t rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    library.barrier();
    const auto begun = Clock::now();
    sum();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  }
  return seconds;
}

/// Returns the maximum of `number` over all ranks, the same on every rank.
inline double agreed(const Library& library, double number) {
  std::vector<double> numbers{number};
  library.greatest(numbers);
  return numbers.front();
}

/// Returns the number of rounds that fill `seconds` on the slowest rank.
inline std::uint64_t warm_up(const Library& library, const std::function<void()>& sum,
                             double seconds) {
  constexpr double most = 100'000;
  for (std::uint64_t portion = 1;; portion *= 2) {
    const auto times = run(library, sum, portion);
    const double elapsed = agreed(library, std::accumulate(times.begin(), times.end(), 0.0));
    if (elapsed >= 0.1 * seconds || static_cast<double>(portion) >= most) {
      const double filling = std::ceil(seconds * static_cast<double>(portion) / elapsed);
      return static_cast<std::uint64_t>(std::clamp(filling, 5.0, most));
    }
  }
}

inline double total_of(const Library& library, double mine) {
  std::vector<double> by_rank(static_cast<std::size_t>(library.ranks));
  by_rank[static_cast<std::size_t>(library.rank)] = mine;
  library.greatest(by_rank);
  return std::accumulate(by_rank.begin(), by_rank.end(), 0.0);
}

inline void check(const Library& library, const std::function<void()>& sum,
                  std::vector<float>& values) {
  const auto pattern = [](std::size_t place) { return static_cast<float>(place % 97 + 1); };
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(library.rank + 1) * pattern(i);
  }
  sum();
  const auto factor = static_cast<float>(library.ranks * (library.ranks + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != factor * pattern(i)) {
      throw std::runtime_error("the sum is wrong at place " + std::to_string(i));
    }
  }
  std::fill(values.begin(), values.end(), 0.0F);
}

/// Measures one size. `sum` reduces `values` over all ranks, in place.
inline nlohmann::json measure(const Library& library, double wanted, std::vector<float>& values,
                              const std::function<void()>& sum) {
  check(library, sum, values);
  const std::uint64_t rounds = warm_up(library, sum, wanted);
  const double cpu_before = cpu_seconds();
  std::vector<double> seconds = run(library, sum, rounds);
  const double cpu = total_of(library, cpu_seconds() - cpu_before);
  library.greatest(seconds);
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    const double rank = std::ceil(part * static_cast<double>(rounds));
    return seconds[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
  };
  return {{"ranks", library.ranks},   {"bytes", values.size() * sizeof(float)},
          {"median_seconds", at(.5)}, {"min_seconds", seconds.front()},
          {"p90_seconds", at(.9)},    {"cpu_seconds", cpu / static_cast<double>(rounds)},
          {"rounds", rounds}};
}

}  // namespace peer
