// Whatever a store answers, in whatever order: a contender is owner only by an answer to its own
// question that names its wire id, a token and a running lease, and never for longer than it asked
// for.
#include <memory>
#include <optional>
#include <string>

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
  explicit Driver(simba::fuzz::Input& input) : input_(input) {}

  void run() {
    note(contention_.start(input_.flip() ? simba::core::Goal::kKeep : simba::core::Goal::kOnce,
                           now_));
    while (input_.left() > 0) {
      now_ += simba::milliseconds{input_.in_range(0, 20'000)};
      step();
      check();
    }
  }

 private:
  void step() {
    const std::optional<simba::core::TermTimes> before = contention_.term();
    const std::string wire_id = contention_.wire_id();
    const bool grants = take_a_step();
    const auto& after = contention_.term();
    if (!after) return;
    if (!before) return require(grants, "only a grant begins a term");
    require(after->token == before->token && contention_.wire_id() == wire_id,
            "a term stays what it is: nothing is adopted");
    require(after->revoke_at == before->revoke_at || grants, "only a grant extends a term");
  }

  // Whether it was an answer to its own question, and one that grants what was asked for.
  bool take_a_step() {
    switch (input_.in_range(0, 6)) {
      case 0:
        note(contention_.timer(now_));
        return false;
      case 1:
        note(contention_.wake(now_));
        return false;
      case 2:
        note(contention_.failed(number(), simba::Errc::kUnreachable, now_));
        return false;
      case 3:
        note(contention_.overheard(answer(), sent_, now_));
        return false;
      case 4:
        note(contention_.work_done(contention_.wire_id(), now_));
        return false;
      default:
        return answered();
    }
  }

  bool answered() {
    const std::uint64_t its = number();
    const simba::Observation seen = answer();
    const auto& term = contention_.term();
    const bool is_its_own = term ? seen.owner.token == term->token : seen.owner.token != 0;
    const bool grants = contention_.awaits(its) && is_its_own &&
                        seen.owner.is_owner(contention_.wire_id()) && !seen.is_free();
    note(contention_.answered(its, seen, sent_, now_));
    require(!term || term->token == seen.owner.token || !grants, "a term has the token granted");
    return grants;
  }

  simba::Observation answer() {
    simba::Observation seen = simba::fuzz::observation(input_);
    if (input_.flip()) seen.owner.id = contention_.wire_id();
    return seen;
  }

  std::uint64_t number() { return input_.flip() ? asked_ : input_.number<std::uint64_t>(); }

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

  simba::fuzz::Input& input_;
  simba::testing::FakeExecutor executor_;
  Contention contention_{"me",
                         std::make_shared<simba::core::Rules>(simba::ContendOptions{}, LocalTime{}),
                         false, executor_};
  LocalTime now_{simba::milliseconds{1'000'000}}, sent_ = now_;
  std::uint64_t asked_ = 0;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  Driver(input).run();
  return 0;
}
