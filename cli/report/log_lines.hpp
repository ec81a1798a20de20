#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::cli {

/// The objects of a file of JSON lines.
struct JsonLines {
  std::vector<nlohmann::ordered_json> objects = {};
  std::size_t damaged = 0;  ///< lines that are no object
  bool half_line = false;   ///< the last line is incomplete: a process is still writing it
};

JsonLines json_lines_in(const std::string& text);

/// Returns no objects if there is no such file. Errors: DataError if the file cannot be read.
JsonLines read_json_lines(const std::filesystem::path& file);

/// The number in a field; `otherwise` if it is missing, null or of another type.
double number_at(const nlohmann::ordered_json& object, const char* field, double otherwise = 0);
std::string text_at(const nlohmann::ordered_json& object, const char* field);

}  // namespace syncopate::cli
