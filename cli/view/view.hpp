#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/handlers.hpp"
#include "job/launch/watcher.hpp"

namespace syncopate::cli {

/// Shows a job while it runs, and its figures at its end.
class View : public Watcher {
 public:
  /// Everything has ended: prints the final figures, where there are any.
  virtual void finish() = 0;
  /// What the coordinator gave as the reason of a failure.
  virtual std::optional<std::string> error() const = 0;
};

/// The view that the options ask for and the terminal allows:
/// JSON lines; a picture that is redrawn in place; plain lines where standard output is no terminal
/// or the user wants quiet.
std::unique_ptr<View> make_view(const TrainConfig& config, const OutputOptions& options);

}  // namespace syncopate::cli
