#include "telemetry/lenient_lines.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate {

LenientLines::LenientLines(std::filesystem::path path, JsonLines::Mode mode, Report report)
    : path_(std::move(path)), report_(std::move(report)) {
  attempt([&] { lines_.emplace(path_, mode); });
}

LenientLines::~LenientLines() {
  flush();
}

void LenientLines::write(const nlohmann::ordered_json& object) {
  if (lines_) {
    attempt([&] { lines_->write(object); });
  }
}

void LenientLines::write_text(std::string_view object) {
  if (lines_) {
    attempt([&] { lines_->write_text(object); });
  }
}

void LenientLines::flush() {
  if (lines_) {
    attempt([&] { lines_->flush(); });
  }
}

void LenientLines::attempt(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const DataError& error) {
    if (!std::exchange(reported_, true)) {
      report_(fmt::format("{}; training goes on, and this log lacks lines", error.what()));
    }
  }
}

}  // namespace syncopate
