#include "cli/doctor/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "collective/basic_collectives.hpp"

namespace syncopate::cli {
namespace {

constexpr double most_seconds_apart = 1;

/// By this host's clock, which others may set differently.
double seconds_since_the_epoch() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

Finding compare_clocks(Group& all) {
  std::vector<double> clocks(all.size());
  barrier(all);
  const double own = seconds_since_the_epoch();
  allgather(all, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(clocks)));
  const auto [first, last] = std::minmax_element(clocks.begin(), clocks.end());
  Finding finding{.subject = "clocks",
                  .ok = *last - *first <= most_seconds_apart,
                  .text = fmt::format("at most {:.3f} s apart", *last - *first)};
  if (!finding.ok) {
    finding.text += fmt::format(", rank {} is behind, rank {} ahead; expected {} s at most",
                                first - clocks.begin(), last - clocks.begin(), most_seconds_apart);
    finding.advice = "run an NTP client on every host: logs of several hosts will not fit together";
  }
  return finding;
}

void tell_rank_zero(Group& all, const Findings& own) {
  const std::string text = to_json(own).dump();
  const auto bytes = std::as_bytes(std::span(text));
  all.transport().post(all.node(Rank{0}), tags::to_coordinator, {bytes.begin(), bytes.end()});
}

Findings receive_findings(Group& all, Rank rank) {
  const Message message =
      all.transport().receive(all.node(rank), tags::to_coordinator, all.deadline());
  const std::string_view text(reinterpret_cast<const char*>(message.payload.data()),
                              message.payload.size());
  return findings_in(nlohmann::ordered_json::parse(text));
}

}  // namespace

std::optional<Consultation> consult(Group& all, Findings own) {
  for (Finding& finding : own) {
    finding.rank = all.rank().value;
  }
  Consultation consultation{.findings = own, .links = measure_matrix(all)};
  const Finding clocks = compare_clocks(all);
  if (all.rank() != Rank{0}) {
    tell_rank_zero(all, own);
    return std::nullopt;
  }
  Findings& findings = consultation.findings;
  for (std::uint32_t rank = 1; rank < all.size(); ++rank) {
    const Findings others = receive_findings(all, Rank{rank});
    findings.insert(findings.end(), others.begin(), others.end());
  }
  findings.push_back(clocks);
  const Findings links = judge_links(consultation.links);
  findings.insert(findings.end(), links.begin(), links.end());
  return consultation;
}

}  // namespace syncopate::cli
