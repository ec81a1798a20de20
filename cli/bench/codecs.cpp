#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "cli/bench/bench_processes.hpp"
#include "cli/bench/benchmarks.hpp"
#include "cli/bench/timing.hpp"
#include "codec/codec_frame.hpp"

namespace syncopate::cli {
namespace {

/// Every codec, as `Compression::parse` reads it: "int8", "topk:0.01".
std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const CodecSpec* const codec : all_codecs()) {
    names.push_back(to_string(Compression{.codec = codec, .parameter = 0.01}));
  }
  return names;
}

/// A codec with its values and buffers.
struct Bench {
  std::string name;
  std::unique_ptr<Codec> codec;
  std::vector<float> values;
  std::vector<float> decoded;
  std::vector<std::byte> frame;

  void encode() { encode_frame(*codec, values, frame); }
  void decode() { decode_frame(*codec, frame, decoded); }
};

/// Values like gradients: of both signs, most of them small.
std::vector<float> normal_values(std::size_t count) {
  Random random(1);
  std::vector<float> some(std::min<std::size_t>(count, 10'007));
  for (float& value : some) {
    value = static_cast<float>(random.normal());
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = some[i % some.size()];
  }
  return values;
}

std::shared_ptr<Bench> bench_of(std::string_view name, std::size_t count) {
  auto bench = std::make_shared<Bench>();
  bench->name = name;
  bench->codec = make_codec(Compression::parse(name));
  bench->values = normal_values(count);
  bench->decoded.resize(count);
  bench->frame.resize(frame_bytes(*bench->codec, count));
  bench->encode();
  return bench;
}

void add_cases(std::vector<Case>& cases, const std::string& level, std::size_t values) {
  for (const std::string& name : codec_names()) {
    const std::shared_ptr<Bench> bench = bench_of(name, values);
    const std::size_t bytes = values * sizeof(float);
    const auto add = [&](const std::string& does, std::function<void()> pass) {
      cases.push_back({.names = {{"codec", bench->name},
                                 {"does", does},
                                 {"from", level},
                                 {"ratio", static_cast<double>(bytes) /
                                               static_cast<double>(bench->frame.size())}},
                       .bytes = bytes,
                       .passes = level == "L2" ? cached_passes : 1,
                       .pass = std::move(pass)});
    };
    add("encode", [bench] { bench->encode(); });
    add("decode", [bench] { bench->decode(); });
  }
}

void measure_codecs(std::size_t values, const Effort& effort, BenchReporter& reporter) {
  std::vector<Case> cases;
  add_cases(cases, "L2", cached_values);
  add_cases(cases, "memory", values);
  reporter.begins(fmt::format("{} codecs on one core", all_codecs().size()));
  take_turns(cases, effort);
  for (const Case& done : cases) {
    reporter.result(figures(done));
  }
}

}  // namespace

int bench_codecs(const BenchCommand& command) {
  return run_processes({"codecs"}, command.form, [&](std::uint32_t, BenchReporter& reporter) {
    for (const std::size_t bytes : command.bytes) {
      measure_codecs(bytes / sizeof(float), command.effort, reporter);
    }
  });
}

}  // namespace syncopate::cli
