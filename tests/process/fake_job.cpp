// `syncopate train` with processes that train nothing. Command line, supervisor and views are those
// of the real program. SYNCOPATE_FAKE_JOB chooses the behaviour of coordinator and workers:
//
//   finish    the job runs to its end
//   run       the job runs until the coordinator receives an end request
//   stubborn  the job ignores end requests
//   crash     worker 1 dies of a signal, and the coordinator reports it
//   spare     worker 1 dies of a signal; the job may lose it and runs to its end
//   silent    worker 1 dies of a signal, and the coordinator does not notice
//   refuse    the coordinator refuses the job
//   chatter   worker 0 logs lines, then the job runs to its end
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "cli/handlers.hpp"
#include "cli/view/training_view.hpp"
#include "job/launch/event_pipe.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/supervisor.hpp"

namespace {

using namespace syncopate;
using namespace syncopate::cli;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t rounds_per_second = 20;

struct FakeJob {
  std::string kind;
  TrainConfig config;
  int events = -1;
  EventPipe* pipe = nullptr;     ///< writes to `events`, in the coordinator only
  int coordinator_is_gone = -1;  ///< readable once the coordinator has ended
  int worker_is_gone = -1;       ///< readable once worker 1 has ended

  void emit(const Json& event) const { pipe->emit(event); }
};

void wait_for_end_of(int pipe) {
  char byte = 0;
  while (::read(pipe, &byte, 1) > 0) {
  }
}

[[noreturn]] void wait_for_ever() {
  for (;;) {
    ::pause();
  }
}

Json workers_of(const FakeJob& job, const Json& fields) {
  Json workers = Json::array();
  for (std::uint32_t rank = 0; rank < job.config.workers; ++rank) {
    Json worker{{"rank", rank}, {"device", fmt::format("cpu as device-{}", rank)}};
    worker.update(fields);
    workers.push_back(worker);
  }
  return workers;
}

void tell_started(const FakeJob& job) {
  job.emit({{"event", "started"},
            {"run_dir", job.config.run_dir.string()},
            {"scheme", job.config.scheme},
            {"network", job.config.network->name},
            {"data", job.config.data},
            {"epochs", job.config.epochs},
            {"target_accuracy", nullptr},
            {"virtual_time", job.config.virtual_time},
            {"workers", workers_of(job, {{"host", "here"}, {"pid", ::getpid()}})}});
}

void tell_status(const FakeJob& job, std::uint64_t round) {
  const double seconds = static_cast<double>(round) / rounds_per_second;
  const Json worker{{"samples", 64 * round}, {"steps", round},
                    {"round", round},        {"phase", "backward"},
                    {"compute", 0.7},        {"communicate", 0.2},
                    {"wait", 0.1},           {"samples_per_second", 64 * rounds_per_second}};
  job.emit({{"event", "status"},
            {"training_seconds", seconds},
            {"samples", 64 * round * job.config.workers},
            {"epoch", 0.01 * static_cast<double>(round)},
            {"round", round},
            {"loss", 1.0 / static_cast<double>(round)},
            {"throughput", 64 * rounds_per_second * job.config.workers},
            {"workers", workers_of(job, worker)}});
}

void tell_finished(const FakeJob& job, const std::string& reason) {
  job.emit({{"event", "evaluation"},
            {"round", 10},
            {"samples", 2560},
            {"epoch", 1},
            {"training_seconds", 0.5},
            {"accuracy", 0.8765},
            {"loss", 0.4321}});
  const Json worker{{"samples", 640},
                    {"steps", 10},
                    {"computing_time_ratio", 0.7},
                    {"communication_ratio", 0.2},
                    {"wait_ratio", 0.1},
                    {"traffic_bytes", 1000000}};
  job.emit({{"event", "finished"},
            {"reason", reason},
            {"summary",
             {{"accuracy", 0.8765},
              {"best_accuracy", 0.8765},
              {"training_seconds", 0.5},
              {"throughput", 5120},
              {"cluster_efficiency", 0.9},
              {"traffic_bytes", 4000000},
              {"workers", workers_of(job, worker)}}}});
}

/// Reports rounds at regular intervals until the process receives SIGTERM.
void run_until_asked(const FakeJob& job) {
  sigset_t asked;
  ::sigemptyset(&asked);
  ::sigaddset(&asked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &asked, nullptr);
  tell_started(job);
  const timespec period{.tv_sec = 0, .tv_nsec = 1'000'000'000 / rounds_per_second};
  std::uint64_t round = 1;
  do {
    tell_status(job, round++);
  } while (::sigtimedwait(&asked, nullptr, &period) < 0);
  tell_finished(job, "interrupted");
}

int fail(const FakeJob& job, const char* kind, const char* error, int status) {
  job.emit({{"event", "failed"}, {"kind", kind}, {"error", error}});
  return status;
}

int coordinate(const FakeJob& job) {
  if (job.kind == "refuse") {
    return fail(job, "KIND_CONFIG", "this machine cannot pace device-1", exit_status::refused);
  }
  if (job.kind == "run") {
    run_until_asked(job);
    return 0;
  }
  if (job.kind == "stubborn") {
    std::signal(SIGTERM, SIG_IGN);
  }
  tell_started(job);
  tell_status(job, 1);
  if (job.kind == "crash") {
    wait_for_end_of(job.worker_is_gone);
    return fail(job, "KIND_PEER_LOST", "worker 1 is gone", exit_status::failure);
  }
  if (job.kind == "stubborn" || job.kind == "silent") {
    wait_for_ever();
  }
  if (job.kind == "spare") {
    wait_for_end_of(job.worker_is_gone);
  }
  tell_finished(job, "every epoch is done");
  return 0;
}

int work(const FakeJob& job, std::uint32_t rank) {
  const bool dies = job.kind == "crash" || job.kind == "silent" || job.kind == "spare";
  if (dies && rank == 1) {
    ::kill(::getpid(), SIGKILL);
  }
  if (job.kind == "chatter" && rank == 0) {
    log::info("a line of information");
    log::warn("a line of warning");
  }
  wait_for_end_of(job.coordinator_is_gone);
  return 0;
}

int run_fake_job(const TrainCommand& command) {
  Pipe events = make_pipe();
  Pipe coordinator = make_pipe();
  Pipe worker = make_pipe();
  ::fcntl(coordinator.read.get(), F_SETFL, 0);
  ::fcntl(worker.read.get(), F_SETFL, 0);
  const char* kind = std::getenv("SYNCOPATE_FAKE_JOB");
  FakeJob job{.kind = kind == nullptr ? "finish" : kind,
              .config = command.request.config,
              .events = events.write.get(),
              .coordinator_is_gone = coordinator.read.get(),
              .worker_is_gone = worker.read.get()};
  Supervisor::Options options{.children = {}, .events = std::move(events.read)};
  options.grace = std::chrono::milliseconds(500);
  options.children.push_back({.name = "coordinator", .body = [&] {
                                EventPipe pipe(job.events);
                                job.pipe = &pipe;
                                return coordinate(job);
                              }});
  options.children.back().alone.push_back(std::move(events.write));
  options.children.back().alone.push_back(std::move(coordinator.write));
  for (std::uint32_t rank = 0; rank < command.request.config.workers; ++rank) {
    options.children.push_back(
        {.name = fmt::format("worker {}", rank), .body = [&, rank] { return work(job, rank); }});
    options.children.back().may_be_lost = job.kind == "spare";
    if (rank == 1) {
      options.children.back().alone.push_back(std::move(worker.write));
    }
  }
  const auto view = make_view(command.request.config,
                              {.verbosity = command.request.verbosity, .json = command.json});
  return run_watched(std::move(options), command.request.verbosity, *view);
}

}  // namespace

int main(int argc, char** argv) {
  return run_cli(
      argc, argv,
      {.train = run_fake_job,
       .coordinate = [](const auto&) { return 0; },
       .join = [](const auto&) { return 0; },
       .compare = [](const auto&) { return 0; },
       .bench = [](const auto&) { return 0; },
       .doctor = {},
       .networks = [](const auto&) { return std::vector<torch_backend::NetworkFacts>{}; },
       .usual_learning_rate = [](Optimizer) { return 0.1; }});
}
