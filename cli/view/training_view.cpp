#include "cli/view/training_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/view/render.hpp"
#include "cli/view/terminal.hpp"

namespace syncopate::cli {

void TrainingView::event(std::string_view line) {
  const events::Event event = events::parse_event(line);
  state_.apply(event);
  show(event, line);
}

void TrainingView::output(std::string_view process, std::string_view line) {
  show_log(fmt::format("[{}] {}", process, line));
}

void TrainingView::notice(std::string_view text) {
  show_log(fmt::format("syncopate: {}", text));
}

std::optional<std::string> TrainingView::error() const {
  return state_.failed ? std::optional(state_.failed->error) : std::nullopt;
}

void TrainingView::print_summary() {
  if (state_.finished) {
    const std::string run_dir = state_.config.run_dir.string();
    write_line(
        STDOUT_FILENO,
        fmt::format("{}", fmt::join(render_summary(state_.finished->summary, run_dir), "\n")));
  }
}

}  // namespace syncopate::cli
