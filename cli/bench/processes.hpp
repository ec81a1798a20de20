#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/report.hpp"

namespace syncopate::cli {

/// How the first process of a benchmark tells the one that started it what it does and finds.
class Teller {
 public:
  /// A line of `line`, for each thing that it tells.
  using Tell = std::function<void(const nlohmann::ordered_json& line)>;
  explicit Teller(Tell tell) : tell_(std::move(tell)) {}

  /// `what` is measured from now on. Not to be called while something is timed.
  void begins(const std::string& what);
  void result(const nlohmann::ordered_json& figures);

 private:
  Tell tell_;
};

/// What a process of a benchmark does; `index` is its place among the names. Only the first one tells.
using ProcessBody = std::function<void(std::uint32_t index, Teller& teller)>;

/// Runs processes of these names to their end, with what is under way on standard error where that is a
/// terminal, and prints what they found. Gives the exit status. When one dies or fails, the others are
/// ended, and one line says which and why.
///
/// Thread: to be called while this process has one thread.
int run_processes(const std::vector<std::string>& names, Form form, const ProcessBody& body);

}  // namespace syncopate::cli
