#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// One vector of parameters in memory that the workers of a host share, without a lock.
///
/// Every access is a relaxed atomic operation on one value: workers see each other's additions sooner
/// or later and in any order, as Hogwild wants, but no addition is lost and nothing is a data race.
/// The same bytes may be mapped by several processes.
///
/// Threads: any, at any time, but `load`: before others begin.
class SharedModel {
 public:
  struct Size {
    std::size_t params = 0;
    std::size_t buffers = 0;
    std::uint32_t workers = 1;
  };

  /// What the workers have done together.
  struct Counts {
    std::uint64_t updates = 0;
    std::uint64_t samples = 0;
    double loss_sum = 0;
  };

  static std::size_t bytes_for(const Size& size);

  /// Lays itself over memory of at least `bytes_for(size)` bytes that was zero at first.
  SharedModel(std::span<std::byte> memory, const Size& size);

  const Size& size() const { return size_; }

  /// The first parameters, and what came before them.
  void load(std::span<const float> params, const Counts& done);
  void read(std::span<float> params) const;
  /// params += after − before, value by value.
  void add_difference(std::span<const float> after, std::span<const float> before);

  /// Leaves a worker's buffers, and over how many more samples they were gathered, where all can read them.
  void store_buffers(Rank worker, std::span<const float> buffers, std::uint64_t samples);
  /// Σ n_i b_i / Σ n_i over the workers that have left any, n_i the samples of worker i; where there are none,
  /// `mean` stays as it is.
  void read_mean_buffers(std::span<float> mean) const;

  /// Says how far a worker has come with what it has added.
  void store_position(Rank worker, const WorkerPosition& position);
  /// Of all workers, by rank.
  std::vector<WorkerPosition> positions() const;

  Counts counts() const;
  /// Counts one update; returns how many there were before.
  std::uint64_t count(std::uint64_t samples, double loss_sum);

 private:
  struct Head;

  Size size_;
  Head* head_;
  std::span<float> params_;
  std::span<float> buffers_;  ///< of all workers, by rank
};

}  // namespace syncopate
