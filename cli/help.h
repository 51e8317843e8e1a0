#pragma once

namespace simba::cli::help {

extern const char kSimba[];
extern const char kRun[];
extern const char kLead[];
extern const char kSchedule[];
extern const char kLs[];
extern const char kShow[];
extern const char kWatch[];
extern const char kRelease[];
extern const char kInit[];
extern const char kDoctor[];
extern const char kBench[];
extern const char kTorture[];
extern const char kConfig[];
extern const char kCompletion[];
extern const char kVersion[];

}  // namespace simba::cli::help
