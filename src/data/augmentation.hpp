#pragma once

#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "config/option_values.hpp"
#include "data/batch.hpp"

namespace syncopate {

/// Random changes of training images, which make a small training set worth more.
enum class Augmentation {
  none,
  crop,       ///< a part of the image's size, cut from the image with a black border of 4 pixels
  flip,       ///< mirrored left to right, every second time
  crop_flip,  ///< both: the part is cut out first
};
constexpr auto names_of(Augmentation) {
  return std::to_array<Named<Augmentation>>({{"none", Augmentation::none},
                                             {"crop", Augmentation::crop},
                                             {"flip", Augmentation::flip},
                                             {"crop,flip", Augmentation::crop_flip}});
}

/// A change of one image.
struct ImageChange {
  int down = 0;   ///< rows by which the part begins below the image's first one
  int right = 0;  ///< columns by which it begins right of the image's first one
  bool mirrored = false;

  friend bool operator==(const ImageChange&, const ImageChange&) = default;
};

/// The change of sample `sample` in one pass over the data. It depends only on these arguments: it
/// is the same on every worker, and after a resumption.
///
/// Draws:  from the fork "sample" with the sample's index of the fork "augmentation" with the pass
///         of the generator of `seed`: `down` + 4 and `right` + 4 below 9, then `mirrored` below 2.
///         All are drawn whatever the augmentation, so crop cuts out the same parts with and
///         without flip.
ImageChange draw_change(Augmentation augmentation, std::uint64_t seed, Epoch pass,
                        std::uint32_t sample);

/// Writes the changed image into `into`. Pixels outside the image are 0, in every channel.
/// `image` and `into` are of `shape`, and do not overlap.
void apply_change(const ImageChange& change, const SampleShape& shape,
                  std::span<const std::uint8_t> image, std::span<std::uint8_t> into);

}  // namespace syncopate
