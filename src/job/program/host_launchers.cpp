// The part of a job's coordinator that is about launchers on other hosts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "job/program/program_host.hpp"
#include "telemetry/json_lines.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

/// A host that has not come after this time may have been forgotten.
constexpr Duration time_to_notice = std::chrono::seconds(5);

}  // namespace

/// Errors: ConfigError, for one whose programs the job does not expect.
void ProgramHost::greet_launcher(NodeId launcher, const wire::LauncherHello& hello) {
  try {
    launchers_.joined(launcher, hello);
  } catch (const ConfigError& error) {
    relay({{"event", "note"},
           {"text", fmt::format("refused `syncopate run` of {}: {}", printable(hello.host()),
                                error.what())}});
    throw;
  }
  wire::FromCoordinator message;
  message.mutable_launcher_welcome();
  send(launcher, message);
}

/// The user of a job on several hosts may have forgotten one.
void ProgramHost::note_missing() {
  begun_waiting_ = begun_waiting_.value_or(world_.now());
  if (noted_missing_ || world_.now() < *begun_waiting_ + time_to_notice) {
    return;
  }
  noted_missing_ = true;
  if (const auto missing = launchers_.missing(); !missing.empty()) {
    relay({{"event", "note"},
           {"text", fmt::format("waiting for `syncopate run --ranks` of worker {}",
                                fmt::join(missing, ", "))}});
  }
}

/// Outside of a training, whose coordinator sees it. Errors: Error.
void ProgramHost::check_failures() const {
  if (!launchers_.failure().empty()) {
    throw Error(launchers_.failure());
  }
}

/// Errors: ProtocolError, for a node that may not end the job.
void ProgramHost::request_end(NodeId launcher) {
  if (!launchers_.others().contains(launcher)) {
    throw ProtocolError(fmt::format("node {}, which is no launcher, ends the job", launcher.value));
  }
  end_requested_ = true;
  relay({{"event", "note"},
         {"text",
          fmt::format("the end was requested on {}", launchers_.others().at(launcher).host)}});
}

void ProgramHost::send_to_launchers(const wire::FromCoordinator& message) {
  for (const auto& [node, launcher] : launchers_.others()) {
    if (!launcher.gone) {
      send(node, message);
    }
  }
}

/// The launchers of all hosts show the job.
void ProgramHost::relay(const Json& event) {
  options_.emit(event);
  wire::FromCoordinator message;
  message.set_event(json_text(event));
  send_to_launchers(message);
}

}  // namespace syncopate
