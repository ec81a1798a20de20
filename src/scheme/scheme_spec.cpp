#include "scheme/scheme_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/errors.hpp"
#include "config/text.hpp"

namespace syncopate {

#define SCHEME(name) const SchemeSpec& name##_scheme();
#include "scheme/schemes.inc"
#undef SCHEME

namespace {

std::vector<const SchemeSpec*> listed() {
  return {
#define SCHEME(name) &name##_scheme(),
#include "scheme/schemes.inc"
#undef SCHEME
  };
}

}  // namespace

std::span<const SchemeSpec* const> all_schemes() {
  static const std::vector<const SchemeSpec*> all = listed();
  return all;
}

const SchemeSpec& scheme_named(std::string_view name) {
  for (const SchemeSpec* const scheme : all_schemes()) {
    if (scheme->name == name) {
      return *scheme;
    }
  }
  throw ConfigError(fmt::format("there is no scheme \"{}\"; `syncopate schemes` lists them", name));
}

const SchemeSpec& sequential_scheme() {
  return local_scheme();
}

const SchemeSpec& baseline_scheme() {
  return ssgd_scheme();
}

const SchemeSpec& paced_scheme() {
  return esync_scheme();
}

const OptionSpec* find_option(const SchemeSpec& scheme, std::string_view name) {
  const auto found =
      std::find_if(scheme.options.begin(), scheme.options.end(),
                   [&](const OptionSpec& declared) { return declared.name == name; });
  return found == scheme.options.end() ? nullptr : &*found;
}

std::vector<OptionSpec> scheme_options() {
  std::vector<OptionSpec> options;
  std::set<std::string_view> names;
  for (const SchemeSpec* const scheme : all_schemes()) {
    std::copy_if(scheme->options.begin(), scheme->options.end(), std::back_inserter(options),
                 [&](const OptionSpec& option) { return names.insert(option.name).second; });
  }
  return options;
}

std::string schemes_with(std::string_view option) {
  std::vector<std::string_view> names;
  for (const SchemeSpec* const scheme : all_schemes()) {
    if (find_option(*scheme, option) != nullptr) {
      names.push_back(scheme->name);
    }
  }
  return alternatives(names);
}

void count_asynchronous_updates(SchemeTraits& traits, const SchemeJob& job) {
  traits.rate_divisor = 2.0 * job.workers - 1;
}

ServerClient& server_of(const SchemeContext& context) {
  if (context.server == nullptr) {
    throw InternalError("a scheme of a parameter server was made without one");
  }
  return *context.server;
}

SharedModel& shared_model_of(const SchemeContext& context, std::string_view what) {
  if (context.shared == nullptr) {
    throw ConfigError(fmt::format(
        "{} needs memory that all workers share: start them together, with `syncopate train`",
        what));
  }
  return *context.shared;
}

}  // namespace syncopate
