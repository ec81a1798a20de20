#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// What values become while they travel: what `--compress` says.
struct Compression {
  /// The numbers travel in the heads of frames.
  enum class Kind : std::uint8_t {
    none = 0,
    bf16 = 1,    ///< the upper half of each float32
    fp16 = 2,    ///< IEEE 754 half precision
    int8 = 3,    ///< whole numbers from −127 to 127, a scale for every 256 values
    onebit = 4,  ///< signs, and two means for every 256 values
    topk = 5,    ///< the greatest of every 65,536 values
  };

  Kind kind = Kind::none;
  double ratio = 1;  ///< of topk: the share of values that travel, in (0, 1]

  /// Reads "none", "bf16", "fp16", "int8", "onebit" or "topk:0.01". Errors: ConfigError.
  static Compression parse(std::string_view text);

  explicit operator bool() const { return kind != Kind::none; }
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// "topk:0.01", as `parse` reads it.
std::string to_string(const Compression& compression);

/// The names of compressions without a parameter, in the order of help texts.
std::vector<std::string_view> compression_names();

/// Whether `text` is "topk:" and a share that `Compression::parse` takes.
bool is_topk(std::string_view text);

}  // namespace syncopate
