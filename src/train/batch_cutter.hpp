#pragma once

#include <cstddef>
#include <cstdint>

#include "train/loader.hpp"

namespace syncopate {

/// Hands out a loader's mini-batches whole, or in the parts that steps take, in their order.
class BatchCutter {
 public:
  /// Whether a mini-batch without samples, which fills up an epoch, is handed out or passed over.
  enum class Empty { kept, passed_over };

  /// `loader` must outlive this.
  BatchCutter(Loader& loader, Empty empty) : loader_(loader), empty_(empty) {}

  /// The next `most` samples of the mini-batch under way, or what is left of it; 0: all that is left.
  /// Valid until the following call. Errors: the loader's.
  const Batch& next(std::uint32_t most);

 private:
  void begin_next();
  void cut(std::size_t samples);

  Loader& loader_;
  Empty empty_;
  const Batch* whole_ = nullptr;  ///< the mini-batch under way
  std::size_t taken_ = 0;         ///< samples of it
  Batch part_;
};

}  // namespace syncopate
