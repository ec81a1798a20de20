// Goal:   `syncopate networks` shows the figures of each network, and a single row for a network
//         that cannot take the images.
// Method: whole command lines through `run_cli`, with two networks that a handler makes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/handlers.hpp"

namespace syncopate::cli {
namespace {

std::string printed_by(std::vector<std::string> words) {
  Handlers handlers;
  handlers.networks = [](const NetworksCommand&) -> std::vector<torch_backend::NetworkFacts> {
    return {{.name = "net",
             .summary = "small",
             .parameters = 61706,
             .buffers = 0,
             .multiply_adds = 416520,
             .input = {3, 28, 28}},
            {.name = "large",
             .summary = "unused",
             .input = {3, 28, 28},
             .classes = 100,
             .smallest_side = 63,
             .refusal = "no"}};
  };
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_cli(static_cast<int>(words.size()), argv.data(), handlers), 0);
  std::fflush(nullptr);
  return testing::internal::GetCapturedStdout();
}

TEST(NetworksCommandTest, ShowsATable) {
  EXPECT_EQ(printed_by({"syncopate", "networks"}),
            "network   size  parameters  buffers  multiply-adds  description\n"
            "net      28x28      61,706        0        416,520  small\n"
            "large    28x28           -        -              -  takes images of 63x63 or more\n");
}

TEST(NetworksCommandTest, ShowsJson) {
  const auto list =
      nlohmann::json::parse(printed_by({"syncopate", "networks", "--json"}))["networks"];
  EXPECT_EQ(list[0]["multiply_adds"], 416520);
  EXPECT_FALSE(list[0].contains("refusal"));
  EXPECT_EQ(list[1], nlohmann::json::parse(R"({"name": "large", "parameters": null,
      "buffers": null, "multiply_adds": null, "channels": 3, "height": 28, "width": 28,
      "classes": 100, "smallest_side": 63, "refusal": "no"})"));
}

}  // namespace
}  // namespace syncopate::cli
