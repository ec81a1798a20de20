#pragma once

#include <syncopate.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace syncopate {
inline namespace v0 {

/// Options of `syncopate run`, given by their names: {"local-steps", "4"}.
using Options = std::map<std::string, std::string>;

namespace detail {

/// Options as an array of the C interface. The map must outlive this object.
class OptionList {
 public:
  explicit OptionList(const Options& options) {
    for (const auto& option : options) {
      list_.push_back({option.first.c_str(), option.second.c_str()});
    }
  }
  const syncopate_option* data() const { return list_.data(); }
  std::size_t size() const { return list_.size(); }

 private:
  std::vector<syncopate_option> list_;
};

/// Returns null for an empty string.
inline const char* text_or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
