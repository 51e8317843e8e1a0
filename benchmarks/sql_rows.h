#pragma once

#include <memory>
#include <string>

#include "benchmarks/catch.h"
#include "benchmarks/server_rows.h"
#include "simba/connect.h"
#include "simba/store.h"

// What the benchmarks of the SQL stores share. `Raw` is the driver alone.
namespace simba::bench {

// The raw loop twice, on a table each.
template <class Raw>
struct Tables {
  Raw raw, raw_again;
};

template <class Raw>
Duel lost_against_raw(const std::string& url, Tables<Raw>& tables, double seconds) {
  const auto hold = [](Raw& db) { expect(db.take("lost", "another") != 0, "not taken"); };
  hold(tables.raw), hold(tables.raw_again);
  const std::shared_ptr<Store> store = open_store(url);
  Claim claim{"lost", "another", 0, 0, milliseconds{600'000}, milliseconds{6'000}};
  const auto ask = [&] {
    const Answers answers = store->contend({&claim, 1}, BootClock::now() + milliseconds{1'000});
    return std::get<Observation>(answers.at(0)).owner.id;
  };
  expect(ask() == "another", "the mutex to be lost was not free");
  claim.wire_id = kOwner;
  const auto lose = [](Raw& db) { expect(db.take("lost", kOwner) == 0, "it was granted"); };
  return duel(
      seconds, [&] { lose(tables.raw); }, [&] { lose(tables.raw_again); },
      [&] { expect(ask() == "another", "a held mutex was granted"); });
}

// The seeds' loop, twice, on tables of their own that have the row: a transaction of four
// statements, and a release of one.
template <class Raw>
class SeedPairs {
 public:
  template <class Where>
  explicit SeedPairs(const Where& where) : first_{{where, "seed"}}, second_{{where, "seed_again"}} {
    first_(), second_();
  }

  Duel against_locker(const std::string& url, double seconds) {
    return locker_against(
        url, [this] { run(first_.db); }, [this] { run(second_.db); }, seconds);
  }
  Duel against(RawPair<Raw>& raw, double seconds) {
    return duel(
        seconds, [this] { run(first_.db); }, [this] { run(second_.db); }, [&] { raw(); });
  }

 private:
  static void run(Raw& db) {
    expect(db.take_by_transaction(kMutex, kOwner) && db.release_by_statement(kMutex, kOwner),
           "the seeds' loop did not get the mutex");
  }

  RawPair<Raw> first_, second_;
};

// Both commits wait for the disk: a slow one hides what is done in between. `where`: as Raw wants
// it.
template <class Raw, class Server, class Where>
void add_seed_row(const Server& server, const Where& where, Report& report, const char* name,
                  double seconds, double target) {
  const auto ours = [&](double span) {
    return SeedPairs<Raw>(where).against_locker(server.url(), span);
  };
  const auto raw = [&](double span) {
    RawPair<Raw> pair{{where, "raw"}};
    return SeedPairs<Raw>(where).against(pair, span);
  };
  add_row_with_wall(server, report, name, ours, raw, seconds, target);
}

// `raw_ball` makes one on the table of this name.
template <class MakeRaw>
Balls balls_of(const std::string& url, MakeRaw raw_ball) {
  const Client client = connect(url);
  return {raw_ball("raw"), our_ball(client, "one"), raw_ball("raw_again"), our_ball(client, "two")};
}

}  // namespace simba::bench
