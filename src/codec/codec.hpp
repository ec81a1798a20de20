#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct CodecSpec;

/// Encodes float32 values into fewer bytes, and decodes these.
///
/// Values are encoded in blocks, each by itself: a block stays in the cache between its passes, and
/// parts of a vector that end with a block may be encoded separately. The number of bytes of a
/// block depends only on its length, so a receiver knows how many to expect.
///
/// Invariant: decoding gives the same bits on every CPU.
///
/// A value that is not finite decodes to NaN, or to itself; all values of its group may become NaN
/// with it. A finite value decodes to a finite one.
///
/// Thread: one at a time.
class Codec {
 public:
  static constexpr std::size_t block_values = 65536;

  virtual ~Codec() = default;

  virtual const CodecSpec& spec() const = 0;

  /// The bytes of a block of `values` values, at most `block_values`.
  virtual std::size_t block_bytes(std::size_t values) const = 0;
  /// `into` is `block_bytes` long, at an address that is a multiple of 4.
  virtual void encode(std::span<const float> block, std::span<std::byte> into) = 0;
  /// `from` is `block_bytes` long, at an address that is a multiple of 4.
  /// Errors: ProtocolError if `encode` does not produce such bytes; `block` is then unspecified.
  virtual void decode(std::span<const std::byte> from, std::span<float> block) const = 0;
};

/// The parameter of a codec: a number in (0, most].
struct CodecParameter {
  std::string_view name;  ///< in help texts: "RATIO"
  double most = 1;
  std::string_view suffix = "";  ///< after the number: "/2bit"
};

/// A codec, declared once, in its own file. The command line, the configuration file, the help text
/// and the frames read this.
struct CodecSpec {
  std::string_view name;    ///< as `--compress` reads it: "int8"; with the suffix, it is unique
  std::uint8_t number = 0;  ///< in the header of frames; above 0, unique and never reused
  std::string_view
      help{};  ///< of a codec with a parameter: "the greatest values, a RATIO of them in (0, 1]"
  std::optional<CodecParameter> parameter{};  ///< after the name: "topk:0.01"

  std::unique_ptr<Codec> (*make)(double parameter) = nullptr;

  /// The part of a gradient that momentum correction sends ahead: see `MomentumCorrection`. Zero
  /// for a codec that loses next to nothing.
  double (*gradient_ahead)(double parameter) = [](double) { return 0.0; };
};

/// Every codec, in the order of help texts.
std::span<const CodecSpec* const> all_codecs();

/// How values are compressed when they are sent: the value of `--compress`.
struct Compression {
  const CodecSpec* codec = nullptr;  ///< null: not compressed
  double parameter = 0;              ///< of a codec that has one

  /// Reads "none", "int8" or "topk:0.01". Errors: ConfigError.
  static Compression parse(std::string_view text);

  explicit operator bool() const { return codec != nullptr; }
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// "topk:0.01", as `parse` reads it.
std::string to_string(const Compression& compression);

/// Errors: InternalError if `compression` has no codec.
std::unique_ptr<Codec> make_codec(const Compression& compression);

/// The values of `--compress` without a parameter: "none", "bf16", …
std::vector<std::string_view> compression_names();
/// True if `text` is the name of a codec and a parameter in its range: "topk:0.01".
bool is_parametrised_compression(std::string_view text);
/// The forms of values with a parameter: "topk:RATIO, topk:RATIO/2bit".
std::string_view parametrised_compressions();
/// The help of codecs with a parameter: "topk:RATIO: the greatest values, …".
std::string_view compression_help();

}  // namespace syncopate
