#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "base/errors.hpp"
#include "codec/codec.hpp"
#include "codec/greatest_values.hpp"
#include "codec/momentum_correction.hpp"

namespace syncopate {

const CodecSpec& topk_2bit_codec();

namespace {

constexpr std::size_t chunk_values = 4096;
constexpr unsigned index_bits = 12;
constexpr unsigned code_bits = index_bits + 2;  ///< index, sign, level
constexpr std::uint32_t is_below_zero = 1U << index_bits;
constexpr std::uint32_t is_large = 2U << index_bits;

/// Sends only the greatest values, and of these only the sign and one of two magnitudes
/// (SparseLoCo, Sarfi et al. 2025): of every chunk of n ≤ 4096 values the k = ⌈ratio · n⌉ of
/// greatest magnitude, as `topk` chooses them. The two magnitudes are the mean of those from their
/// common mean up, and the mean of the others; each value decodes to the nearer one, with its sign.
///
/// Bytes: of a chunk, the two means, the large one first, float32 each; then k codes of 14 bits, in
///        the order of ascending indices, from the lowest bits of each byte on: 12 bits of the
///        index, a bit that is set below 0, a bit that is set for the large mean; then zeros up to
///        a multiple of 4 bytes.
/// Error: ‖x − decoded‖ ≤ ‖x‖, since the mean of a group is its best single number. A
///        chunk with a value that is not finite has NaN as means.
class Topk2bitCodec final : public Codec {
 public:
  explicit Topk2bitCodec(double ratio) : ratio_(ratio) {}

  const CodecSpec& spec() const override { return topk_2bit_codec(); }
  std::size_t block_bytes(std::size_t values) const override;
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses indices that do not ascend or are not in the chunk, and means that are infinite or
  /// below 0.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;

 private:
  std::size_t kept(std::size_t values) const {
    return static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(values)));
  }
  std::size_t chunk_bytes(std::size_t values) const {
    return 2 * sizeof(float) + (code_bits * kept(values) + 31) / 32 * sizeof(std::uint32_t);
  }
  void encode_chunk(std::span<const float> chunk, std::byte* into);
  void decode_chunk(const std::byte* from, std::span<float> chunk) const;

  double ratio_;
  GreatestValues greatest_;
};

/// The mean magnitudes of the large values and of the others; 0 without such values.
struct Levels {
  float large = 0;
  float small = 0;
};

Levels levels_of(std::span<const float> chunk, std::span<const std::uint32_t> indices) {
  double sum = 0;
  for (const std::uint32_t index : indices) {
    sum += std::abs(double{chunk[index]});
  }
  if (!std::isfinite(sum)) {
    constexpr float lost = std::numeric_limits<float>::quiet_NaN();
    return {lost, lost};
  }
  const double mean = indices.empty() ? 0 : sum / static_cast<double>(indices.size());
  std::array<double, 2> sums{};
  std::array<double, 2> counts{};
  for (const std::uint32_t index : indices) {
    const double magnitude = std::abs(double{chunk[index]});
    const std::size_t level = magnitude >= mean ? 0 : 1;
    sums[level] += magnitude;
    ++counts[level];
  }
  return {static_cast<float>(sums[0] / std::max(counts[0], 1.0)),
          static_cast<float>(sums[1] / std::max(counts[1], 1.0))};
}

void check(const Levels& levels) {
  const bool are_lost = std::isnan(levels.large) && std::isnan(levels.small);
  const bool are_good = std::isfinite(levels.large) && levels.large >= 0 &&
                        std::isfinite(levels.small) && levels.small >= 0;
  if (!are_lost && !are_good) {
    throw ProtocolError("values compressed by topk/2bit have a mean that is infinite, or below 0");
  }
}

std::size_t Topk2bitCodec::block_bytes(std::size_t values) const {
  const std::size_t rest = values % chunk_values;
  return values / chunk_values * chunk_bytes(chunk_values) + (rest > 0 ? chunk_bytes(rest) : 0);
}

