#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/networks.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::cli {

/// Of `bench` alone: tcp, encrypted as between hosts.
constexpr std::string_view encrypted_transport = "tcp-encrypted";

/// The values of `--transport` of `bench`. With mpi, a launcher starts the ranks.
inline constexpr auto bench_transports = [] {
  std::array<std::string_view, transport_names.size() + 1> names{};
  std::copy(transport_names.begin(), transport_names.end(), names.begin());
  names.back() = encrypted_transport;
  return names;
}();

/// The length of one measurement.
struct Effort {
  std::optional<std::uint64_t> rounds = {};  ///< number of rounds; empty: as many as fill `seconds`
  double seconds = 0.5;
};

enum class Form { text, json, markdown };

/// The parsed command line of `syncopate bench`. Each benchmark reads the fields of its own
/// options.
struct BenchCommand {
  std::string benchmark;
  std::string transport{bench_transports.front()};
  std::vector<std::string> reducers{"auto"};
  std::uint32_t ranks = 2;
  std::uint32_t servers = 1;
  std::uint32_t workers = 2;
  std::vector<std::size_t> bytes = {};  ///< sizes of messages or vectors to measure
  Effort effort = {};
  Form form = Form::text;
  std::string network = "lenet5";
  std::uint32_t batch_size = 64;
  std::uint32_t threads = 1;
  std::optional<std::uint32_t> image_size = {};  ///< side; empty: 28, or the network's minimum
  Precision precision = Precision::float32;
};

}  // namespace syncopate::cli
