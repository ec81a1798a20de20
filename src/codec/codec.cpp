#include "codec/codec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/errors.hpp"

namespace syncopate {

#define CODEC(name) const CodecSpec& name##_codec();
#include "codec/codecs.inc"
#undef CODEC

namespace {

constexpr std::string_view no_codec = "none";

std::vector<const CodecSpec*> listed() {
  return {
#define CODEC(name) &name##_codec(),
#include "codec/codecs.inc"
#undef CODEC
  };
}

std::optional<double> parameter_in(const CodecParameter& parameter, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole_text = end == text.data() + text.size();
  const bool in_range = value > 0 && value <= parameter.most;
  return error == std::errc() && whole_text && in_range ? std::optional(value) : std::nullopt;
}

/// Empty if `text` does not name this codec.
std::optional<Compression> compression_by(const CodecSpec& codec, std::string_view text) {
  if (!codec.parameter) {
    return text == codec.name ? std::optional(Compression{.codec = &codec}) : std::nullopt;
  }
  if (!text.starts_with(codec.name) || !text.substr(codec.name.size()).starts_with(':')) {
    return std::nullopt;
  }
  std::string_view number = text.substr(codec.name.size() + 1);
  if (!number.ends_with(codec.parameter->suffix)) {
    return std::nullopt;
  }
  number.remove_suffix(codec.parameter->suffix.size());
  const auto parameter = parameter_in(*codec.parameter, number);
  return parameter ? std::optional(Compression{.codec = &codec, .parameter = *parameter})
                   : std::nullopt;
}

std::optional<Compression> compression_in(std::string_view text) {
  for (const CodecSpec* const codec : all_codecs()) {
    if (const auto found = compression_by(*codec, text)) {
      return found;
    }
  }
  return std::nullopt;
}

/// "topk:RATIO/2bit", with `number` "RATIO".
template <class Number>
std::string form_of(const CodecSpec& codec, const Number& number) {
  return fmt::format("{}:{}{}", codec.name, number, codec.parameter->suffix);
}

/// One text for each codec with a parameter.
template <class Text>
std::string for_parametrised(const Text& text, std::string_view separator) {
  std::vector<std::string> texts;
  for (const CodecSpec* const codec : all_codecs()) {
    if (codec->parameter) {
      texts.push_back(text(*codec));
    }
  }
  return fmt::format("{}", fmt::join(texts, separator));
}

}  // namespace

std::span<const CodecSpec* const> all_codecs() {
  static const std::vector<const CodecSpec*> all = listed();
  return all;
}

Compression Compression::parse(std::string_view text) {
  if (text == no_codec) {
    return {};
  }
  if (const auto found = compression_in(text)) {
    return *found;
  }
  const std::string ranges = for_parametrised(
      [](const CodecSpec& codec) {
        const CodecParameter& parameter = *codec.parameter;
        return fmt::format("{} with {} in (0, {}]", form_of(codec, parameter.name), parameter.name,
                           parameter.most);
      },
      ", ");
  throw ConfigError(fmt::format("expected one of {}, {}; found '{}'",
                                fmt::join(compression_names(), ", "), ranges, text));
}

std::string to_string(const Compression& compression) {
  if (!compression) {
    return std::string(no_codec);
  }
  const CodecSpec& codec = *compression.codec;
  return codec.parameter ? form_of(codec, compression.parameter) : std::string(codec.name);
}

std::unique_ptr<Codec> make_codec(const Compression& compression) {
  if (!compression) {
    throw InternalError("a codec was requested without compression");
  }
  return compression.codec->make(compression.parameter);
}

std::vector<std::string_view> compression_names() {
  std::vector<std::string_view> names{no_codec};
  for (const CodecSpec* const codec : all_codecs()) {
    if (!codec->parameter) {
      names.push_back(codec->name);
    }
  }
  return names;
}

bool is_parametrised_compression(std::string_view text) {
  const auto found = compression_in(text);
  return found && found->codec->parameter;
}

std::string_view parametrised_compressions() {
  static const std::string forms = for_parametrised(
      [](const CodecSpec& codec) { return form_of(codec, codec.parameter->name); }, ", ");
  return forms;
}

std::string_view compression_help() {
  static const std::string help = for_parametrised(
      [](const CodecSpec& codec) {
        return fmt::format("{}: {}", form_of(codec, codec.parameter->name), codec.help);
      },
      "; ");
  return help;
}

}  // namespace syncopate
