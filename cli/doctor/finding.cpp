#include "cli/doctor/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

/// A finding that several ranks share.
struct Saying {
  Finding finding;
  std::vector<std::uint32_t> ranks;
};

bool says_the_same(const Finding& one, const Finding& other) {
  return one.subject == other.subject && one.ok == other.ok && one.text == other.text &&
         one.advice == other.advice;
}

/// Groups findings by their subject.
std::vector<Saying>::iterator after_its_like(std::vector<Saying>& sayings,
                                             const std::string& subject) {
  const auto last = std::find_if(sayings.rbegin(), sayings.rend(), [&](const Saying& saying) {
    return saying.finding.subject == subject;
  });
  return last == sayings.rend() ? sayings.end() : last.base();
}

std::vector<Saying> sayings_of(const Findings& findings) {
  std::vector<Saying> sayings;
  for (const Finding& finding : findings) {
    auto known = std::find_if(sayings.begin(), sayings.end(), [&](const Saying& saying) {
      return says_the_same(saying.finding, finding);
    });
    if (known == sayings.end()) {
      known = sayings.insert(after_its_like(sayings, finding.subject), {finding, {}});
    }
    if (finding.rank) {
      known->ranks.push_back(*finding.rank);
    }
  }
  return sayings;
}

/// "ranks 1, 3: "; empty where all ranks share the finding.
std::string who_says(const Saying& saying, std::uint32_t ranks) {
  if (saying.ranks.empty() || saying.ranks.size() == ranks) {
    return {};
  }
  return fmt::format("{} {}: ", saying.ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(saying.ranks, ", "));
}

}  // namespace

std::vector<std::string> lines_of(const Findings& findings, std::uint32_t ranks) {
  const std::vector<Saying> sayings = sayings_of(findings);
  std::size_t widest = 0;
  for (const Saying& saying : sayings) {
    widest = std::max(widest, width_of(saying.finding.subject));
  }
  std::vector<std::string> lines;
  for (const Saying& saying : sayings) {
    const Finding& finding = saying.finding;
    lines.push_back(fmt::format("{:7}  {}  {}{}", finding.ok ? "ok" : "problem",
                                fitted(finding.subject, widest), who_says(saying, ranks),
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
