#include "train/server_trace.hpp"

#include <nlohmann/json.hpp>

#include "base/log.hpp"

namespace syncopate {
namespace {

/// Lines until a trace gets sparser; see `Thinning`.
constexpr std::uint64_t lines_of_requests = 8192;
constexpr std::uint64_t lines_of_counters = 2048;

}  // namespace

ServerTrace::ServerTrace(const Clock& clock, TraceDetail detail, const RunFolder& folder,
                         const Member& server)
    : clock_(clock), requests_(lines_of_requests), counters_(lines_of_counters) {
  if (detail != TraceDetail::off) {
    log_.emplace(clock, folder.spans_of("server", server.rank),
                 SpanLog::Json{{"process", "server"},
                               {"rank", server.rank.value},
                               {"device", server.device},
                               {"host", server.host},
                               {"pid", server.pid},
                               {"machine", server.machine},
                               {"trace", name_of_value(detail)}},
                 [](const std::string& reason) { log::warn("{}", reason); });
  }
}

void ServerTrace::handled(Duration busy) {
  if (log_ && busy > Duration::zero() && requests_.keeps_next()) {
    const TimePoint now = clock_.now();
    log_->slice(
        {.thread = trace_thread::compute, .name = "request", .begun = now - busy, .ended = now});
    requests_.wrote(1);
  }
}

void ServerTrace::saved(TimePoint begun) {
  if (log_) {
    log_->slice({.thread = trace_thread::communication,
                 .name = "snapshot",
                 .begun = begun,
                 .ended = clock_.now()});
  }
}

void ServerTrace::progressed(double updates) {
  if (log_ && counters_.keeps_next()) {
    log_->counter("updates", clock_.now(), updates);
    counters_.wrote(1);
  }
}

void ServerTrace::flush() {
  if (log_) {
    log_->flush();
  }
}

}  // namespace syncopate
