// Goal:   a metric reaches the status message and each JSON object that its row names, and is
//         combined over members by the rule in its row; names are unique in each object.
// Method: the table itself, a table with one more row, fixed values.

#include "telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array all_names{&MetricNames::status,  &MetricNames::worker_status,
                               &MetricNames::summary, &MetricNames::worker,
                               &MetricNames::server,  &MetricNames::log};

TEST(Metrics, HaveOneNameEachInAnObject) {
  for (const auto name : all_names) {
    std::set<std::string_view> seen;
    for (const MetricSpec& spec : all_metrics()) {
      if (!(spec.names.*name).empty()) {
        EXPECT_TRUE(seen.insert(spec.names.*name).second) << spec.names.*name;
      }
    }
  }
}

TEST(Metrics, OfAJobSayHowTheyCombine) {
  for (const MetricSpec& spec : all_metrics()) {
    const bool of_job = !spec.names.summary.empty() || !spec.names.status.empty();
    EXPECT_EQ(of_job, spec.in_job != InJob::none) << spec.names.summary;
  }
}

TEST(Metrics, TravelInAHeartbeat) {
  MemberStatus status;
  status.phase = "data";
  status.metrics.set(Metric::steps, std::uint64_t{12});
  status.metrics.add(Metric::dropped_gradients);
  status.metrics.add(Metric::dropped_gradients, 2);
  status.metrics.set(Metric::bytes_sent, std::uint64_t{1} << 50);
  const wire::Heartbeat heartbeat = to_wire(status);
  EXPECT_EQ(heartbeat.step(), 12U);
  status.empty_steps = 3;
  EXPECT_EQ(to_wire(status).step(), 15U) << "a step without samples is a step on the way";
  const MetricValues values = metrics_in(heartbeat);
  EXPECT_EQ(values[Metric::steps], 12);
  EXPECT_EQ(values[Metric::dropped_gradients], 3);
  EXPECT_EQ(values[Metric::traffic_bytes], 1125899906842624.0);
}

TEST(Metrics, AreZeroWhereAHeartbeatHasNone) {
  const MetricValues values = metrics_in(wire::Heartbeat());
  for (std::size_t index = 0; index < all_metrics().size(); ++index) {
    EXPECT_EQ(values[Metric{index}], 0);
  }
}

TEST(Metrics, DeriveSharesOfTheSession) {
  MetricValues values;
  values.set(Metric::session_seconds, 50.0);
  values.set(Metric::data_seconds, 5.0);
  values.set(Metric::compute_seconds, 20.0);
  values.set(Metric::communicate_seconds, 15.0);
  values.set(Metric::wait_seconds, 10.0);
  values.set(Metric::samples, std::uint64_t{100});
  EXPECT_DOUBLE_EQ(values[Metric::computing_time_ratio], 0.5);
  EXPECT_DOUBLE_EQ(values[Metric::communication_ratio], 0.3);
  EXPECT_DOUBLE_EQ(values[Metric::wait_ratio], 0.2);
  EXPECT_DOUBLE_EQ(values[Metric::throughput], 2);
  EXPECT_DOUBLE_EQ(values[Metric::stand_alone_throughput], 4);
  values.set(Metric::whole_batch_throughput, 7.0);
  EXPECT_DOUBLE_EQ(values[Metric::stand_alone_throughput], 7);
}

TEST(Metrics, AreWholeNumbersOrRealOnesByTheirUnit) {
  MetricValues values;
  values.set(Metric::samples, std::uint64_t{3});
  values.set(Metric::wait_seconds, 3.0);
  Json worker;
  write_metrics(worker, &MetricNames::worker, values);
  EXPECT_TRUE(worker.at("samples").is_number_unsigned());
  EXPECT_TRUE(worker.at("wait_seconds").is_number_float());
}

/// Returns the table with one more row.
std::vector<MetricSpec> with_toy_metric() {
  std::vector<MetricSpec> table(all_metrics().begin(), all_metrics().end());
  table.push_back({.unit = MetricUnit::bytes,
                   .in_job = InJob::sum,
                   .names = {.worker_status = "toy", .summary = "toy", .worker = "toy"}});
  return table;
}

TEST(Metrics, TakeOneRow) {
  const std::vector<MetricSpec> table = with_toy_metric();
  const Metric toy{table.size() - 1};
  std::vector<MetricValues> members;
  for (const std::uint64_t value : {3, 4}) {
    StatusBoard board(table);
    board.update([&](MemberStatus& status) { status.metrics.set(toy, value); });
    members.push_back(metrics_in(board.message(), table));
  }
  Json worker;
  write_metrics(worker, &MetricNames::worker_status, members[1]);
  EXPECT_EQ(worker.at("toy"), 4);
  Json summary;
  write_job_metrics(summary, &MetricNames::summary, members, members[0]);
  EXPECT_EQ(summary.at("toy"), 7);
}

}  // namespace
}  // namespace syncopate
