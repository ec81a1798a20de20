#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/view/job_state.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate::cli {

/// The capabilities of a terminal.
struct Style {
  std::size_t width = 80;
  std::size_t height = 24;
  bool colour = false;
  bool unicode = true;
};

// All of these functions are pure and return lines without line ends.

/// The picture of a running job, at most `width` columns wide and `height` − 1 lines high: a line
/// per worker with a bar of its time shares, and the job as a whole below.
std::vector<std::string> render_live(const JobState& state, const Style& style);

/// The job as a whole in one line, for an output that cannot be redrawn. The state holds a status.
std::string status_line(const JobState& state);
std::string evaluation_line(const EvaluationResult& evaluation);
std::string started_line(const events::Started& started);

/// The final figures of a job: a table of workers, and the job's figures. `summary` is the content
/// of `summary.json`; a figure that is missing or null is shown as "-".
std::vector<std::string> render_summary(const nlohmann::ordered_json& summary,
                                        const std::string& run_dir);

/// "1:02:03" or "2:03".
std::string clock_text(double seconds);

/// "44.7 MB".
std::string bytes_text(double bytes);

/// The function that formats the values of metrics of a unit.
std::string (*text_for(MetricUnit unit))(double value);

}  // namespace syncopate::cli
