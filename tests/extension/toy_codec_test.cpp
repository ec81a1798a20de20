// Goal:   a codec is one file and one line: `--compress` and jobs know a codec that is added in
//         this way.
// Method: the list of codecs is compiled with an additional line (CMakeLists.txt). The codec is set
//         from the command line and from the configuration file; a job in the simulator compresses
//         with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"
#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TrainConfig config_of(const std::string& folder, const std::string& compress) {
  TrainConfig config = toy_config(fresh_folder(folder));
  config.scheme = "ssgd";
  set(config, "compress", compress);
  return config;
}

TEST(ToyCodec, IsListed) {
  EXPECT_EQ(all_codecs().back()->name, "toy");
  EXPECT_EQ(compression_names().back(), "toy");
  EXPECT_EQ(find_field("compress")->choices().back(), "toy");
}

TEST(ToyCodec, IsReadOnTheCommandLineAndInTheFile) {
  TrainConfig config;
  set(config, "compress", "toy");
  EXPECT_EQ(to_string(config.compress), "toy");
  EXPECT_EQ(value_of(config, "compress"), "toy");
  EXPECT_THAT(to_toml(config), HasSubstr("compress = 'toy'"));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
  EXPECT_THROW(Compression::parse("toy:0.5"), ConfigError);
}

TEST(ToyCodec, MakesFramesWithItsNumber) {
  const auto codec = make_codec(Compression::parse("toy"));
  const std::vector<float> values{1, -2.5F, 0};
  std::vector<std::byte> frame(frame_bytes(*codec, values.size()));
  encode_frame(*codec, values, frame);
  EXPECT_EQ(frame[4], std::byte{200});
  std::vector<float> decoded(values.size());
  decode_frame(*codec, frame, decoded);
  EXPECT_EQ(decoded, values);
}

TEST(ToyCodec, CompressesAJobThatTrains) {
  SimulatedJob plain = toy_job(config_of("toy-codec-plain", "none"));
  plain.run();
  SimulatedJob job = toy_job(config_of("toy-codec", "toy"));
  job.run();
  EXPECT_EQ(job.summary().at("compress"), "toy");
  EXPECT_THAT(job.summary().at("aggregate").get<std::string>(), StartsWith("toy"));
  for (const auto& worker : job.summary().at("workers")) {
    EXPECT_GT(worker.at("compression").at("ratio"), 1.5);
  }
  EXPECT_LT(job.summary().at("loss").get<double>(),
            1.05 * plain.summary().at("loss").get<double>());
}

}  // namespace
}  // namespace syncopate
