#include "cli/bench/bench_command.hpp"
#include "cli/bench/device_profiles.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/handlers.hpp"
#include "cli/report/report_command.hpp"
#include "job/launch/launcher.hpp"

/// `syncopate`: checks the command line without loading libtorch, so that an error appears at once.
/// `syncopate-torch` runs the commands that compute, `syncopate-run` the users' own programs.
int main(int argc, char** argv) {
  using namespace syncopate;
  using namespace syncopate::cli;
  const Handlers handlers{
      .train = [&](const TrainCommand& command) -> int {
        become_torch_program(argv, command.request.config.threads, command.request.verbosity);
      },
      .coordinate = [&](const CoordinatorCommand& command) -> int {
        const JobRequest& job = command.request.job;
        become_torch_program(argv, job.config.threads, job.verbosity);
      },
      .join = [&](const JoinRequest& request) -> int {
        become_torch_program(argv, request.threads, request.verbosity);
      },
      .compare =
          [](const CompareCommand& command) {
            expect_torch_program();
            return compare_and_report(command);
          },
      .bench = [&](const BenchCommand& command) -> int {
        become_torch_program(argv, command.threads, syncopate::log::Verbosity::normal);
      },
      .doctor = [&](const DoctorCommand&) -> int {
        become_torch_program(argv, 1, syncopate::log::Verbosity::normal);
      },
      .networks =
          [&](const NetworksCommand&) -> std::vector<syncopate::torch_backend::NetworkFacts> {
        become_torch_program(argv, 1, syncopate::log::Verbosity::normal);
      },
      .usual_learning_rate = {},
      .run = [&](const RunCommand& command) -> int {
        become_run_program(argv, command.request.config.threads, command.request.verbosity);
      },
      .profile = [&](const ProfileCommand& command) -> int {
        become_torch_program(argv, command.threads, syncopate::log::Verbosity::normal);
      }};
  return run_cli(argc, argv, handlers);
}
