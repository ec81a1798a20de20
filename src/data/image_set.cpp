#include "data/image_set.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/idx.hpp"

namespace syncopate {
namespace {

/// More samples than this would take gigabytes in each worker.
constexpr std::uint64_t most_samples = 1U << 22U;
constexpr double gibibyte = 1U << 30U;

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// How often each pixel value occurs in a channel.
std::array<std::uint64_t, 256> counts_of(const ImageSet& set, std::size_t channel) {
  std::array<std::uint64_t, 256> counts{};
  const std::size_t plane = std::size_t{set.shape.height} * set.shape.width;
  for (std::size_t sample = 0; sample < set.samples(); ++sample) {
    const std::size_t begin = (sample * set.shape.channels + channel) * plane;
    for (const std::uint8_t pixel : std::span(set.pixels).subspan(begin, plane)) {
      ++counts[pixel];
    }
  }
  return counts;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(const std::array<std::uint64_t, 256>& counts) {
  double total = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t pixel = 0; pixel < counts.size(); ++pixel) {
    const double scaled = static_cast<double>(pixel) / 255;
    const auto count = static_cast<double>(counts[pixel]);
    total += count;
    sum += count * scaled;
    squares += count * scaled * scaled;
  }
  const double mean = sum / total;
  return {.mean = mean, .deviation = std::sqrt(std::max(0.0, squares / total - mean * mean))};
}

void drop_samples(ImageSet& set) {
  set = {set.shape, {}, {}, {}};
}

}  // namespace

void check_size(const std::filesystem::path& path, std::uint64_t samples,
                const SampleShape& shape) {
  check_size(path, samples, shape, machine_memory());
}

void check_size(const std::filesystem::path& path, std::uint64_t samples, const SampleShape& shape,
                std::uint64_t most_bytes) {
  if (samples > most_samples) {
    refuse(path, {fmt::format("at most {} images", most_samples), fmt::format("{}", samples),
                  "use a part of them"});
  }
  const double bytes = static_cast<double>(samples) * static_cast<double>(shape.values());
  if (bytes > static_cast<double>(most_bytes)) {
    refuse(path, {fmt::format("images that fit into {:.1f} GiB, the memory of this machine",
                              static_cast<double>(most_bytes) / gibibyte),
                  fmt::format("{} of {}x{}x{}, {:.1f} GiB", samples, shape.channels, shape.height,
                              shape.width, bytes / gibibyte),
                  "use fewer images, or smaller ones"});
  }
}

void check_labels(const std::filesystem::path& path, std::span<const Label> labels,
                  std::uint32_t classes) {
  const auto wrong =
      std::ranges::find_if(labels, [&](std::uint32_t label) { return label >= classes; });
  if (wrong != labels.end()) {
    refuse(path, {fmt::format("labels from 0 to {}", classes - 1),
                  fmt::format("{} at sample {}", *wrong, wrong - labels.begin()), fetch_again});
  }
}

void measure_channels(Dataset& dataset) {
  for (std::size_t channel = 0; channel < dataset.train.shape.channels; ++channel) {
    const Moments moments = moments_of(counts_of(dataset.train, channel));
    // A rounding error is no deviation.
    constexpr double least = 1e-6;
    dataset.mean.push_back(static_cast<float>(moments.mean));
    dataset.standard_deviation.push_back(
        moments.deviation < least ? 1.0F : static_cast<float>(moments.deviation));
  }
}

void keep_only(Which which, Dataset& dataset) {
  if (which == Which::train) {
    drop_samples(dataset.test);
  } else if (which == Which::test) {
    drop_samples(dataset.train);
  }
}

}  // namespace syncopate
