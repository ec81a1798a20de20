#include "report/summary.hpp"

#include <algorithm>
#include <limits>

#include "report/counts.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes of training that a member sent: snapshots for the evaluator are none.
std::uint64_t traffic_of(const wire::Heartbeat& member) {
  return member.bytes_sent() - std::min(member.bytes_sent(), member.evaluation_bytes());
}

/// Samples per second of a device by itself in steps of a whole batch; where it said none, as the seconds in which
/// it computed tell.
double stand_alone_throughput(const wire::Heartbeat& worker) {
  if (worker.stand_alone_throughput() > 0) {
    return worker.stand_alone_throughput();
  }
  return ratio(static_cast<double>(worker.session_samples()), busy_seconds(worker));
}

/// `buckets` are pairs: the least value of a bucket, and how many values it counts.
Json with_buckets(const Histogram& histogram) {
  Json buckets = Json::array();
  for (const Histogram::Bucket& bucket : histogram.parts().buckets) {
    buckets.push_back({bucket.least, bucket.count});
  }
  return {{"median", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"max", histogram.max()},
          {"mean", histogram.mean()},
          {"buckets", std::move(buckets)}};
}

/// Of a worker that has compressed what it sent; else null.
Json compression_of(const wire::Heartbeat& worker) {
  if (worker.compressed_bytes() == 0) {
    return nullptr;
  }
  const std::uint64_t before = worker.compressed_values() * sizeof(float);
  return {
      {"bytes_before", before},
      {"bytes_after", worker.compressed_bytes()},
      {"ratio", ratio(static_cast<double>(before), static_cast<double>(worker.compressed_bytes()))},
      {"relative_error", worker.compression_error()}};
}

Json summary_of_worker(const Member& member, const MembersSaid& members) {
  const wire::Heartbeat& worker = members.workers.at(member.rank);
  const double session = worker.session_seconds();
  const auto reason = members.dropped.find(member.rank);
  return {
      {"rank", member.rank.value},
      {"device", member.device},
      {"samples", worker.session_samples()},
      {"steps", worker.step()},
      {"throughput", ratio(static_cast<double>(worker.session_samples()), session)},
      {"stand_alone_throughput", stand_alone_throughput(worker)},
      {"computing_time_ratio", ratio(busy_seconds(worker), session)},
      {"communication_ratio", ratio(worker.communicate_seconds(), session)},
      {"wait_ratio", ratio(worker.wait_seconds(), session)},
      {"wait_seconds", worker.wait_seconds()},
      {"forward_seconds", worker.forward_seconds()},
      {"backward_seconds", worker.backward_seconds()},
      {"update_seconds", worker.update_seconds()},
      {"traffic_bytes", traffic_of(worker)},
      {"evaluation_bytes", worker.evaluation_bytes()},
      {"local_bytes", worker.bytes_handed_over()},
      {"received_bytes", worker.bytes_received()},
      {"compression", compression_of(worker)},
      {"pace_overruns", worker.overruns()},
      {"dropped_gradients", worker.dropped()},
      {"skipped_batches", worker.skipped()},
      {"cancelled_steps", worker.cancelled()},
      {"dropped_because", reason == members.dropped.end() ? Json(nullptr) : Json(reason->second)},
      {"staleness", with_buckets(from_wire(worker.staleness()))}};
}

Json summary_of_server(const Member& member, const wire::Heartbeat& server) {
  const Histogram queue = from_wire(server.queue_length());
  return {{"shard", member.rank.value},
          {"updates", server.round()},
          {"traffic_bytes", traffic_of(server)},
          {"evaluation_bytes", server.evaluation_bytes()},
          {"local_bytes", server.bytes_handed_over()},
          {"busy_ratio", ratio(server.busy_seconds(), server.session_seconds())},
          {"queue_length", {{"mean", queue.mean()}, {"max", queue.max()}}}};
}

/// What is added up over workers.
struct Totals {
  double stand_alone = 0;
  double session_samples = 0;
  std::uint64_t traffic = 0;
  std::uint64_t local = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;
  std::uint64_t cancelled = 0;
  Histogram staleness{};
  Json list = Json::array();
};

