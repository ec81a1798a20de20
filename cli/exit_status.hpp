#pragma once

#include <exception>
#include <functional>

namespace syncopate::cli {

/// What a command leaves its caller with. `docs/errors.md` explains them.
namespace exit_status {
inline constexpr int success = 0;
inline constexpr int failure = 1;        ///< the job failed
inline constexpr int refused = 2;        ///< the input was bad: nothing was done
inline constexpr int interrupted = 130;  ///< the user ended it
}  // namespace exit_status

/// The status that an error ends a command with: `refused` for ConfigError and DataError,
/// `interrupted` for Cancelled, else `failure`.
int status_of(const std::exception& error);

/// Runs `body` and gives its exit status. An error that it throws becomes one line on standard
/// error, `syncopate: …`, and the status of its kind.
int guarded(const std::function<int()>& body);

/// Writes `syncopate: …` and a line end to standard error; line ends within become spaces.
void print_error(const char* message);

}  // namespace syncopate::cli
