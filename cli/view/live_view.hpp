#pragma once

#include <string>
#include <vector>

#include "cli/view/render.hpp"
#include "cli/view/training_view.hpp"

namespace syncopate::cli {

/// A picture at the bottom of the terminal, redrawn in place; log lines scroll above it.
class LiveView : public TrainingView {
 public:
  LiveView(TrainConfig config, Style style);
  /// Restores the cursor, below the picture.
  ~LiveView() override;
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  Duration refresh_period() const override { return std::chrono::milliseconds(100); }
  void refresh() override;
  void resized() override;

 private:
  void show(const events::Event& event, std::string_view line) override;
  void show_log(const std::string& line) override;
  void finish() override;
  void draw();
  /// Removes the picture; the next output starts at its first line.
  void erase();

  Style style_;
  std::vector<std::string> drawn_;  ///< the lines that are on the screen
  bool changed_ = true;
};

}  // namespace syncopate::cli
