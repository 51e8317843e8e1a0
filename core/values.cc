#include <algorithm>

#include "core/utf8.h"
#include "simba/error.h"
#include "simba/mutex_owner.h"
#include "simba/mutex_state.h"
#include "simba/term.h"

namespace simba::inline v0 {
namespace {

class SimbaCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "simba"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::kUnreachable:
        return "the store cannot be reached";
      case Errc::kDenied:
        return "the store denied the call";
      case Errc::kTimeout:
        return "the deadline passed";
      case Errc::kMisconfigured:
        return "misconfigured";
      case Errc::kMisuse:
        return "not allowed in this state";
      case Errc::kCorrupt:
        return "the store's data makes no sense";
      case Errc::kReplaced:
        return "the store was replaced";
    }
    return "unknown simba error " + std::to_string(code);
  }
};

std::string one_line(std::string text) {
  constexpr std::string_view kBlanks = "\t\n\v\f\r";
  std::replace_if(
      text.begin(), text.end(), [&](char c) { return kBlanks.find(c) != kBlanks.npos; }, ' ');
  return core::printable(text, text.size());
}

}  // namespace

Error::Error(Errc code, const std::string& what)
    : std::runtime_error(""), said_(std::make_shared<const Said>(Said{code, one_line(what)})) {}

const std::error_category& error_category() noexcept {
  static const SimbaCategory category;
  return category;
}

const MutexOwner& MutexOwner::none() {
  static const MutexOwner none{"", StoreTime{}, StoreTime{}, StoreTime{}, 0};
  return none;
}

const MutexState& MutexState::none() {
  static const MutexState none{MutexOwner::none(), MutexOwner::none(), {}, {}, {}};
  return none;
}

const char* to_string(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::kNone:
      return "none";
    case LossReason::kReleased:
      return "released";
    case LossReason::kExpired:
      return "expired";
    case LossReason::kSuperseded:
      return "superseded";
    case LossReason::kUnreachable:
      return "store unreachable";
    case LossReason::kForced:
      return "evicted";
    case LossReason::kClockJump:
      return "stood still past the end of the lease";
    case LossReason::kReplaced:
      return "store replaced";
    case LossReason::kAbandoned:
      return "work outlived its grace";
  }
  return "unknown";
}

}  // namespace simba::inline v0
