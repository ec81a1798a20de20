#include "train/worker_report.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

JsonLines::Mode mode_of(const TrainingProgress& start) {
  return start == TrainingProgress{} ? JsonLines::Mode::create : JsonLines::Mode::append;
}

}  // namespace

WorkerReport::WorkerReport(World& world, MemberLink& link, Options options)
    : world_(world),
      link_(link),
      options_(std::move(options)),
      log_(options_.folder.worker_log(options_.rank), mode_of(options_.start),
           [](const std::string& reason) { log::warn("{}", reason); }) {
  link_.set_status_source([this] { return pull(); });
}

WorkerReport::~WorkerReport() {
  link_.set_status_source({});
}

void WorkerReport::enter(std::string_view phase) {
  status_.update([&](MemberStatus& status) {
    status.phase = phase;
    status.computing = phase == data || phase == computing;
  });
}

void WorkerReport::expect(Duration longest) {
  status_.update([&](MemberStatus& status) { status.expected = longest; });
}

void WorkerReport::count(Metric metric, std::uint64_t more) {
  status_.update([&](MemberStatus& status) { status.metrics.add(metric, more); });
}

void WorkerReport::step(const TrainingProgress& progress, std::uint64_t samples) {
  status_.update([&](MemberStatus& status) {
    status.empty_steps += options_.program && samples == 0 ? 1 : 0;
    status.metrics.set(Metric::steps, progress.step - status.empty_steps);
    status.metrics.add(Metric::samples, samples);
  });
}

void WorkerReport::progress(const TrainingProgress& progress, double epoch) {
  const Duration session = progress.training - options_.start.training;
  status_.update([&](MemberStatus& status) {
    MetricValues& metrics = status.metrics;
    metrics.set(Metric::steps, progress.step - status.empty_steps);
    metrics.set(Metric::rounds, progress.round);
    metrics.set(Metric::epochs, epoch);
    metrics.set(Metric::job_samples, progress.samples);
    metrics.set(Metric::job_seconds, to_seconds(progress.training));
    metrics.set(Metric::session_seconds, to_seconds(session));
  });
}

void WorkerReport::loss(double mean) {
  status_.update([&](MemberStatus& status) { status.metrics.set(Metric::loss, mean); });
}

void WorkerReport::classified(const PassResult& pass) {
  classified_.samples += pass.samples;
  classified_.correct += pass.correct;
}

void WorkerReport::held(Duration time) {
  held_ += time;
  status_.update([this](MemberStatus& status) {
    status.metrics.set(Metric::evaluate_seconds, to_seconds(held_));
  });
}

void WorkerReport::outcome(const Outcome& outcome, const Scheme& scheme, const StepTimes& times,
                           const StepEnd& end) {
  const auto* const traffic = offered<ReportsTraffic>(scheme);
  const CompressionStats compression = traffic ? traffic->compression() : CompressionStats();
  const std::uint64_t received = traffic ? traffic->bytes_received() : 0;
  for (const PushStatus& push : outcome.push_statuses) {
    if (!push.dropped) {
      staleness_.add(push.staleness);
    }
  }
  status_.update([&](MemberStatus& status) {
    MetricValues& metrics = status.metrics;
    for (const PushStatus& push : outcome.push_statuses) {
      metrics.add(Metric::dropped_gradients, push.dropped ? 1 : 0);
      if (!push.dropped) {
        status.staleness.add(push.staleness);
      }
    }
    times.report(metrics);
    metrics.set(Metric::epochs, end.epoch);
    metrics.set(Metric::session_seconds, to_seconds(end.training - options_.start.training));
    metrics.set(Metric::received_bytes, received);
    metrics.set(Metric::compressed_values, compression.values);
    metrics.set(Metric::compressed_bytes, compression.encoded_bytes);
    metrics.set(Metric::compression_error, compression.error());
  });
}

void WorkerReport::aggregate(const std::string& aggregate) {
  if (aggregate == std::exchange(aggregate_, aggregate)) {
    return;
  }
  status_.update([&](MemberStatus& status) { status.aggregate = aggregate; });
  if (options_.rank == Rank{0}) {
    log::info("aggregate: {}", aggregate);
  }
}

void WorkerReport::log(const LoggedRound& round) {
  const PassResult classified = std::exchange(classified_, {});
  const Histogram staleness = std::exchange(staleness_, {});
  read_traffic();
  status_.update([&](MemberStatus& status) {
    status.metrics.set(Metric::learning_rate, round.learning_rate);
  });
  Json line;
  write_metrics(line, &MetricNames::log, status_.metrics());
  line["round_samples"] = round.samples;
  line["own_steps"] = round.own.steps;
  line["own_samples"] = round.own.samples;
  line["learning_rate"] = round.learning_rate;
  line["staleness"] = staleness.count() > 0 ? Json(staleness.mean()) : Json(nullptr);
  line["accuracy"] = classified.samples > 0
                         ? Json(static_cast<double>(classified.correct) / classified.samples)
                         : Json(nullptr);
  log_.write(line);
  if (options_.program && options_.program->on_round) {
    options_.program->on_round(json_text(line));
  }
}

wire::Heartbeat WorkerReport::last() {
  enter("done");
  return pull();
}

/// Thread: any.
void WorkerReport::read_traffic() {
  status_.update([this](MemberStatus& status) {
    const Transport& transport = world_.transport();
    // Snapshots are a part of all bytes: read in this order, they are never more than these.
    const std::uint64_t snapshots = link_.bytes_to_evaluators();
    const Traffic traffic = transport.traffic();
    status.metrics.set(Metric::evaluation_bytes, snapshots);
    status.metrics.set(Metric::bytes_sent, traffic.bytes_sent);
    status.metrics.set(Metric::local_bytes, traffic.bytes_zero_copy);
  });
}

/// Thread: any.
wire::Heartbeat WorkerReport::pull() {
  read_traffic();
  wire::Heartbeat heartbeat = status_.message();
  if (options_.program) {
    const ProgramWaits& waits = *options_.program->waits;
    if (heartbeat.computing()) {
      link_.progressed();  // a program may do anything between two steps of its loop
    }
    heartbeat.set_program_loop(true);
    heartbeat.set_program_waits(waits.loop_waits());
    heartbeat.set_program_ended(waits.loop_has_ended());
    heartbeat.set_program_operation(waits.operation().value_or(""));
  }
  return heartbeat;
}

}  // namespace syncopate
