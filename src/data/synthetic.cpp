#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.hpp"
#include "data/dataset.hpp"

namespace syncopate {
namespace {

constexpr int side = 28;
constexpr std::uint32_t classes = 10;
constexpr std::size_t values_per_sample = std::size_t{side} * side;

using Pattern = std::array<std::array<float, side>, side>;  ///< [y][x], brightness in [0, 1]

void add_blob(Pattern& pattern, Random& random) {
  const double centre_x = 5 + 18 * random.uniform();
  const double centre_y = 5 + 18 * random.uniform();
  const double radius = 2 + 2 * random.uniform();
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double distance = std::hypot(x - centre_x, y - centre_y) / radius;
      float& value = pattern[y][x];
      value = std::min(1.0F, value + static_cast<float>(std::exp(-distance * distance / 2)));
    }
  }
}

Pattern draw_pattern(Random random) {
  constexpr int blobs = 4;
  Pattern pattern{};
  for (int blob = 0; blob < blobs; ++blob) {
    add_blob(pattern, random);
  }
  return pattern;
}

/// Eight uniform bytes per draw, because drawing noise takes most of the time.
class NoiseBytes {
 public:
  explicit NoiseBytes(Random& random) : random_(random) {}

  int next() {
    if (left_ == 0) {
      bits_ = random_.bits();
      left_ = 8;
    }
    --left_;
    const int byte = static_cast<int>(bits_ & 0xffU);
    bits_ >>= 8U;
    return byte;
  }

 private:
  Random& random_;
  std::uint64_t bits_ = 0;
  int left_ = 0;
};

int draw_shift(Random& random) {
  constexpr int furthest = 3;
  return static_cast<int>(random.below(2 * furthest + 1)) - furthest;
}

void draw_sample(const Pattern& pattern, Random& random, std::uint8_t* pixels) {
  const int shift_x = draw_shift(random);
  const int shift_y = draw_shift(random);
  const double brightness = 80 + 120 * random.uniform();
  NoiseBytes noise(random);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int from_x = std::clamp(x + shift_x, 0, side - 1);
      const int from_y = std::clamp(y + shift_y, 0, side - 1);
      const int seen = static_cast<int>(brightness * pattern[from_y][from_x]) + noise.next() - 64;
      *pixels++ = static_cast<std::uint8_t>(std::clamp(seen, 0, 255));
    }
  }
}

ImageSet draw_set(std::size_t samples, Random random) {
  const Random pattern_source(0);
  std::array<Pattern, classes> patterns;
  for (std::uint32_t label = 0; label < classes; ++label) {
    patterns[label] = draw_pattern(pattern_source.fork("synthetic pattern", label));
  }
  ImageSet set{{1, side, side}, {}, {}};
  set.pixels.resize(samples * values_per_sample);
  set.labels.resize(samples);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::size_t label = sample % classes;
    set.labels[sample] = static_cast<Label>(label);
    draw_sample(patterns[label], random, set.pixels.data() + sample * values_per_sample);
  }
  return set;
}

}  // namespace

Dataset make_synthetic(Which which) {
  constexpr std::size_t train_samples = 10'000;
  constexpr std::size_t test_samples = 2'000;
  // Measured over the training set, which is always the same; a test checks these figures.
  constexpr float mean = 0.4092F;
  constexpr float standard_deviation = 0.3087F;
  const Random source(0);
  return {"synthetic",
          classes,
          {mean},
          {standard_deviation},
          draw_set(which == Which::test ? 0 : train_samples, source.fork("synthetic train")),
          draw_set(which == Which::train ? 0 : test_samples, source.fork("synthetic test"))};
}

}  // namespace syncopate
