// Goal:   an unknown option is refused with the one that was meant, by its letters or by what other
//         tools call it.
// Method: a command with a few options.

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/errors.hpp"
#include "cli/command.hpp"

namespace syncopate::cli {
namespace {

std::string refusal_of(const std::string& word) {
  CLI::App app;
  app.allow_extras();
  for (const char* name : {"--learning-rate", "--workers", "--scheme", "--version"}) {
    app.add_option(name);
  }
  app.parse(word);
  try {
    check_nothing_left(app);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was not refused";
}

TEST(UnknownOption, IsRefusedWithTheOneThatWasMeant) {
  EXPECT_EQ(refusal_of("--worker"), "unknown option --worker; did you mean '--workers'?");
  EXPECT_EQ(refusal_of("--SCHEME"), "unknown option --SCHEME; did you mean '--scheme'?");
  EXPECT_EQ(refusal_of("--lr=0.1"), "unknown option --lr; did you mean '--learning-rate'?");
  EXPECT_EQ(refusal_of("--gpus"), "unknown option --gpus; did you mean '--workers'?");
  EXPECT_EQ(refusal_of("-V"), "unknown option -V; did you mean '--version'?");
  EXPECT_EQ(refusal_of("--bs"), "unknown option --bs") << "this command has no --batch-size";
}

}  // namespace
}  // namespace syncopate::cli
