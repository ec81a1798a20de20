#include "collective/reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/errors.hpp"

namespace syncopate {

#define REDUCER(name) const ReducerSpec& name##_reducer();
#include "collective/reducers.inc"
#undef REDUCER

namespace {

std::vector<const ReducerSpec*> listed() {
  return {
#define REDUCER(name) &name##_reducer(),
#include "collective/reducers.inc"
#undef REDUCER
  };
}

template <class Wanted>
std::vector<std::string_view> names_where(const Wanted& wanted) {
  std::vector<std::string_view> names{"auto"};
  for (const ReducerSpec* const reducer : all_reducers()) {
    if (wanted(*reducer)) {
      names.push_back(reducer->name);
    }
  }
  return names;
}

}  // namespace

std::span<const ReducerSpec* const> all_reducers() {
  static const std::vector<const ReducerSpec*> all = listed();
  return all;
}

std::vector<std::string_view> reducer_names() {
  return names_where([](const ReducerSpec&) { return true; });
}

std::vector<std::string_view> own_reducer_names() {
  return names_where([](const ReducerSpec& reducer) { return !reducer.of_program; });
}

const ReducerSpec* find_reducer(std::string_view name) {
  const auto all = all_reducers();
  const auto found = std::ranges::find(all, name, &ReducerSpec::name);
  return found == all.end() ? nullptr : *found;
}

void check_request(const ReducerSpec& reducer, std::uint32_t workers, std::string_view transport) {
  const ReducerSpec* const other = reducer.stand_in ? reducer.stand_in(workers) : nullptr;
  if (other != nullptr) {
    throw ConfigError(fmt::format(
        "aggregate {} needs {} of workers, found {}; choose {}, which takes any number, or auto",
        reducer.name, reducer.ranks, workers, other->name));
  }
  if (reducer.in_memory && transport == "tcp") {
    throw ConfigError(fmt::format(
        "aggregate {} needs shared memory, which transport tcp does not use; leave out transport",
        reducer.name));
  }
  if (!reducer.transport.empty() && reducer.transport != transport) {
    throw ConfigError(fmt::format("aggregate {} needs transport {}, found {}", reducer.name,
                                  reducer.transport, transport));
  }
}

}  // namespace syncopate
