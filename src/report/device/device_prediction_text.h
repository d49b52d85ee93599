#pragma once

#include <string>
#include <vector>

#include "src/report/device/device_prediction.h"

namespace seto {

// A table with a row for each size, or all about one size, for people. Every row says that it is a prediction.
std::string device_prediction_text(const Question& question, const std::vector<DeviceSize>& sizes, const DeviceModel& model);
std::string device_prediction_json(const Question& question, const std::vector<DeviceSize>& sizes, const DeviceModel& model);

// "GPU links"
std::string_view name_of(DeviceCost cost);

}  // namespace seto
