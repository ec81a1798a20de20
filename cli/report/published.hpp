#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/compare/comparison_report.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// A figure that a paper states.
struct PublishedFigure {
  std::string figure;  ///< speed_up, accuracy, throughput, traffic_mb_per_s, computing_time_ratio
  std::string scheme;
  std::string network = {};         ///< empty: the paper does not say, or all
  std::vector<double> values = {};  ///< one, or one for each device
  std::optional<double> deviation = {};
};

/// The figures of one paper.
struct Published {
  std::string source;
  std::string cluster = {};  ///< name of the cluster file of its test bed; empty: any
  std::vector<PublishedFigure> figures = {};
};

/// ESync's own, for `clusters/paper.toml` (Li et al. 2019; read off its charts to about 2 %).
const Published& esync_paper();

/// Reads JSON in the form that `docs/guides/report.md` shows. `source` names it in messages.
/// Errors: ConfigError.
Published published_in(std::string_view text, const std::string& source);
/// Errors: as above; DataError if the file cannot be read.
Published read_published(const std::filesystem::path& file);

/// Returns the published figures, each beside the measured one of the same scheme in `setting`. If
/// only figures of other networks are published, shows their range. Empty if the paper is about
/// another cluster.
std::optional<TitledTable> beside_published(const Setting& setting, const Published& published);

}  // namespace syncopate::cli
