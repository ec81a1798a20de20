#include "cli/doctor/link_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "cli/view/table.hpp"
#include "collective/basic_collectives.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

using Rows = std::vector<std::vector<double>>;

constexpr Tag letters = tags::broadcast;
constexpr int round_trips = 30;
constexpr int long_trips = 4;
constexpr std::size_t short_bytes = 8;
constexpr std::size_t long_bytes = std::size_t{4} << 20;
constexpr std::size_t most_in_a_table = 16;
constexpr double several_times = 4;
/// A link that seems slow is measured again: another process may have had the core.
constexpr int more_measurements = 4;

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One pair of ranks. The lower rank leads and measures the time.
class Pair {
 public:
  Pair(Group& all, Rank peer) : all_(all), peer_(all.node(peer)), leads_(all.rank() < peer) {}

  /// Seconds of round trips: `bytes` in one direction, one message in the other.
  std::vector<double> time(std::size_t bytes, std::size_t back, int trips) {
    std::vector<std::byte> outgoing(leads_ ? bytes : back);
    std::vector<std::byte> incoming(leads_ ? back : bytes);
    std::vector<double> seconds;
    for (int trip = 0; trip < trips; ++trip) {
      const TimePoint begun = all_.world().now();
      if (leads_) {
        send(all_.transport(), peer_, letters, outgoing, all_.deadline());
      }
      receive_into(all_.transport(), peer_, letters, incoming, all_.deadline());
      if (!leads_) {
        send(all_.transport(), peer_, letters, outgoing, all_.deadline());
      }
      seconds.push_back(to_seconds(all_.world().now() - begun));
    }
    return seconds;
  }

 private:
  Group& all_;
  const NodeId peer_;
  const bool leads_;
};

/// Every rank receives the rows of all ranks.
Rows exchanged(Group& all, const std::vector<double>& mine) {
  std::vector<double> everything(mine.size() * all.size());
  allgather(all, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(everything)));
  Rows rows(all.size());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const auto begin = everything.begin() + static_cast<std::ptrdiff_t>(rank * mine.size());
    rows[rank].assign(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
  }
  return rows;
}

/// The lower rank of each pair holds the measurement.
void mirror(Rows& rows) {
  for (std::size_t low = 0; low < rows.size(); ++low) {
    for (std::size_t high = low + 1; high < rows.size(); ++high) {
      rows[high][low] = rows[low][high];
    }
  }
}

/// The two ranks of a link.
struct LinkEnds {
  std::size_t low;
  std::size_t high;
};

std::vector<LinkEnds> links_of(const LinkMatrix& matrix, bool within_a_host) {
  std::vector<LinkEnds> links;
  for (std::size_t low = 0; low < matrix.hosts.size(); ++low) {
    for (std::size_t high = low + 1; high < matrix.hosts.size(); ++high) {
      if ((matrix.hosts[low] == matrix.hosts[high]) == within_a_host) {
        links.push_back({low, high});
      }
    }
  }
  return links;
}

double median_over(const std::vector<LinkEnds>& links, const Rows& rows) {
  std::vector<double> values;
  for (const LinkEnds& link : links) {
    values.push_back(rows[link.low][link.high]);
  }
  return median_of(std::move(values));
}

/// Returns the links that are several times slower than the median of their kind.
std::vector<LinkEnds> slow_links(const LinkMatrix& matrix, bool within_a_host) {
  const std::vector<LinkEnds> links = links_of(matrix, within_a_host);
  const double usual = median_over(links, matrix.bytes_per_second);
  std::vector<LinkEnds> slow;
  for (const LinkEnds& link : links) {
    if (matrix.bytes_per_second[link.low][link.high] * several_times < usual) {
      slow.push_back(link);
    }
  }
  return slow;
}

void judge_kind(const LinkMatrix& matrix, bool within_a_host, Findings& findings) {
  const std::vector<LinkEnds> links = links_of(matrix, within_a_host);
  if (links.empty()) {
    return;
  }
  const char* subject = within_a_host ? "links within hosts" : "links between hosts";
  const double usual = median_over(links, matrix.bytes_per_second);
  findings.push_back(
      {.subject = subject,
       .text = fmt::format("{}, median {:.1f} µs and {:.2f} GB/s", links.size(),
                           median_over(links, matrix.latency_seconds) * 1e6, usual / 1e9)});
  for (const LinkEnds& link : slow_links(matrix, within_a_host)) {
    findings.push_back(
        {.subject = subject,
         .ok = false,
         .text = fmt::format("ranks {} and {}: {:.3f} GB/s, median {:.2f}", link.low, link.high,
                             matrix.bytes_per_second[link.low][link.high] / 1e9, usual / 1e9),
         .advice = "check for a busy host, another switch, or a slower network interface"});
  }
}

/// Measures links, one after the other, and keeps the best figures of each.
class LinkMeter {
 public:
  explicit LinkMeter(Group& all)
      : all_(all), latencies_(all.size(), unmeasured), speeds_(all.size()) {
    latencies_[all.rank().value] = 0;
  }

  /// A collective of the group.
  void measure(const std::vector<LinkEnds>& links) {
    const std::size_t self = all_.rank().value;
    for (const auto [low, high] : links) {
      barrier(all_);
      if (self == low || self == high) {
        measure_peer(self == low ? high : low);
      }
    }
  }

  /// A collective of the group.
  void share_with_all(LinkMatrix& matrix) {
    matrix.latency_seconds = exchanged(all_, latencies_);
    matrix.bytes_per_second = exchanged(all_, speeds_);
    mirror(matrix.latency_seconds);
    mirror(matrix.bytes_per_second);
  }

 private:
  static constexpr double unmeasured = std::numeric_limits<double>::infinity();

