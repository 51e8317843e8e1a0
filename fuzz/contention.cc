// Whatever a store answers, in whatever order: a contender is owner only by an answer to its own
// question that names its wire id, a token and a running lease, and never for longer than it asked
// for.
#include <memory>
#include <optional>

#include "core/contention.h"
#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "testing/fake_executor.h"

using simba::LocalTime;
using simba::core::Contention;
using simba::fuzz::require;

namespace {

class Driver {
 public:
  explicit Driver(FuzzedDataProvider& input) : input_(input) {}

  void run() {
    note(contention_.start(
        input_.ConsumeBool() ? simba::core::Goal::kKeep : simba::core::Goal::kOnce, now_));
    while (input_.remaining_bytes() > 0) {
      now_ += simba::milliseconds{input_.ConsumeIntegralInRange(0, 20'000)};
      step();
      check();
    }
  }

 private:
  void step() {
    switch (input_.ConsumeIntegralInRange(0, 6)) {
      case 0:
        return note(contention_.timer(now_));
      case 1:
        return note(contention_.wake(now_));
      case 2:
        return note(contention_.failed(number(), simba::Errc::kUnreachable, now_));
      case 3:
        return note(contention_.overheard(answer(), sent_, now_));
      case 4:
        return note(contention_.work_done(contention_.wire_id(), now_));
      default:
        return answered();
    }
  }

  void answered() {
    const std::uint64_t its = number();
    const simba::Observation seen = answer();
    const bool held = contention_.term().has_value();
    const bool grants = contention_.awaits(its) && seen.owner.is_owner(contention_.wire_id()) &&
                        seen.owner.token != 0 && !seen.is_free();
    note(contention_.answered(its, seen, sent_, now_));
    require(held || grants || !contention_.term(), "only a grant begins a term");
  }

  simba::Observation answer() {
    simba::Observation seen = simba::fuzz::observation(input_);
    if (input_.ConsumeBool()) seen.owner.id = contention_.wire_id();
    return seen;
  }

  std::uint64_t number() {
    return input_.ConsumeBool() ? asked_ : input_.ConsumeIntegral<std::uint64_t>();
  }

  void note(const simba::core::Effects& effects) {
    if (!effects.ask) return;
    asked_ = effects.ask->number;
    sent_ = now_;
  }

  void check() {
    const auto& term = contention_.term();
    if (!term) return;
    require(term->token != 0, "a term has a token");
    require(term->ttl_end <= term->sent + contention_.timing().ttl_end,
            "no term is longer than asked for");
    require(term->revoke_at <= term->sent + contention_.timing().revoke_at, "nor revoked later");
    require(term->sent <= now_, "and none begins in the future");
  }

  FuzzedDataProvider& input_;
  simba::testing::FakeExecutor executor_;
  Contention contention_{"me",
                         std::make_shared<simba::core::Rules>(simba::ContendOptions{}, LocalTime{}),
                         false, executor_};
  LocalTime now_{simba::milliseconds{1'000'000}}, sent_ = now_;
  std::uint64_t asked_ = 0;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  Driver(input).run();
  return 0;
}
