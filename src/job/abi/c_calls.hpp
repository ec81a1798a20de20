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

/// What the functions of the C interface have in common: no exception leaves one.
namespace syncopate::abi {

/// The status of the error that is being handled, whose message `syncopate_last_error` then has.
syncopate_status status_of_error() noexcept;

/// Runs the body of a function. Errors become a status.
template <class Body>
syncopate_status call(const Body& body) noexcept {
  try {
    body();
    return SYNCOPATE_OK;
  } catch (...) {
    return status_of_error();
  }
}

/// Runs the body of a function that makes something, which the caller then owns; null after an
/// error.
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

/// Returns what the body of a function does; after an error 0 or NULL, or `otherwise`.
template <class Body, class Value = std::invoke_result_t<Body>>
Value value_of(const Body& body, Value otherwise = {}) noexcept {
  static_cast<void>(call([&] { otherwise = body(); }));
  return otherwise;
}

/// Frees what a caller owned; null is fine.
template <class Made>
void dispose(Made* made) noexcept {
  std::unique_ptr<Made>(made).reset();
}

/// A pointer that must not be null. Errors: ConfigError, which names it.
template <class Value>
Value& given(Value* value, const char* name) {
  if (value == nullptr) {
    throw ConfigError(std::string(name) + " is NULL");
  }
  return *value;
}

/// A struct of the caller, which may have been compiled with another version of it: what it does
/// not have is zero. Errors: ConfigError, for one whose size is not set.
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

/// Gives a struct of the caller the values of `own`, as many as it has room for. Errors: those of
/// `taken`.
template <class Struct>
void fill(Struct* to, Struct own, const char* name) {
  own.size = taken(to, name).size;
  std::memcpy(to, &own, std::min(own.size, sizeof own));
}

/// Empty for NULL.
std::string text_of(const char* text);

/// How long members of a group wait for each other; 0: the usual time. Errors: ConfigError.
Duration wait_limit_of(double seconds);

/// Errors: ConfigError, for an option without name or value, and for one given twice.
std::map<std::string, std::string> options_of(const syncopate_option* options, std::size_t count);

}  // namespace syncopate::abi
