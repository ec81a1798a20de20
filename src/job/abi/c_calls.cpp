#include "job/abi/c_calls.hpp"

#include <algorithm>
#include <new>

#include "base/version.hpp"
#include "job/front/loop_job.hpp"

namespace syncopate::abi {
namespace {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

syncopate_status failed(syncopate_status status, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (const std::bad_alloc&) {
    last_error().clear();  // if memory is short, the error has no message
  }
  return status;
}

syncopate_status status_of(const std::exception& error) {
  const auto is = [&]<class Class>() { return dynamic_cast<const Class*>(&error) != nullptr; };
  if (is.operator()<ConfigError>()) return SYNCOPATE_CONFIG_ERROR;
  if (is.operator()<DataError>()) return SYNCOPATE_DATA_ERROR;
  if (is.operator()<PeerLost>()) return SYNCOPATE_PEER_LOST;
  if (is.operator()<TimedOut>()) return SYNCOPATE_TIMED_OUT;
  if (is.operator()<NotFinite>()) return SYNCOPATE_NOT_FINITE;
  if (is.operator()<ProtocolError>()) return SYNCOPATE_PROTOCOL_ERROR;
  if (is.operator()<Cancelled>()) return SYNCOPATE_CANCELLED;
  if (is.operator()<InternalError>()) return SYNCOPATE_INTERNAL_ERROR;
  return SYNCOPATE_ERROR;
}

}  // namespace

syncopate_status status_of_error() noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    return failed(status_of(error), error.what());
  } catch (...) {
    return failed(SYNCOPATE_INTERNAL_ERROR, "something was thrown that is no std::exception");
  }
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

Duration wait_limit_of(double seconds) {
  constexpr double longest = 1e8;
  if (seconds == 0) {
    return InitOptions::usual_wait_limit;
  }
  if (!(seconds > 0)) {
    throw ConfigError("wait_seconds is a number above 0, or 0 for half an hour, found " +
                      std::to_string(seconds));
  }
  return from_seconds(std::min(seconds, longest));
}

std::map<std::string, std::string> options_of(const syncopate_option* options, std::size_t count) {
  std::map<std::string, std::string> named;
  for (std::size_t i = 0; i < count; ++i) {
    const syncopate_option& option = (&given(options, "options"))[i];
    const std::string name = &given(option.name, "the name of an option");
    if (!named.emplace(name, &given(option.value, "the value of an option")).second) {
      throw ConfigError("option " + name + " is given twice");
    }
  }
  return named;
}

}  // namespace syncopate::abi

const char* syncopate_last_error() {
  return syncopate::abi::last_error().c_str();
}

const char* syncopate_version() {
  return syncopate::version.data();
}
