#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::cli {

/// What the doctor says of one thing.
struct Finding {
  std::string subject;  ///< "open files"
  bool ok = true;
  std::string text;                        ///< what was found; of a problem, what was expected, too
  std::string advice = {};                 ///< what to do; a problem has some
  std::optional<std::uint32_t> rank = {};  ///< of a launched job; empty: of all

  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

/// "ok       open files   20,000", "problem  …" with what to do in a line below it. Findings that
/// all of `ranks` ranks made in the same words are said once.
std::vector<std::string> lines_of(const Findings& findings, std::uint32_t ranks);

/// A list of `subject`, `ok`, `text`, `advice` and `rank`, where there are such.
nlohmann::ordered_json to_json(const Findings& findings);
/// What `to_json` made.
Findings findings_in(const nlohmann::ordered_json& json);

bool all_ok(const Findings& findings);

}  // namespace syncopate::cli