void Topk2bitCodec::encode_chunk(std::span<const float> chunk, std::byte* into) {
  const std::span<const std::uint32_t> greatest = greatest_.find(chunk, kept(chunk.size()));
  const Levels levels = levels_of(chunk, greatest);
  auto* const words = reinterpret_cast<std::uint32_t*>(into);
  auto* const means = reinterpret_cast<float*>(into);
  means[0] = levels.large;
  means[1] = levels.small;
  std::uint64_t bits = 0;
  unsigned count = 0;
  std::size_t word = 2;
  for (const std::uint32_t index : greatest) {
    const float value = chunk[index];
    const float magnitude = std::abs(value);
    const bool large = std::abs(magnitude - levels.large) <= std::abs(magnitude - levels.small);
    const std::uint32_t code = index | (value < 0 ? is_below_zero : 0) | (large ? is_large : 0);
    bits |= std::uint64_t{code} << count;
    count += code_bits;
    if (count >= 32) {
      words[word++] = static_cast<std::uint32_t>(bits);
      bits >>= 32;
      count -= 32;
    }
  }
  if (count > 0) {
    words[word] = static_cast<std::uint32_t>(bits);
  }
}

void Topk2bitCodec::encode(std::span<const float> block, std::span<std::byte> into) {
  std::byte* chunk = into.data();
  for (std::size_t first = 0; first < block.size(); first += chunk_values) {
    const std::size_t count = std::min(chunk_values, block.size() - first);
    encode_chunk(block.subspan(first, count), chunk);
    chunk += chunk_bytes(count);
  }
}

void Topk2bitCodec::decode_chunk(const std::byte* from, std::span<float> chunk) const {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
  const auto* const means = reinterpret_cast<const float*>(from);
  const Levels levels{.large = means[0], .small = means[1]};
  check(levels);
  std::ranges::fill(chunk, 0.0F);
  std::uint64_t bits = 0;
  unsigned count = 0;
  std::size_t word = 2;
  std::size_t least = 0;
  for (std::size_t left = kept(chunk.size()); left > 0; --left) {
    if (count < code_bits) {
      bits |= std::uint64_t{words[word++]} << count;
      count += 32;
    }
    const auto code = static_cast<std::uint32_t>(bits) & ((1U << code_bits) - 1);
    bits >>= code_bits;
    count -= code_bits;
    const std::size_t index = code & (is_below_zero - 1);
    if (index < least || index >= chunk.size()) {
      throw ProtocolError(
          "values compressed by topk/2bit have indices that do not ascend, or lie beyond their "
          "chunk");
    }
    least = index + 1;
    const float magnitude = (code & is_large) != 0 ? levels.large : levels.small;
    chunk[index] = (code & is_below_zero) != 0 ? -magnitude : magnitude;
  }
}

void Topk2bitCodec::decode(std::span<const std::byte> from, std::span<float> block) const {
  const std::byte* chunk = from.data();
  for (std::size_t first = 0; first < block.size(); first += chunk_values) {
    const std::size_t count = std::min(chunk_values, block.size() - first);
    decode_chunk(chunk, block.subspan(first, count));
    chunk += chunk_bytes(count);
  }
}

}  // namespace

const CodecSpec& topk_2bit_codec() {
  static const CodecSpec spec{
      .name = "topk",
      .number = 6,
      .help = "the same, each as a sign and one of two magnitudes",
      .parameter = CodecParameter{.name = "RATIO", .most = 1, .suffix = "/2bit"},
      .make = [](double ratio) -> std::unique_ptr<Codec> {
        return std::make_unique<Topk2bitCodec>(ratio);
      },
      .gradient_ahead = [](double ratio) { return usual_gradient_ahead * (1 - ratio); }};
  return spec;
}

}  // namespace syncopate
