#include "cli/bench/bench_processes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/view/table.hpp"
#include "cli/view/terminal.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/launcher.hpp"
#include "job/launch/supervisor.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view error_mark = "syncopate: ";
/// After a process has failed, the others end within this time.
constexpr Duration grace = std::chrono::seconds(2);

/// Keeps the results and the first error, and shows the current measurement.
class BenchWatcher : public Watcher {
 public:
  BenchWatcher() : redraws_(::isatty(STDERR_FILENO) == 1 && can_redraw(from_environment)) {}

  void event(std::string_view line) override {
    Json event = Json::parse(line);
    if (const auto begun = event.find("begins"); begun != event.end()) {
      show(begun->get<std::string>());
    } else {
      results_.push_back(std::move(event["result"]));
    }
  }

  void output(std::string_view /*process*/, std::string_view line) override {
    if (!complaint_ && line.starts_with(error_mark)) {
      complaint_ = line.substr(error_mark.size());
    }
  }

  void notice(std::string_view text) override {
    if (!death_) {
      death_ = text;
    }
  }

  Duration refresh_period() const override { return {}; }
  void refresh() override {}
  void resized() override {}

  void erase() {
    if (std::exchange(drawn_, false)) {
      write_all(STDERR_FILENO, clear_line);
    }
  }

  const Results& results() const { return results_; }

  std::string cause(const std::string& failure) const {
    return death_ ? *death_ : complaint_.value_or(failure);
  }

 private:
  static constexpr std::string_view clear_line = "\r\x1b[K";

  void show(const std::string& text) {
    if (!redraws_) {
      return;
    }
    Style style;
    measure_terminal(STDERR_FILENO, style);
    write_all(STDERR_FILENO, fmt::format("{}{}", clear_line, fitted(text, style.width - 1)));
    drawn_ = true;
  }

  bool redraws_;
  bool drawn_ = false;
  Results results_;
  std::optional<std::string> death_;
  std::optional<std::string> complaint_;
};

/// A process that lost its peer exits without a message: the end of the peer is the cause.
int run_body(const ProcessBody& body, std::uint32_t index, int descriptor) {
  log::set_up(log::Verbosity::quiet);
  BenchReporter reporter([descriptor](const Json& line) { write_line(descriptor, line.dump()); });
  try {
    body(index, reporter);
  } catch (const PeerLost& error) {
    log::debug("{}", error.what());
    return exit_status::failure;
  }
  return exit_status::success;
}

Supervisor::Options job_of(const std::vector<std::string>& names, const ProcessBody& body) {
  Pipe pipe = make_pipe();
  Supervisor::Options job{.children = {}, .events = std::move(pipe.read), .grace = grace};
  const int events = pipe.write.get();
  for (std::uint32_t index = 0; index < names.size(); ++index) {
    job.children.push_back({.name = names[index], .body = [&body, index, events] {
                              return run_body(body, index, events);
                            }});
  }
  job.children.front().alone.push_back(std::move(pipe.write));
  return job;
}

Launch launched() {
  const auto launch = own_launch();
  if (!launch || !launch->mpi) {
    throw ConfigError(
        "--transport mpi needs an MPI launcher: start the benchmark as mpirun -n N "
        "syncopate bench …");
  }
  return *launch;
}

void expect_size(const Launch& by, const std::vector<std::string>& names) {
  if (by.size != names.size()) {
    throw ConfigError(fmt::format("the options ask for {} ranks, but the launcher started {}",
                                  names.size(), by.size));
  }
}

/// Returns the exit status. The first rank prints the results.
int report_of_rank(Form form, const Launch& by, const std::function<void(BenchReporter&)>& body) {
  Results results;
  BenchReporter reporter([&](const nlohmann::ordered_json& line) {
    if (const auto result = line.find("result"); result != line.end()) {
      results.push_back(*result);
    }
  });
  const int status = guarded([&] {
    body(reporter);
    return exit_status::success;
  });
  if (status == exit_status::success && by.rank == 0) {
    fmt::print("{}\n", report(results, form));
  }
  return status;
}

}  // namespace

void BenchReporter::begins(const std::string& what) {
  report_({{"begins", what}});
}

void BenchReporter::result(const Json& figures) {
  report_({{"result", figures}});
}

int run_processes(const std::vector<std::string>& names, Form form, const ProcessBody& body) {
  BenchWatcher watcher;
  const Supervisor::Result ended = Supervisor(job_of(names, body), watcher).run();
  watcher.erase();
  if (ended.exit_status == exit_status::success) {
    fmt::print("{}\n", report(watcher.results(), form));
  } else if (ended.exit_status != exit_status::interrupted) {
    print_error(watcher.cause(ended.failure).c_str());
  }
  return ended.exit_status;
}

int run_rank(Form form, const std::vector<std::string>& names, const RankBody& body) {
  const Launch by = launched();
  expect_size(by, names);
  log::set_up(log::Verbosity::quiet);
  const auto session = mpi::start(
      *by.mpi, {.expected_size = by.size, .allreduce = true, .modules = chosen_mpi_modules()});
  const int status =
      report_of_rank(form, by, [&](BenchReporter& reporter) { body(*session, reporter); });
  if (status != exit_status::success) {
    session->abort(status);
  }
  return status;
}

int run_rank(Form form, const std::vector<std::string>& names, const Launch& by,
             const ProcessBody& body) {
  expect_size(by, names);
  log::set_up(log::Verbosity::quiet);
  return report_of_rank(form, by, [&](BenchReporter& reporter) { body(by.rank, reporter); });
}

}  // namespace syncopate::cli