Totals totals_of_workers(const RunResult& result) {
  Totals totals;
  for (const Member& member : result.view.workers()) {
    const wire::Heartbeat& worker = result.members.workers.at(member.rank);
    totals.stand_alone += stand_alone_throughput(worker);
    totals.session_samples += static_cast<double>(worker.session_samples());
    totals.traffic += traffic_of(worker);
    totals.local += worker.bytes_handed_over();
    totals.dropped += worker.dropped();
    totals.skipped += worker.skipped();
    totals.cancelled += worker.cancelled();
    totals.staleness.merge(from_wire(worker.staleness()));
    totals.list.push_back(summary_of_worker(member, result.members));
  }
  return totals;
}

Json evaluations_of(const Scoreboard& scoreboard) {
  Json evaluations = Json::array();
  for (const EvaluationResult& evaluation : scoreboard.results()) {
    evaluations.push_back(to_json(evaluation));
  }
  return evaluations;
}

}  // namespace

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double busy_seconds(const wire::Heartbeat& worker) {
  return worker.data_seconds() + worker.compute_seconds();
}

Json or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const EvaluationResult& result) {
  return {{"round", result.round},
          {"samples", result.samples},
          {"epoch", result.epoch},
          {"training_seconds", result.training_seconds},
          {"accuracy", result.accuracy},
          {"loss", result.loss},
          {"evaluation_seconds", result.evaluation_seconds},
          {"batch_norm", result.batch_norm.empty() ? Json(nullptr) : Json(result.batch_norm)}};
}

EvaluationResult evaluation_from(const Json& object) {
  const auto number = [&](const char* name) {
    const Json& value = object.at(name);
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  const Json batch_norm = object.value("batch_norm", Json());
  return {.round = object.at("round"),
          .samples = object.at("samples"),
          .epoch = number("epoch"),
          .training_seconds = number("training_seconds"),
          .accuracy = number("accuracy"),
          .loss = number("loss"),
          .evaluation_seconds = object.value("evaluation_seconds", 0.0),
          .batch_norm = batch_norm.is_null() ? "" : batch_norm.get<std::string>()};
}

Json make_summary(const RunResult& result) {
  const wire::Heartbeat& job = result.job;
  Totals workers = totals_of_workers(result);
  Json servers = Json::array();
  for (const Member& member : result.view.of(Role::server)) {
    const auto server = result.members.servers.find(member.rank);
    if (server != result.members.servers.end()) {
      workers.traffic += traffic_of(server->second);
      workers.local += server->second.bytes_handed_over();
      servers.push_back(summary_of_server(member, server->second));
    }
  }
  // What was left out by design was computed, but never entered the model.
  const double entered = result.members.servers.empty() || job.session_samples() == 0
                             ? workers.session_samples
                             : static_cast<double>(job.session_samples());
  const Scoreboard& scoreboard = result.scoreboard;
  return {{"scheme", result.config.scheme},
          {"network", result.config.network->name},
          {"data", result.config.data},
          {"seed", result.config.seed},
          {"virtual_time", result.config.virtual_time},
          {"learning_rate", or_null(result.config.learning_rate)},
          {"run_dir", result.folder.root().string()},
          {"ended_because", result.ended_because},
          {"accuracy", or_null(scoreboard.last_accuracy())},
          {"best_accuracy", or_null(scoreboard.best_accuracy())},
          {"target_accuracy", or_null(result.config.target_accuracy)},
          {"time_to_target_seconds", or_null(scoreboard.time_to_target_seconds())},
          {"training_seconds", job.job_seconds()},
          {"samples", job.job_samples()},
          {"epochs", job.epoch()},
          {"rounds", job.round()},
          {"loss", job.loss()},
          {"throughput", ratio(static_cast<double>(job.job_samples()), job.job_seconds())},
          {"cluster_efficiency", ratio(ratio(entered, job.session_seconds()), workers.stand_alone)},
          {"aggregate", job.aggregate().empty() ? Json(nullptr) : Json(job.aggregate())},
          {"compress", to_string(result.config.compress)},
          {"traffic_bytes", workers.traffic},
          {"local_bytes", workers.local},
          {"dropped_gradients", workers.dropped},
          {"skipped_batches", workers.skipped},
          {"cancelled_steps", workers.cancelled},
          {"staleness", with_buckets(workers.staleness)},
          {"workers", std::move(workers.list)},
          {"servers", std::move(servers)},
          {"evaluations", evaluations_of(scoreboard)}};
}

}  // namespace syncopate
