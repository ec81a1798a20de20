#pragma once

#include <string>

#include "base/errors.hpp"

namespace syncopate {

/// Returns the message of the ConfigError that `action` throws; "no ConfigError" without one.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace syncopate
