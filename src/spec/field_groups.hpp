#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/option.hpp"
#include "spec/config.hpp"
#include "spec/config_fields.hpp"

namespace syncopate {

/// As `Compression::parse` reads it.
template <>
struct OptionTraits<Compression> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Compression& value) { return to_string(value); }
  static Compression read(const OptionValue& value) {
    return Compression::parse(std::get<std::string>(value));
  }
};

/// As `Split::parse` reads it.
template <>
struct OptionTraits<Split> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Split& value) { return to_string(value); }
  static Split read(const OptionValue& value) { return Split::parse(std::get<std::string>(value)); }
};

/// As `parse_shares` reads them. An empty list means that the field is unset.
template <>
struct OptionTraits<std::vector<double>> {
  static constexpr OptionType type = OptionType::text;
  static constexpr bool may_be_open = false;
  static OptionValue written(const std::vector<double>& value) {
    return value.empty() ? OptionValue() : OptionValue(shares_text(value));
  }
  static std::vector<double> read(const OptionValue& value) {
    return parse_shares(std::get<std::string>(value));
  }
};

/// A whole number, or a text that lists those of all workers.
template <>
struct OptionTraits<BatchSizes> {
  static constexpr OptionType type = OptionType::counts;
  static constexpr bool may_be_open = false;
  static OptionValue written(const BatchSizes& value);
  static BatchSizes read(const OptionValue& value);
};

/// As `Every::parse` reads it.
template <>
struct OptionTraits<Every> {
  static constexpr OptionType type = OptionType::period;
  static constexpr bool may_be_open = false;
  static OptionValue written(const Every& value) { return value.to_string(); }
  static Every read(const OptionValue& value) { return Every::parse(to_text(value)); }
};

/// Makes the field of this member of the configuration. The member's type determines the kind of
/// the option, its initial value the default.
template <class T>
Field field(T TrainConfig::*member, OptionSpec spec) {
  if constexpr (requires { OptionTraits<T>::choices; }) {
    spec.choices = &OptionTraits<T>::choices;
  }
  spec.type = OptionTraits<T>::type;
  spec.may_be_open = OptionTraits<T>::may_be_open;
  spec.initial = OptionTraits<T>::written(TrainConfig{}.*member);
  return {std::move(spec),
          [member](const TrainConfig& config) { return OptionTraits<T>::written(config.*member); },
          [member](TrainConfig& config, const OptionValue& value) {
            config.*member = OptionTraits<T>::read(value);
          },
          /*of_scheme=*/false};
}

// The options of every job, by group: first those of training_fields.cpp.

std::vector<Field> model_and_data_fields();
std::vector<Field> batch_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> schedule_and_start_fields();

std::vector<Field> workers_fields();
std::vector<Field> synchronization_fields();
std::vector<Field> server_fields();
std::vector<Field> stopping_fields();
std::vector<Field> outputs_fields();
std::vector<Field> failures_fields();

}  // namespace syncopate
