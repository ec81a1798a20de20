// Goal:   TensorBoard can read the curves of a run: records with right checksums, steps and
//         moments; a file that cannot be written is an error.
// Method: a separate reader in the test, with a bitwise checksum; the check value of CRC-32C.

#include "report/event_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "report/scalar_log.hpp"
#include "report/tensorboard_event.pb.h"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

std::uint32_t checksum_by_bits(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    }
  }
  crc ^= 0xFFFFFFFF;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <class Value>
Value number_at(const std::string& text, std::size_t at) {
  Value value{};
  std::memcpy(&value, text.data() + at, sizeof(value));
  return value;
}

std::vector<tensorboard::Event> events_in(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<tensorboard::Event> events;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = number_at<std::uint64_t>(text, at);
    EXPECT_EQ(number_at<std::uint32_t>(text, at + 8), checksum_by_bits(text.substr(at, 8)));
    const std::string message = text.substr(at + 12, length);
    EXPECT_EQ(number_at<std::uint32_t>(text, at + 12 + length), checksum_by_bits(message));
    EXPECT_TRUE(events.emplace_back().ParseFromString(message));
    at += 16 + length;
  }
  return events;
}

TEST(EventFile, MasksTheCheckValueOfCrc32c) {
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5U);
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8U);
}

TEST(EventFile, HoldsAVersionAndThenScalars) {
  const std::filesystem::path folder = fresh_folder("events");
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "events.out.tfevents.1";
  {
    EventFile file(path, 1000);
    file.write(1001.5, 7, std::vector<Scalar>{{"evaluation/accuracy", 0.5}, {"loss", 2}});
  }
  const auto events = events_in(path);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1000);
  EXPECT_EQ(events[1].wall_time(), 1001.5);
  EXPECT_EQ(events[1].step(), 7);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "evaluation/accuracy");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5F);
}

TEST(EventFile, SaysWhyItCannotBeWritten) {
  EXPECT_THROW(EventFile("/dev/full", 0), DataError);
  EXPECT_THROW(EventFile("/nowhere/events", 0), DataError);
}

/// Returns the curves of a run by tag; each maps a round to its value.
std::map<std::string, std::map<std::int64_t, double>> curves_in(const RunFolder& folder,
                                                                double wall_time) {
  std::map<std::string, std::map<std::int64_t, double>> curves;
  for (const tensorboard::Event& event : events_in(folder.events(wall_time))) {
    for (const auto& value : event.summary().value()) {
      curves[value.tag()][event.step()] = value.simple_value();
    }
  }
  return curves;
}

TEST(ScalarLog, HasTheCurvesOfARun) {
  TrainConfig config = toy_config(fresh_folder("curves"));
  config.scheme = "ssgd";
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  config.epochs = 2;
  SimulatedJob job = toy_job(config);
  job.run();
  const RunFolder folder(config.run_dir);
  auto curves = curves_in(folder, 0);
  const auto& evaluations = job.summary().at("evaluations");
  ASSERT_EQ(curves["evaluation/accuracy"].size(), evaluations.size());
  for (const auto& evaluation : evaluations) {
    const std::int64_t round = evaluation.at("round");
    EXPECT_FLOAT_EQ(static_cast<float>(curves["evaluation/accuracy"].at(round)),
                    evaluation.at("accuracy").get<float>());
    EXPECT_FLOAT_EQ(static_cast<float>(curves["evaluation/loss"].at(round)),
                    evaluation.at("loss").get<float>());
  }
  const std::int64_t rounds = job.summary().at("rounds");
  EXPECT_FLOAT_EQ(static_cast<float>(curves["training/throughput"].at(rounds)),
                  job.summary().at("throughput").get<float>());
  EXPECT_NEAR(curves["training/learning_rate"].at(rounds), 0.05, 1e-6);
  EXPECT_NEAR(curves["training/epoch"].at(rounds), 2, 0.1);
  EXPECT_GT(curves["training/loss"].size(), 10U);
  EXPECT_NEAR(curves["computing_time_ratio/worker 1 (d (emulated))"].at(rounds), 1, 0.05);
}

}  // namespace
}  // namespace syncopate
