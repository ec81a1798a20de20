#include <fmt/format.h>

#include <string>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "job/launch/exit_status.hpp"
#include "job/launch/job_key.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* key_examples = R"(Example:
  syncopate key new job.key
  scp -p job.key host2:

A process that has the key can join the job and read what it sends. The file is readable only by
its owner, and stays so when it is copied with its mode. Give it to each process by --secret FILE,
or by the variable SYNCOPATE_KEY_FILE.)";

CLI::Option* add_word(CLI::App& app, const std::string& name, const std::string& type,
                      const std::string& help) {
  return app
      .add_option(
          name, [](const CLI::results_t&) { return true; }, help)
      ->type_name(type);
}

int make_key_file(const CLI::App& app) {
  const std::string action = given(app, "action").value_or("");
  const std::string file = given(app, "file").value_or("");
  if (action != "new" || file.empty()) {
    throw ConfigError(fmt::format("expected `syncopate key new FILE`, found `syncopate key {}{}{}`",
                                  action, file.empty() ? "" : " ", file));
  }
  make_key(file);
  fmt::print("wrote a new key to {}: copy it to the other hosts of the job, and to nobody else\n",
             file);
  return exit_status::success;
}

}  // namespace

Command add_key(CLI::App& root) {
  CLI::App* app = root.add_subcommand("key", "Make the key that encrypts a job between hosts.");
  add_word(*app, "action", "new", "the only action: makes a key");
  add_word(*app, "file", "FILE", "file to write, which must not exist");
  app->footer(key_examples);
  return {app, [app] { return make_key_file(*app); }};
}

}  // namespace syncopate::cli
