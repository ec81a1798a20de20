#pragma once

#include <cstddef>
#include <cstdint>

#include "data/batch.hpp"
#include "train/loader.hpp"

namespace syncopate {

/// Hands out a loader's mini-batches whole, or in the sizes that steps take, in their order.
class MicroBatcher {
 public:
  /// Whether a mini-batch without samples, which fills up an epoch, is handed out or passed over.
  enum class Empty { kept, passed_over };

  /// `loader` must outlive this; its first mini-batch is the one of `start`.
  MicroBatcher(Loader& loader, Empty empty, const DataPosition& start = {})
      : loader_(loader), empty_(empty), batch_(start.batch), skipped_(start.taken) {}

  /// The next `samples` of the feed, of one mini-batch or of several; 0: what is left of the one under
  /// way, or else the next one. Valid until the following call. Errors: the loader's.
  const Batch& next(std::uint32_t samples);

  /// After what was handed out last.
  DataPosition position() const;

 private:
  void begin_next();
  void append(std::size_t samples);
  std::size_t left() const { return whole_ ? whole_->samples() - taken_ : 0; }

  Loader& loader_;
  Empty empty_;
  const Batch* whole_ = nullptr;  ///< the mini-batch under way
  std::uint64_t batch_;           ///< its index in the feed; before the first, that of the first
  std::uint64_t skipped_;         ///< samples of the first one, trained on before
  std::size_t taken_ = 0;         ///< samples of it
  Batch part_;
};

}  // namespace syncopate
