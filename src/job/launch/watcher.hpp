#pragma once

#include <string_view>

#include "base/time.hpp"

namespace syncopate::cli {

/// Hears of a job while it runs. Called by the supervisor, on its thread.
class Watcher {
 public:
  virtual ~Watcher() = default;

  /// A line of the coordinator's events (`report/events.hpp`).
  virtual void event(std::string_view line) = 0;
  /// A line that a process wrote to its standard output or error.
  virtual void output(std::string_view process, std::string_view line) = 0;
  /// Something that the supervisor itself has to say.
  virtual void notice(std::string_view text) = 0;

  /// How often to call `refresh`; nothing: never.
  virtual Duration refresh_period() const = 0;
  virtual void refresh() = 0;
  /// The terminal has another size.
  virtual void resized() = 0;
};

}  // namespace syncopate::cli
