#include "telemetry/member_status.hpp"

#include "base/whole.hpp"

namespace syncopate {

wire::Heartbeat to_wire(const MemberStatus& status) {
  wire::Heartbeat heartbeat;
  heartbeat.set_phase(status.phase);
  heartbeat.set_step(whole_of(status.metrics[Metric::steps]) + status.empty_steps);
  heartbeat.set_computing(status.computing);
  heartbeat.set_expected_seconds(to_seconds(status.expected));
  heartbeat.set_aggregate(status.aggregate);
  const auto measured = status.metrics.measured();
  heartbeat.mutable_metrics()->Add(measured.begin(), measured.end());
  *heartbeat.mutable_staleness() = to_wire(status.staleness);
  *heartbeat.mutable_queue_length() = to_wire(status.queue_length);
  return heartbeat;
}

MetricValues metrics_in(const wire::Heartbeat& heartbeat, MetricTable table) {
  return {table, {heartbeat.metrics().data(), static_cast<std::size_t>(heartbeat.metrics_size())}};
}

std::string program_wait_in(const std::string& operation) {
  return operation.empty() ? "a send or a receive" : operation;
}

wire::Counts to_wire(const Histogram& histogram) {
  const Histogram::Parts parts = histogram.parts();
  wire::Counts counts;
  for (const Histogram::Bucket& bucket : parts.buckets) {
    wire::Counts::Bucket& sent = *counts.add_buckets();
    sent.set_least(bucket.least);
    sent.set_count(bucket.count);
  }
  counts.set_max(parts.max);
  counts.set_sum(parts.sum);
  return counts;
}

Histogram from_wire(const wire::Counts& counts) {
  Histogram::Parts parts{.buckets = {}, .max = counts.max(), .sum = counts.sum()};
  for (const wire::Counts::Bucket& bucket : counts.buckets()) {
    parts.buckets.push_back({.least = bucket.least(), .count = bucket.count()});
  }
  return Histogram::from(parts);
}

wire::Heartbeat StatusBoard::message() const {
  const MutexLock lock(mutex_);
  return to_wire(status_);
}

MetricValues StatusBoard::metrics() const {
  const MutexLock lock(mutex_);
  return status_.metrics;
}

}  // namespace syncopate
