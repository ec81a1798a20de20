// Goal:   an unknown option is refused with a suggestion: the option with a similar name, or the
//         one that has this name in other tools.
// Method: command lines with one wrong word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/handlers.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

std::string refusal_of(const std::vector<std::string>& words) {
  const RanCommand ran = run_words(words, Handlers{});
  EXPECT_EQ(ran.status, 2);
  return ran.err;
}

std::string refusal_in_train(const std::string& word) {
  return refusal_of({"train", word});
}

TEST(UnknownOption, IsRefusedWithTheOneThatWasMeant) {
  EXPECT_EQ(refusal_in_train("--worker"),
            "syncopate: unknown option --worker; did you mean '--workers'?\n");
  EXPECT_EQ(refusal_in_train("--SCHEME"),
            "syncopate: unknown option --SCHEME; did you mean '--scheme'?\n");
  EXPECT_EQ(refusal_in_train("--lr=0.1"),
            "syncopate: unknown option --lr; did you mean '--learning-rate'?\n");
  EXPECT_EQ(refusal_in_train("--gpus"),
            "syncopate: unknown option --gpus; did you mean '--workers'?\n");
  EXPECT_EQ(refusal_of({"-V"}), "syncopate: unknown option -V; did you mean '--version'?\n");
  EXPECT_EQ(refusal_of({"report", "--bs"}), "syncopate: unknown option --bs\n")
      << "this command has no --batch-size";
}

}  // namespace
}  // namespace syncopate::cli
