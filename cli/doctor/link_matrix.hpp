#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/finding.hpp"
#include "collective/group.hpp"
#include "runtime/world.hpp"

namespace syncopate::cli {

/// The latency and the bandwidth between each two ranks. Shape: [ranks][ranks], symmetric, 0 on the
/// diagonal.
struct LinkMatrix {
  std::vector<std::vector<double>>
      latency_seconds;  ///< one way, of 8 bytes, half of a median round trip
  std::vector<std::vector<double>> bytes_per_second;  ///< of 4 MiB, the best of a few
  std::vector<std::uint32_t> hosts;                   ///< of each rank
  /// How messages get from a rank to another one (`Transport::path_to`); only at rank 0.
  std::vector<std::vector<std::string>> paths = {};
};

/// Measures one pair after the other, measures pairs that seem slow again a few times, and keeps
/// the best figures of each. A collective of the group: all ranks get all figures. Errors: those of
/// transports; TimedOut names no ranks.
LinkMatrix measure_matrix(Group& all);

/// One finding with the median speed of the links within hosts, one of those between hosts, and one
/// for each link that is several times slower than the median of its kind.
Findings judge_links(const LinkMatrix& matrix);

/// Three tables for up to 16 ranks; none for more.
std::vector<std::string> lines_of(const LinkMatrix& matrix);

void add_to(nlohmann::ordered_json& json, const LinkMatrix& matrix);

/// The findings of all ranks, which rank 0 collects.
struct Consultation {
  Findings findings;
  LinkMatrix links;
};

/// Collects the findings of all ranks at rank 0, each with its rank, and measures the links between
/// the ranks. A collective of the group; empty on other ranks than 0. Errors: those of transports.
std::optional<Consultation> consult(Group& all, Findings own);

}  // namespace syncopate::cli
