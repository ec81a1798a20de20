#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// Every scheme, in the order of help texts.
std::span<const SchemeSpec* const> all_schemes();

/// Errors: ConfigError, for an unknown name.
const SchemeSpec& scheme_named(std::string_view name);

/// One device, no communication: what the limit of a comparison trains by.
const SchemeSpec& sequential_scheme();
/// What the speed-up of other schemes is told against.
const SchemeSpec& baseline_scheme();

/// The option that a scheme declares by this name, or null.
const OptionSpec* find_option(const SchemeSpec& scheme, std::string_view name);

/// Every option that some scheme declares, once.
std::vector<OptionSpec> scheme_options();

/// The schemes that declare an option: "local-sgd, diloco or easgd".
std::string schemes_with(std::string_view option);

}  // namespace syncopate
