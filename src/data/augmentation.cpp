#include "data/augmentation.hpp"

#include <algorithm>
#include <cstddef>

#include "base/random.hpp"

namespace syncopate {
namespace {

constexpr int border = 4;

int draw_offset(Random& random) {
  return static_cast<int>(random.below(2 * border + 1)) - border;
}

/// Writes one row of the changed image.
void change_row(const ImageChange& change, std::span<const std::uint8_t> row,
                std::span<std::uint8_t> into) {
  const auto width = static_cast<int>(row.size());
  for (int x = 0; x < width; ++x) {
    const int from = (change.mirrored ? width - 1 - x : x) + change.right;
    into[x] = from >= 0 && from < width ? row[from] : std::uint8_t{0};
  }
}

}  // namespace

ImageChange draw_change(Augmentation augmentation, std::uint64_t seed, Epoch pass,
                        std::uint32_t sample) {
  if (augmentation == Augmentation::none) {
    return {};
  }
  Random random = Random(seed).fork("augmentation", pass.value).fork("sample", sample);
  ImageChange change{.down = draw_offset(random), .right = draw_offset(random)};
  change.mirrored = random.below(2) == 1;
  if (augmentation == Augmentation::flip) {
    change.down = 0;
    change.right = 0;
  }
  if (augmentation == Augmentation::crop) {
    change.mirrored = false;
  }
  return change;
}

void apply_change(const ImageChange& change, const SampleShape& shape,
                  std::span<const std::uint8_t> image, std::span<std::uint8_t> into) {
  const auto height = static_cast<int>(shape.height);
  const std::size_t width = shape.width;
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    const std::size_t plane = channel * shape.height * width;
    for (int y = 0; y < height; ++y) {
      const auto row = into.subspan(plane + y * width, width);
      const int from = y + change.down;
      if (from < 0 || from >= height) {
        std::ranges::fill(row, std::uint8_t{0});
      } else {
        change_row(change, image.subspan(plane + from * width, width), row);
      }
    }
  }
}

}  // namespace syncopate
