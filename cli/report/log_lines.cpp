#include "cli/report/log_lines.hpp"

#include <sstream>

#include "base/file.hpp"

namespace syncopate::cli {

JsonLines json_lines_in(const std::string& text) {
  JsonLines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) {
      continue;
    }
    auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      lines.objects.push_back(std::move(object));
    } else if (stream.eof()) {  // no line end behind it
      lines.half_line = true;
    } else {
      ++lines.damaged;
    }
  }
  return lines;
}

JsonLines read_json_lines(const std::filesystem::path& file) {
  return is_there(file) ? json_lines_in(read_file(file)) : JsonLines{};
}

double number_at(const nlohmann::ordered_json& object, const char* field, double otherwise) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string text_at(const nlohmann::ordered_json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace syncopate::cli
