#include "cli/job_options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "config/option.hpp"
#include "config/text.hpp"

namespace syncopate::cli {
namespace {

const std::string rendezvous(option_group::rendezvous);

/// A shorter key can be found by trying; a longer one does not fit the handshake.
constexpr std::size_t least_key_bytes = 16;
constexpr std::size_t most_key_bytes = 1024;

void refuse_readable_by_others(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  if (!error && fs::exists(status) && (status.permissions() & others) != fs::perms::none) {
    throw ConfigError(fmt::format(
        "--secret: other users may read or change {0} (mode {1:04o}); run: chmod 600 {0}", path,
        static_cast<unsigned>(status.permissions())));
  }
}

std::string without_white_space(const std::string& text) {
  constexpr const char* white = " \t\r\n";
  const auto first = text.find_first_not_of(white);
  return first == std::string::npos ? std::string()
                                    : text.substr(first, text.find_last_not_of(white) - first + 1);
}

}  // namespace

void add_gather_limit(CLI::App& app, Duration usual) {
  add_value(
      app, "gather-limit", "SECONDS",
      fmt::format("give up if the job is not complete after this time [{:.0f}]", to_seconds(usual)))
      ->group(rendezvous);
}

Duration gather_limit_of(const CLI::App& app, Duration usual) {
  const auto text = given(app, "--gather-limit");
  if (!text) {
    return usual;
  }
  constexpr double most = 1e6;
  const auto seconds = number_in<double>(*text);
  if (!seconds || !(*seconds > 0 && *seconds <= most)) {
    throw ConfigError(fmt::format(
        "--gather-limit: expected seconds above 0 and up to 1000000, found '{}'", *text));
  }
  return from_seconds(*seconds);
}

void add_secret(CLI::App& app, const std::string& usual) {
  add_value(app, "secret", "FILE",
            fmt::format("a file with the job's key, readable only by its owner [{}]", usual))
      ->group(rendezvous);
}

std::string secret_of(const CLI::App& app) {
  const auto path = given(app, "--secret");
  if (!path) {
    return {};
  }
  refuse_readable_by_others(*path);
  const std::string key = without_white_space(read_file(*path));
  if (key.size() < least_key_bytes || key.size() > most_key_bytes) {
    throw ConfigError(
        fmt::format("--secret: expected a key of {} to {} bytes in {}, found {}; make one: umask "
                    "077; head -c 32 /dev/urandom | base64 > {}",
                    least_key_bytes, most_key_bytes, *path, key.size(), *path));
  }
  return key;
}

void add_index(CLI::App& app, const std::string& role) {
  add_value(app, "index", "N", fmt::format("index of this {} [the next free one]", role))
      ->group(rendezvous);
}

std::optional<std::uint32_t> index_of(const CLI::App& app) {
  const auto text = given(app, "--index");
  if (!text) {
    return std::nullopt;
  }
  const auto index = number_in<std::uint32_t>(*text);
  if (!index || *index >= most_workers) {
    throw ConfigError(fmt::format(
        "--index: expected a whole number from 0 and below {}, found '{}'", most_workers, *text));
  }
  return index;
}

std::string required(const CLI::App& app, const std::string& option, const std::string& what) {
  const auto value = given(app, option);
  if (!value) {
    throw ConfigError(fmt::format("{} needs {} {}", app.get_name(), option, what));
  }
  return *value;
}

}  // namespace syncopate::cli
