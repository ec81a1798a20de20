// Goal:   the doctor checks figures against their bounds, prints a finding that all ranks share
//         only once, and finds a link that is slower than others of its kind.
// Method: made-up figures.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/doctor/finding.hpp"
#include "cli/doctor/host.hpp"
#include "cli/doctor/link_matrix.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* young_processor =
    "processor : 0\nmodel name : Swift 9000\nflags : fpu sse2 avx2 avx512f fma\n";
constexpr const char* old_processor = "processor : 0\nmodel name : Slow 1\nflags : fpu sse2\n";

TEST(Doctor, SaysOnceWhatAllRanksSay) {
  const Findings findings{
      {.subject = "clock", .text = "set", .rank = 0},
      {.subject = "disk", .ok = false, .text = "full", .advice = "remove", .rank = 0},
      {.subject = "clock", .text = "set", .rank = 1},
      {.subject = "disk", .text = "free", .rank = 1},
      {.subject = "links", .text = "fine"},
  };
  EXPECT_THAT(
      lines_of(findings, 2),
      ElementsAre("ok       clock  set", "problem  disk   rank 0: full", "                → remove",
                  "ok       disk   rank 1: free", "ok       links  fine"));
  EXPECT_FALSE(all_ok(findings));
}

TEST(Doctor, TellsFindingsToOtherRanksWhole) {
  const Findings findings{
      {.subject = "disk", .ok = false, .text = "full", .advice = "remove", .rank = 3},
      {.subject = "clock", .text = "set"}};
  EXPECT_EQ(findings_in(to_json(findings)), findings);
}

TEST(Doctor, JudgesLimitsByWhatAJobNeeds) {
  EXPECT_FALSE(judge_open_files(1023).ok);
  EXPECT_TRUE(judge_open_files(1024).ok);
  EXPECT_FALSE(judge_memory(1 << 20).ok);
  EXPECT_TRUE(judge_memory(std::uint64_t{1} << 31).ok);
  EXPECT_FALSE(judge_disk("runs", 1000).ok);
  EXPECT_TRUE(judge_disk("runs", std::uint64_t{1} << 31).ok);
  EXPECT_TRUE(judge_locked_memory(65536).ok);
}

TEST(Doctor, NamesTheProcessorAndItsVectors) {
  EXPECT_EQ(judge_processor(young_processor, 2).text, "Swift 9000, 2 cores, AVX-512");
  EXPECT_EQ(judge_processor(old_processor, 1).text, "Slow 1, 1 core, no AVX2");
  EXPECT_EQ(judge_processor("", 1).text, "processor of unknown name, 1 core, no AVX2");
}

TEST(Doctor, ABlasMayBeAsOldAsItsProcessor) {
  EXPECT_TRUE(judge_blas(young_processor, "SkylakeX").ok);
  EXPECT_TRUE(judge_blas(young_processor, "Haswell").ok);
  EXPECT_TRUE(judge_blas(old_processor, "Prescott").ok);
  const Finding slow = judge_blas(young_processor, "Prescott");
  EXPECT_FALSE(slow.ok);
  EXPECT_THAT(slow.advice, HasSubstr("SKYLAKEX"));
  EXPECT_THAT(judge_blas(young_processor, "").advice, HasSubstr("libopenblas0-pthread"));
}

TEST(Doctor, NamesTheVersionOfMklAlone) {
  const Finding finding = judge_mkl(
      "Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64");
  EXPECT_TRUE(finding.ok);
  EXPECT_EQ(finding.subject, "BLAS");
  EXPECT_EQ(finding.text, "MKL 2024.2");
  EXPECT_EQ(judge_mkl("of another form").text, "MKL of another form");
}

/// Returns the links of four ranks on two hosts, equal for each kind of link.
LinkMatrix four_ranks() {
  LinkMatrix matrix{.latency_seconds = {}, .bytes_per_second = {}, .hosts = {0, 0, 1, 1}};
  matrix.latency_seconds.assign(4, std::vector<double>(4, 10e-6));
  matrix.bytes_per_second.assign(4, std::vector<double>(4, 1e9));
  return matrix;
}

TEST(Doctor, TellsLinksWithinHostsFromThoseBetween) {
  LinkMatrix matrix = four_ranks();
  matrix.bytes_per_second[0][1] = matrix.bytes_per_second[2][3] = 8e9;
  const Findings findings = judge_links(matrix);
  ASSERT_EQ(findings.size(), 2);
  EXPECT_TRUE(all_ok(findings));
  EXPECT_EQ(findings[0].text, "2, median 10.0 µs and 8.00 GB/s");
  EXPECT_EQ(findings[1].text, "4, median 10.0 µs and 1.00 GB/s");
}

TEST(Doctor, NamesTheRanksOfASlowLink) {
  LinkMatrix matrix = four_ranks();
  matrix.bytes_per_second[1][2] = 0.2e9;
  const Findings findings = judge_links(matrix);
  ASSERT_EQ(findings.size(), 3);
  EXPECT_FALSE(findings[2].ok);
  EXPECT_EQ(findings[2].text, "ranks 1 and 2: 0.200 GB/s, median 1.00");
}

TEST(Doctor, ShowsLinksOfUpToSixteenRanks) {
  LinkMatrix matrix = four_ranks();
  matrix.paths.assign(4, std::vector<std::string>(4, "shared memory"));
  matrix.paths[1][2] = "10.0.0.2, TLS 1.3";
  const std::vector<std::string> lines = lines_of(matrix);
  ASSERT_EQ(lines.size(), 17);  // three tables of five lines, and between them an empty one
  EXPECT_THAT(lines.at(1), HasSubstr("rank 0"));
  EXPECT_THAT(lines.at(14), AllOf(HasSubstr("rank 1"), HasSubstr("10.0.0.2, TLS 1.3")));
  matrix.hosts.resize(17);
  EXPECT_THAT(lines_of(matrix), ElementsAre());
}

}  // namespace
}  // namespace syncopate::cli
