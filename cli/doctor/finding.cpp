#include "cli/doctor/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

/// A finding that several ranks share.
struct SharedFinding {
  Finding finding;
  std::vector<std::uint32_t> ranks;
};

bool is_same(const Finding& one, const Finding& other) {
  return one.subject == other.subject && one.ok == other.ok && one.text == other.text &&
         one.advice == other.advice;
}

/// Groups findings by their subject.
std::vector<SharedFinding>::iterator after_same_subject(std::vector<SharedFinding>& all_shared,
                                                        const std::string& subject) {
  const auto last =
      std::find_if(all_shared.rbegin(), all_shared.rend(),
                   [&](const SharedFinding& shared) { return shared.finding.subject == subject; });
  return last == all_shared.rend() ? all_shared.end() : last.base();
}

std::vector<SharedFinding> shared_findings(const Findings& findings) {
  std::vector<SharedFinding> all_shared;
  for (const Finding& finding : findings) {
    auto known =
        std::find_if(all_shared.begin(), all_shared.end(),
                     [&](const SharedFinding& shared) { return is_same(shared.finding, finding); });
    if (known == all_shared.end()) {
      known = all_shared.insert(after_same_subject(all_shared, finding.subject), {finding, {}});
    }
    if (finding.rank) {
      known->ranks.push_back(*finding.rank);
    }
  }
  return all_shared;
}

/// "ranks 1, 3: "; empty if all ranks share the finding.
std::string ranks_prefix(const SharedFinding& shared, std::uint32_t ranks) {
  if (shared.ranks.empty() || shared.ranks.size() == ranks) {
    return {};
  }
  return fmt::format("{} {}: ", shared.ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(shared.ranks, ", "));
}

}  // namespace

std::vector<std::string> lines_of(const Findings& findings, std::uint32_t ranks) {
  const std::vector<SharedFinding> all_shared = shared_findings(findings);
  std::size_t widest = 0;
  for (const SharedFinding& shared : all_shared) {
    widest = std::max(widest, width_of(shared.finding.subject));
  }
  std::vector<std::string> lines;
  for (const SharedFinding& shared : all_shared) {
    const Finding& finding = shared.finding;
    lines.push_back(fmt::format("{:7}  {}  {}{}", finding.ok ? "ok" : "problem",
                                fitted(finding.subject, widest), ranks_prefix(shared, ranks),
                                finding.text));
    if (!finding.advice.empty()) {
      lines.push_back(fmt::format("{:{}}→ {}", "", 7 + 2 + widest + 2, finding.advice));
    }
  }
  return lines;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json one{
        {"subject", finding.subject}, {"ok", finding.ok}, {"text", finding.text}};
    if (!finding.advice.empty()) {
      one["advice"] = finding.advice;
    }
    if (finding.rank) {
      one["rank"] = *finding.rank;
    }
    list.push_back(std::move(one));
  }
  return list;
}

Findings findings_in(const nlohmann::ordered_json& json) {
  Findings findings;
  for (const auto& one : json) {
    Finding finding{.subject = one.at("subject"), .ok = one.at("ok"), .text = one.at("text")};
    finding.advice = one.value("advice", "");
    if (one.contains("rank")) {
      finding.rank = one.at("rank").get<std::uint32_t>();
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

bool all_ok(const Findings& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.ok; });
}

}  // namespace syncopate::cli
