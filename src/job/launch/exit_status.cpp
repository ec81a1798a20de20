#include "job/launch/exit_status.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>

#include "base/errors.hpp"
#include "base/printable.hpp"

namespace syncopate {
namespace {

constexpr std::size_t letters_of_a_path = 200;
constexpr Duration until_words_have_come = std::chrono::milliseconds(200);

void pause_for(Duration time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  ::poll(nullptr, 0, static_cast<int>(milliseconds));
}

/// The descriptor on which MPICH's launcher reads requests of this process.
std::optional<int> line_to_mpich(const Environment& environment) {
  const std::string number = environment("PMI_FD");
  int descriptor = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), descriptor);
  const bool is_whole = error == std::errc() && end == number.data() + number.size();
  // srun also names a descriptor, but uses another version of PMI.
  return is_whole && !environment("HYDI_CONTROL_FD").empty() ? std::optional(descriptor)
                                                             : std::nullopt;
}

/// Replaces messages of the standard library, which name neither the place nor a remedy.
std::string words_of(const std::exception& error) {
  if (const auto* const refused = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("cannot use the path {}: {}; name another one",
                       excerpt(refused->path1().native(), letters_of_a_path),
                       refused->code().message());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "there is not enough memory; use a smaller batch or network, or fewer workers";
  }
  return error.what();
}

int say(const Launch& launch, const std::exception& error, Duration patience) {
  const int status = status_of(error);
  if (launch.rank == 0) {
    print_error(words_of(error).c_str());
    return status;
  }
  if (status == exit_status::refused) {
    pause_for(patience);
  }
  print_error(fmt::format("rank {}: {}", launch.rank, words_of(error)).c_str());
  return status;
}

}  // namespace

int status_of(const std::exception& error) {
  if (dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const DataError*>(&error) ||
      dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return exit_status::refused;
  }
  return dynamic_cast<const Cancelled*>(&error) ? exit_status::interrupted : exit_status::failure;
}

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    print_error(words_of(error).c_str());
    return status_of(error);
  }
}

void print_error(const char* message) {
  const std::string line = printable(message);
  // One call, so that the lines of several processes do not mix. If standard error is closed, only
  // the exit status reports the error.
  static_cast<void>(std::fputs(fmt::format("syncopate: {}\n", line).c_str(), stderr));
}

int guarded_rank(const Launch& launch, const std::function<int()>& body, Duration patience) {
  int status = exit_status::success;
  try {
    status = body();
    if (launch.rank > 0) {
      return status;  // the job has started: rank 0 ends all ranks
    }
  } catch (const std::exception& error) {
    status = say(launch, error, patience);
  }
  if (status != exit_status::success) {
    end_all_ranks(from_environment, status);
  }
  return status;
}

void end_all_ranks(const Environment& environment, int status) {
  const auto line = line_to_mpich(environment);
  if (!line) {
    return;
  }
  pause_for(until_words_have_come);
  const std::string word = fmt::format("cmd=abort exitcode={}\n", status);
  // A failed write means that the launcher has ended, and all ranks with it.
  ::send(*line, word.data(), word.size(), MSG_NOSIGNAL);
}

}  // namespace syncopate
