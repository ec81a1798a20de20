#include <fmt/format.h>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/doctor/doctor_command.hpp"
#include "cli/job_options.hpp"
#include "spec/config_fields.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* doctor_examples =
    R"(Each line is a check: ok, or problem with advice on the next line. The exit status is 1 when
there is a problem.

Examples:
  syncopate doctor
  syncopate doctor --data mnist --data-dir ~/mnist
  mpirun -n 4 syncopate doctor
  srun --mpi=pmix -n 4 syncopate doctor --json
  syncopate doctor --join 127.0.0.1:9091 --secret job.key)";

/// The options that the doctor shares with a job, checked as those of a job.
TrainConfig fields_of(const CLI::App& app) {
  TrainConfig config;
  for (const char* name : {"data", "data-dir", "transport"}) {
    const std::string option = fmt::format("--{}", name);
    if (const auto text = given(app, option)) {
      set_from_option(*find_field(name), config, *text);
    }
  }
  return config;
}

DoctorCommand doctor_command_of(const CLI::App& app) {
  const TrainConfig fields = fields_of(app);
  return {.data = fields.data,
          .data_dir = fields.data_dir,
          .runs = given(app, "--run-dir").value_or("runs"),
          .transport = fields.transport,
          .join = given(app, "--join").value_or(""),
          .token = secret_of(app),
          .launch = own_launch(),
          .json = app.count("--json") > 0};
}

}  // namespace

Command add_doctor(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand(
      "doctor", "Check this host, or the ranks of mpirun or srun and the links between them.");
  const auto add = [app](const char* name, const char* value, const char* help) {
    add_value(*app, name, value, help)->group("Checks");
  };
  add("data", "NAME", "the dataset to check, or the path of a folder [fashion-mnist]");
  add("data-dir", "FOLDER", "the folder of the dataset's files [its default folder]");
  add("run-dir", "FOLDER", "the folder of runs to check [runs]");
  add("transport", "NAME", "transport between ranks: auto, shm, tcp, mpi [auto]");
  add("join", "HOST:PORT", "address of a coordinator to check");
  add_secret(*app, "none");
  add_switch(*app, "json", "print one JSON object");
  app->footer(doctor_examples);
  return {app, [app, &handlers] { return handlers.doctor(doctor_command_of(*app)); }};
}

}  // namespace syncopate::cli
