#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/handlers.hpp"

namespace syncopate::cli {

/// The result of a command line, with its output.
struct RanCommand {
  int status;
  std::string out, err;
};

/// Runs `syncopate WORDS…` in this process.
inline RanCommand run_words(std::vector<std::string> words, const Handlers& handlers) {
  words.insert(words.begin(), "syncopate");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run_cli(static_cast<int>(words.size()), argv.data(), handlers);
  std::fflush(nullptr);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace syncopate::cli