  void measure_peer(std::size_t peer) {
    Pair pair(all_, Rank{static_cast<std::uint32_t>(peer)});
    const double latency = median_of(pair.time(short_bytes, short_bytes, round_trips)) / 2;
    const std::vector<double> trips = pair.time(long_bytes, short_bytes, long_trips);
    const double seconds = *std::min_element(trips.begin(), trips.end());
    latencies_[peer] = std::min(latencies_[peer], latency);
    speeds_[peer] = std::max(speeds_[peer], static_cast<double>(long_bytes) / seconds);
  }

  Group& all_;
  std::vector<double> latencies_;  ///< to each rank, seconds
  std::vector<double> speeds_;     ///< to each rank, bytes a second
};

using Texts = std::vector<std::vector<std::string>>;

/// `rows`: of each rank, by the other rank.
std::vector<std::string> table_of(const std::string& title, const Texts& rows) {
  std::vector<Table::Column> columns{{title, Table::Align::left}};
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    columns.push_back({fmt::format("rank {}", rank)});
  }
  Table table(columns);
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    std::vector<std::string> cells{fmt::format("rank {}", rank)};
    for (std::size_t other = 0; other < rows.size(); ++other) {
      cells.push_back(rank == other ? "·" : rows[rank][other]);
    }
    table.add(cells);
  }
  return table.lines();
}

Texts texts_of(const Rows& rows, double unit, int digits) {
  Texts texts;
  for (const std::vector<double>& row : rows) {
    texts.emplace_back();
    for (const double value : row) {
      texts.back().push_back(fmt::format("{:.{}f}", value / unit, digits));
    }
  }
  return texts;
}

}  // namespace

LinkMatrix measure_matrix(Group& all) {
  LinkMeter meter(all);
  LinkMatrix matrix;
  matrix.hosts = all.hosts();
  for (const bool within_a_host : {true, false}) {
    meter.measure(links_of(matrix, within_a_host));
  }
  meter.share_with_all(matrix);
  for (int again = 0; again < more_measurements; ++again) {
    for (const bool within_a_host : {true, false}) {
      meter.measure(slow_links(matrix, within_a_host));
    }
    meter.share_with_all(matrix);
  }
  return matrix;
}

Findings judge_links(const LinkMatrix& matrix) {
  Findings findings;
  judge_kind(matrix, true, findings);
  judge_kind(matrix, false, findings);
  return findings;
}

std::vector<std::string> lines_of(const LinkMatrix& matrix) {
  if (matrix.hosts.size() > most_in_a_table) {
    return {};
  }
  std::vector<std::string> lines;
  for (const auto& table : {table_of("latency, µs", texts_of(matrix.latency_seconds, 1e-6, 1)),
                            table_of("bandwidth, GB/s", texts_of(matrix.bytes_per_second, 1e9, 2)),
                            table_of("to", matrix.paths)}) {
    lines.insert(lines.end(), table.begin(), table.end());
    lines.emplace_back();
  }
  lines.pop_back();
  return lines;
}

void add_to(nlohmann::ordered_json& json, const LinkMatrix& matrix) {
  json["hosts"] = matrix.hosts;
  json["latency_seconds"] = matrix.latency_seconds;
  json["bytes_per_second"] = matrix.bytes_per_second;
  json["paths"] = matrix.paths;
}

namespace {

constexpr double most_seconds_apart = 1;

/// The time of this host's clock, which may differ from the clocks of other hosts.
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
    finding.advice = "run an NTP client on every host, so that the times in their logs agree";
  }
  return finding;
}

/// What a rank reports to rank 0.
struct Account {
  Findings findings;
  std::vector<std::string> paths;  ///< to each rank
};

std::vector<std::string> own_paths(Group& all) {
  std::vector<std::string> paths;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    paths.push_back(all.transport().path_to(all.node(Rank{rank})));
  }
  return paths;
}

void report_to_rank_zero(Group& all, const Account& own) {
  const std::string text =
      json_text(nlohmann::ordered_json{{"findings", to_json(own.findings)}, {"paths", own.paths}});
  const auto bytes = std::as_bytes(std::span(text));
  all.transport().post(all.node(Rank{0}), letters, {bytes.begin(), bytes.end()});
}

Account receive_account(Group& all, Rank rank) {
  const Message message = all.transport().receive(all.node(rank), letters, all.deadline());
  const std::string_view text(reinterpret_cast<const char*>(message.payload.data()),
                              message.payload.size());
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    Account account{findings_in(json.at("findings")), json.at("paths")};
    account.paths.resize(all.size());
    return account;
  } catch (const nlohmann::ordered_json::exception&) {
    throw ProtocolError(fmt::format(
        "rank {}: expected its findings as JSON, found '{}'; run one build of Syncopate everywhere",
        rank.value, excerpt(text, 60)));
  }
}

}  // namespace

std::optional<Consultation> consult(Group& all, Findings own) {
  for (Finding& finding : own) {
    finding.rank = all.rank().value;
  }
  Consultation consultation{.findings = own, .links = measure_matrix(all)};
  const Finding clocks = compare_clocks(all);
  if (all.rank() != Rank{0}) {
    report_to_rank_zero(all, {std::move(own), own_paths(all)});
    return std::nullopt;
  }
  Findings& findings = consultation.findings;
  consultation.links.paths.push_back(own_paths(all));
  for (std::uint32_t rank = 1; rank < all.size(); ++rank) {
    Account other = receive_account(all, Rank{rank});
    findings.insert(findings.end(), other.findings.begin(), other.findings.end());
    consultation.links.paths.push_back(std::move(other.paths));
  }
  findings.push_back(clocks);
  const Findings links = judge_links(consultation.links);
  findings.insert(findings.end(), links.begin(), links.end());
  return consultation;
}

}  // namespace syncopate::cli
