#include "config/toml_nesting.hpp"

#include <algorithm>
#include <string>

namespace syncopate {
namespace {

/// Reads a TOML text once, from its beginning to its end.
class NestingScan {
 public:
  explicit NestingScan(std::string_view text) : text_(text) {}

  std::optional<TextPosition> run() {
    while (at_ < text_.size()) {
      if (!step()) {
        return position();
      }
    }
    return std::nullopt;
  }

 private:
  /// Passes one character, one string or one comment. Returns false if the text is too deep.
  bool step() {
    const char next = text_[at_];
    if (next == '"' || next == '\'') {
      pass_string(next);
      return true;
    }
    if (next == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return true;
    }
    count(next);
    if (dots_ > most_dots_in_a_key || open_ > most_open_brackets) {
      return false;
    }
    ++at_;
    return true;
  }

  /// A key ends where a value, an entry, a bracket or a line begins or ends.
  void count(char next) {
    constexpr std::string_view ends_of_keys = "=,[]{}\n";
    if (next == '.') {
      ++dots_;
    } else if (ends_of_keys.find(next) != std::string_view::npos) {
      dots_ = 0;
    }
    if (next == '[' || next == '{') {
      ++open_;
    } else if ((next == ']' || next == '}') && open_ > 0) {
      --open_;
    }
  }

  void pass_string(char quote) {
    const std::string triple(3, quote);
    if (text_.substr(at_).starts_with(triple)) {
      at_ += triple.size();
      pass_to_end(quote, triple);
      // The last two of up to five quotes belong to the string.
      for (int more = 2; more > 0 && at_ < text_.size() && text_[at_] == quote; --more) {
        ++at_;
      }
    } else {
      ++at_;
      pass_to_end(quote, triple.substr(0, 1));
    }
  }

  /// Passes `end`, or stops at the end of the line that ends a string of one quote.
  void pass_to_end(char quote, std::string_view end) {
    while (at_ < text_.size() && !text_.substr(at_).starts_with(end)) {
      if (end.size() == 1 && text_[at_] == '\n') {
        return;
      }
      at_ += quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    }
    at_ = std::min(at_ + end.size(), text_.size());
  }

  TextPosition position() const {
    const std::string_view before = text_.substr(0, at_);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t line_end = before.rfind('\n');
    return {.line = static_cast<std::size_t>(lines) + 1,
            .column = line_end == std::string_view::npos ? at_ + 1 : at_ - line_end};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t dots_ = 0;
  std::size_t open_ = 0;
};

}  // namespace

std::optional<TextPosition> too_deep(std::string_view text) {
  return NestingScan(text).run();
}

}  // namespace syncopate
