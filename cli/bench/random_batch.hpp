#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "data/batch.hpp"

namespace syncopate::cli {

/// Noise for networks of `random_batch_classes` classes: images of one channel of a normal
/// distribution, and labels.
Batch random_batch(std::uint32_t samples, std::uint32_t side, Random random);
inline constexpr std::uint32_t random_batch_classes = 10;

}  // namespace syncopate::cli
