#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/json_lines.hpp"

namespace syncopate {

/// A log whose errors do not end training: if it cannot be opened or written, as on a full disk,
/// `report` gets the reason once, and the lines are lost. Later lines are tried again.
///
/// Thread: one at a time.
class LenientLines {
 public:
  using Report = std::function<void(const std::string& reason)>;

  LenientLines(std::filesystem::path path, JsonLines::Mode mode, Report report);
  ~LenientLines();
  LenientLines(const LenientLines&) = delete;
  LenientLines& operator=(const LenientLines&) = delete;

  void write(const nlohmann::ordered_json& object);
  void write_text(std::string_view object);
  void flush();

 private:
  void attempt(const std::function<void()>& operation);

  std::filesystem::path path_;
  Report report_;
  bool reported_ = false;
  std::optional<JsonLines> lines_;  ///< empty if the file cannot be opened
};

}  // namespace syncopate
