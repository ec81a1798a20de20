// Goal:   a scheme is one file and one line: options, help and jobs know a scheme that is added in
//         this way.
// Method: the registry is compiled with an extended list (tests/extension/CMakeLists.txt). The
//         scheme's option is set from the command line and from a file; jobs of the scheme run in
//         the simulator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TrainConfig config_of(const std::string& folder, const std::string& direction) {
  TrainConfig config = toy_config(fresh_folder(folder));
  config.scheme = "toy";
  config.workers = 1;
  set(config, "direction", direction);
  return config;
}

double last_loss(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  return job.summary().at("loss").get<double>();
}

TEST(ToyScheme, IsListed) {
  EXPECT_EQ(all_schemes().back()->name, "toy");
  const auto names = find_field("scheme")->choices();
  EXPECT_EQ(names.back(), "toy");
}

TEST(ToyScheme, HasItsOptionOnTheCommandLineAndInTheFile) {
  const Field* const field = find_field("direction");
  ASSERT_NE(field, nullptr);
  EXPECT_THAT(field->choices(), testing::ElementsAre("down", "up"));
  TrainConfig config;
  config.scheme = "toy";
  set(config, "direction", "up");
  EXPECT_THAT(to_toml(config), HasSubstr("direction = 'up'"));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
  EXPECT_THAT(refusal([&] { parse_config("direction = \"left\"", "test.toml", {}); }),
              AllOf(HasSubstr("direction"), HasSubstr("one of down, up"), HasSubstr("'left'")));
}

TEST(ToyScheme, HasItsOptionAlone) {
  TrainConfig config;
  EXPECT_EQ(refusal([&] { check_given(config, {"direction"}); }),
            "--direction has no effect without --scheme toy");
  EXPECT_THAT(to_toml(config), testing::Not(HasSubstr("direction")));
  config.scheme = "toy";
  EXPECT_NO_THROW(check_given(config, {"direction"}));
  EXPECT_THAT(refusal([&] { check_given(config, {"slack"}); }), HasSubstr("--scheme ssp"));
}

TEST(ToyScheme, Trains) {
  const double before = last_loss([] {
    TrainConfig config = config_of("toy-scheme-first", "down");
    config.max_steps = 1;
    return config;
  }());
  EXPECT_LT(last_loss(config_of("toy-scheme-down", "down")), 0.9 * before);
  EXPECT_GT(last_loss(config_of("toy-scheme-up", "up")), 1.1 * before);
}

}  // namespace
}  // namespace syncopate
