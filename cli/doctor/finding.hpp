#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::cli {

/// The result of one check.
struct Finding {
  std::string subject;  ///< "open files"
  bool ok = true;
  std::string text;                        ///< the facts; for a problem also the expected ones
  std::string advice = {};                 ///< a remedy; set for every problem
  std::optional<std::uint32_t> rank = {};  ///< in a launched job; empty: all ranks

  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

/// "ok open files 20,000", or "problem …" with the advice on the next line. A finding that all of
/// `ranks` ranks share is printed once.
std::vector<std::string> lines_of(const Findings& findings, std::uint32_t ranks);

/// A list of objects with `subject`, `ok`, `text`, and `advice` and `rank` where they are set.
nlohmann::ordered_json to_json(const Findings& findings);
/// Reads the result of `to_json`.
Findings findings_in(const nlohmann::ordered_json& json);

bool all_ok(const Findings& findings);

}  // namespace syncopate::cli
