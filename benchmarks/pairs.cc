// One thread, a free mutex: lock and unlock against the raw statements.
#include <map>
#include <memory>
#include <mutex>

#include "benchmarks/pair.h"
#include "benchmarks/raw_sqlite.h"
#include "benchmarks/settings.h"
#include "simba/connect.h"
#include "simba/locker.h"
#include "simba/sqlite.h"

namespace simba::bench {
namespace {

using Synchronous = RawSqlite::Synchronous;
using Compare = RawSqlite::Compare;

Duel locker_against_raw(const Settings& settings, Synchronous synchronous, double seconds,
                        Compare compare = Compare::kPath) {
  const bool full = synchronous == Synchronous::kFull;
  RawPair<RawSqlite> raw{{settings.file("raw.db"), synchronous, compare}};
  RawPair<RawSqlite> raw_again{{settings.file("raw-again.db"), synchronous, compare}};
  return locker_against(
      settings.url("ours.db", full), [&] { raw(); }, [&] { raw_again(); }, seconds);
}

void sqlite_pair(const Settings& settings, Report& report, Synchronous synchronous) {
  const Duel unpinned = locker_against_raw(settings, synchronous, settings.seconds / 2);
  const Pinned pin;
  const Duel pinned = locker_against_raw(settings, synchronous, settings.seconds);
  const bool full = synchronous == Synchronous::kFull;
  Row row = row_of(full ? "sqlite lock+unlock, FULL" : "sqlite lock+unlock", pinned, &unpinned,
                   kPairTarget);
  if (!full) {
    const auto against = [&](Compare compare) {
      const Duel duel = locker_against_raw(settings, synchronous, settings.seconds / 2, compare);
      return fixed(duel.ratio(), 3) + " (A/A " + fixed(duel.a_to_a(), 3) + ")";
    };
    row.note =
        "against the statements alone, without the question whether the path still leads "
        "to the open file: " +
        against(Compare::kNo) +
        "; asked the store's way, by the directory: " + against(Compare::kDirectory);
  }
  report.add(row);
}

Duel store_against_raw(const Settings& settings, double seconds, Compare compare = Compare::kPath) {
  RawPair<RawSqlite> raw{{settings.file("raw.db"), Synchronous::kNormal, compare}};
  RawPair<RawSqlite> raw_again{{settings.file("raw-again.db"), Synchronous::kNormal, compare}};
  const std::shared_ptr<Store> store = open_store(settings.url("ours.db"));
  Claim claim{kMutex, kOwner, 0, 0, milliseconds{10'000}, milliseconds{6'000}};
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        claim.token = 0;
        const Answers taken = store->contend({&claim, 1}, BootClock::now() + milliseconds{1'000});
        claim.token = std::get<Observation>(taken[0]).owner.token;
        store->release({&claim, 1}, BootClock::now() + milliseconds{1'000});
      });
}

Duel lost_against_raw(const Settings& settings, double seconds) {
  RawSqlite raw(settings.file("raw.db"), Synchronous::kNormal);
  RawSqlite raw_again(settings.file("raw-again.db"), Synchronous::kNormal);
  for (RawSqlite* db : {&raw, &raw_again}) expect(db->take("lost", "another") != 0, "not taken");
  const Client holder = connect(settings.url("ours.db"));
  SimbaLocker held(holder, "lost");
  expect(held.try_lock(), "the mutex to be lost was not free");
  const Client client = connect(settings.url("ours.db"));
  SimbaLocker locker(client, "lost");
  const auto lose = [](RawSqlite& db) { expect(db.take("lost", kOwner) == 0, "it was granted"); };
  Duel result = duel(
      seconds, [&] { lose(raw); }, [&] { lose(raw_again); },
      [&] { expect(!locker.try_lock(), "a held mutex was granted"); });
  for (RawSqlite* db : {&raw, &raw_again}) db->release("lost", "another", 0);
  return result;
}

// What a lock in memory has to do: the same fields behind one lock.
class RawMemory {
 public:
  void operator()() {
    {
      const std::lock_guard lock(guard_);
      const auto it = rows_.try_emplace(kMutex).first;
      const std::int64_t now = now_ns() / 1'000'000;
      expect(it->second.transition_at < now, "the raw loop did not get the mutex");
      it->second = {kOwner, now, now + 10'000, now + 16'000, it->second.token + 1};
    }
    const std::lock_guard lock(guard_);
    Row& row = rows_.find(kMutex)->second;
    expect(row.owner == kOwner, "the raw loop lost the mutex");
    row = {"", 0, 0, 0, row.token};
  }

 private:
  struct Row {
    std::string owner;
    std::int64_t acquired_at = 0, ttl_at = 0, transition_at = 0, token = 0;
  };
  std::mutex guard_;
  std::map<std::string, Row, std::less<>> rows_;
};

Duel memory_against_raw(double seconds) {
  RawMemory raw, raw_again;
  constexpr int kRepeat = 32;
  return locker_against(
      "memory:", [&] { raw(); }, [&] { raw_again(); }, seconds, kRepeat);
}

}  // namespace

void sqlite_pair_normal(const Settings& settings, Report& report) {
  sqlite_pair(settings, report, Synchronous::kNormal);
}

void sqlite_pair_full(const Settings& settings, Report& report) {
  sqlite_pair(settings, report, Synchronous::kFull);
}

void sqlite_store_alone(const Settings& settings, Report& report) {
  const Duel unpinned = store_against_raw(settings, settings.seconds / 2);
  const Pinned pin;
  const Duel pinned = store_against_raw(settings, settings.seconds);
  const Duel bare = store_against_raw(settings, settings.seconds / 2, Compare::kNo);
  Row row = row_of("sqlite store calls alone", pinned, &unpinned, {});
  row.note = "against the statements alone: " + fixed(bare.ratio(), 3);
  report.add(row);
}

void sqlite_lost_attempt(const Settings& settings, Report& report) {
  const Duel unpinned = lost_against_raw(settings, settings.seconds / 2);
  const Pinned pin;
  const Duel pinned = lost_against_raw(settings, settings.seconds);
  report.add(row_of("sqlite try_lock of a held mutex", pinned, &unpinned, {}));
}

void memory_pair(const Settings& settings, Report& report) {
  const Duel unpinned = memory_against_raw(settings.seconds / 4);
  const Pinned pin;
  const Duel pinned = memory_against_raw(settings.seconds / 2);
  Row row = row_of("memory lock+unlock", pinned, &unpinned, {}, 1);
  row.unit = "ns";
  report.add(row);
}

}  // namespace simba::bench
