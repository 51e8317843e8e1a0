// Somebody's own service, attacked in simulation: a ledger, and bookkeepers of whom one leads and
// writes. It prints how many schedules it takes until a superseded leader's entry gets in.
//
//   simulated                  tries three ways to guard the ledger
//   simulated careless 7       replays one schedule, with its timeline
#include <simba/contend_service.h>
#include <simba/testing/attack.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

using namespace std::chrono_literals;
using simba::testing::SimNode;
using simba::testing::SimWorld;

enum class Care {
  kCareless,  // a leader writes, and nobody looks whether it still leads
  kWatchful,  // the leader looks at lost() before it prepares an entry
  kFenced,    // and the ledger refuses an entry with a smaller token
};

// [service]
// What the mutex protects. It outlives every bookkeeper.
struct Ledger {
  bool refuses_old_tokens = false;
  simba::Token newest = 0;
  std::uint64_t entries = 0, refused = 0;
  bool is_wrong = false;  // an entry of a superseded leader came after one of a newer leader

  void write(simba::Token token) {
    if (refuses_old_tokens && token < newest) {
      ++refused;
      return;
    }
    if (token < newest) is_wrong = true;
    newest = std::max(newest, token);
    ++entries;
  }
};

// One process: contends, and writes an entry every 300 ms while it leads.
class Bookkeeper {
 public:
  Bookkeeper(SimNode& node, Ledger& ledger, Care care) : node_(node), ledger_(ledger), care_(care) {
    service_.start();
  }

 private:
  void work(const simba::Term& term) {
    if (care_ != Care::kCareless && term.lost().stop_requested()) return;
    node_.post(300ms, [this, term] {  // an entry takes its time, and a pause may lie in between
      ledger_.write(term.token());
      work(term);
    });
  }

  SimNode& node_;
  Ledger& ledger_;
  const Care care_;
  simba::MutexContendService service_{
      node_.client(),
      simba::make_contender(
          "ledger",
          {.on_acquired = [this](const simba::MutexState& state) { work(state.term); },
           .on_released = {}},
          node_.name())};
};
// [service]

// [scenario]
void keep_books(SimWorld& world, Ledger& ledger, Care care) {
  ledger.refuses_old_tokens = care == Care::kFenced;
  for (const char* name : {"ann", "bob", "cid"}) {
    world.add_node(name).run([&ledger, care](SimNode& node) {
      return std::make_shared<Bookkeeper>(node, ledger, care);
    });
  }
  world.plan_faults({.until = 75s, .lease = 16s, .mutexes = {"ledger"}});
  world.run(120s, [&] {
    if (ledger.is_wrong) world.violate("the ledger", "an entry of a superseded leader got in");
  });
}
// [scenario]

// The scenario alone knows the ledger; what it came to is added up here.
struct Totals {
  std::uint64_t entries = 0, refused = 0;
};

simba::testing::Scenario scenario(Care care, Totals& totals) {
  return [care, &totals](SimWorld& world) {
    Ledger ledger;
    keep_books(world, ledger, care);
    totals.entries += ledger.entries;
    totals.refused += ledger.refused;
  };
}

const char* to_string(Care care) {
  switch (care) {
    case Care::kCareless:
      return "careless";
    case Care::kWatchful:
      return "watchful";
    case Care::kFenced:
      return "fenced";
  }
  return "?";
}

// True when some schedule broke the ledger.
bool try_to_break(Care care, simba::testing::ModelKind kind) {
  constexpr std::uint64_t kSeeds = 300;
  Totals totals;
  // [attack]
  const auto found =
      simba::testing::attack(scenario(care, totals), {.first = 1, .count = kSeeds}, {.kind = kind});
  if (found) std::puts(to_string(*found).c_str());
  // [attack]
  std::printf("%s, %s server: %s, %llu entries, %llu refused\n\n", to_string(care),
              simba::testing::to_string(kind),
              found ? "broken" : "no schedule of 300 breaks the ledger",
              static_cast<unsigned long long>(totals.entries),
              static_cast<unsigned long long>(totals.refused));
  return found.has_value();
}

int replay(const std::string& care, std::uint64_t seed) {
  for (const Care each : {Care::kCareless, Care::kWatchful, Care::kFenced}) {
    if (care != to_string(each)) continue;
    Totals totals;
    for (const std::string& line : simba::testing::replay(scenario(each, totals), seed)) {
      std::puts(line.c_str());
    }
    return 0;
  }
  std::fputs("simulated [careless|watchful|fenced SEED]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  using simba::testing::ModelKind;
  if (argc == 3) return replay(argv[1], std::strtoull(argv[2], nullptr, 10));
  bool as_expected = try_to_break(Care::kCareless, ModelKind::kLease);
  as_expected &= try_to_break(Care::kWatchful, ModelKind::kLease);
  for (const ModelKind kind : {ModelKind::kLease, ModelKind::kPush, ModelKind::kSession}) {
    as_expected &= !try_to_break(Care::kFenced, kind);
  }
  return as_expected ? 0 : 1;
}
