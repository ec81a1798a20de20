#pragma once

#include <syncopate.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "base/errors.hpp"
#include "base/time.hpp"

/// Helpers of the functions of the C interface, which let no exception escape.
namespace syncopate::abi {

/// Returns the status of the error that is being handled, and keeps its message for
/// `syncopate_last_error`. Call it in a catch block.
syncopate_status status_of_error() noexcept;

/// Runs the body of a function; returns an error as a status.
template <class Body>
syncopate_status call(const Body& body) noexcept {
  try {
    body();
    return SYNCOPATE_OK;
  } catch (...) {
    return status_of_error();
  }
}

/// Runs the body of a function that makes an object for the caller. *made is null after an error.
template <class Made, class Body>
syncopate_status make(Made** made, const Body& body) noexcept {
  return call([&] {
    if (made == nullptr) {
      throw ConfigError("the pointer to what the call makes is NULL");
    }
    *made = nullptr;
    std::unique_ptr<Made> own = body();
    *made = own.release();
  });
}

/// Returns the value that the body of a function returns; after an error returns `otherwise`, by
/// default 0 or NULL.
template <class Body, class Value = std::invoke_result_t<Body>>
Value value_of(const Body& body, Value otherwise = {}) noexcept {
  static_cast<void>(call([&] { otherwise = body(); }));
  return otherwise;
}

/// Frees an object that the caller owned; null is fine.
template <class Made>
void dispose(Made* made) noexcept {
  std::unique_ptr<Made>(made).reset();
}

/// Returns the value behind a pointer. Errors: ConfigError, with the name, if the pointer is null.
template <class Value>
Value& given(Value* value, const char* name) {
  if (value == nullptr) {
    throw ConfigError(std::string(name) + " is NULL");
  }
  return *value;
}

/// Copies a struct of the caller, which may have been compiled with another version of the struct:
/// fields that the caller's version lacks are zero. Errors: ConfigError if its size is not set.
template <class Struct>
Struct taken(const Struct* from, const char* name) {
  const std::size_t size = given(from, name).size;
  if (size < sizeof size) {
    throw ConfigError(std::string(name) + ".size is not set to sizeof(" + name + ")");
  }
  Struct own{};
  std::memcpy(&own, from, std::min(size, sizeof own));
  return own;
}

/// Copies `own` into a struct of the caller, up to the size of the caller's version. Errors: those
/// of `taken`.
template <class Struct>
void fill(Struct* to, Struct own, const char* name) {
  own.size = taken(to, name).size;
  std::memcpy(to, &own, std::min(own.size, sizeof own));
}

/// Returns the text; empty for NULL.
std::string text_of(const char* text);

/// Returns the time for which members of a group wait for each other; 0 seconds mean the default.
/// Errors: ConfigError if `seconds` is negative or no number.
Duration wait_limit_of(double seconds);

/// Returns the options by name. Errors: ConfigError if an option has no name or value, or is given
/// twice.
std::map<std::string, std::string> options_of(const syncopate_option* options, std::size_t count);

}  // namespace syncopate::abi
