#include "scheme/scheme_options.hpp"

namespace syncopate {
namespace {

constexpr std::string_view automatic = "auto";
constexpr std::string_view server = "server";

}  // namespace

std::string name_of_value(const Aggregate& aggregate) {
  if (aggregate.by_server) {
    return std::string(server);
  }
  return std::string(aggregate.reducer != nullptr ? aggregate.reducer->name : automatic);
}

OptionValue OptionTraits<Aggregate>::written(const Aggregate& value) {
  return name_of_value(value);
}

/// Names are checked where they are read.
Aggregate OptionTraits<Aggregate>::read(const OptionValue& value) {
  const std::string& name = std::get<std::string>(value);
  return {.reducer = find_reducer(name), .by_server = name == server};
}

std::vector<std::string_view> OptionTraits<Aggregate>::choices() {
  std::vector<std::string_view> names = reducer_names();
  names.push_back(server);
  return names;
}

}  // namespace syncopate
