#include <gmock/gmock.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SqliteProcess : public SqliteTest {};

TEST_F(SqliteProcess, AStormOfFirstOpensAllSucceedAndOneOwns) {
  for (int round = 0; round < 5; ++round) {
    file = directory / ("storm-" + std::to_string(round));
    Signal go;
    std::vector<std::unique_ptr<Child>> children;
    children.reserve(20);
    for (int i = 0; i < 20; ++i) {
      children.push_back(std::make_unique<Child>([&, id = "c~" + std::to_string(i)] {
        go.wait();
        const auto store = open_store();
        const std::string owner = take(*store, "report", id).owner.id;
        if (owner == id) take(*store, "won-" + id, id);
      }));
    }
    for (int i = 0; i < 20; ++i) go.give();
    for (const auto& child : children) EXPECT_EQ(child->join(), 0);
    EXPECT_EQ(open_store()->list("won-", {}, 100, soon()).size(), 1U);
  }
}

// SQLite would go on with the memory that is gone, because the other store still has it.
TEST_F(SqliteProcess, WhoseMemoryWasDeletedMeetsAllOthersInTheNewOne) {
  Signal begin, taken, end;
  Child other([&] {
    begin.wait();
    const auto store = open_store();
    if (take(*store, "report", "other~1").owner.id != "other~1") _exit(2);
    taken.give();
    end.wait();
    if (take(*store, "order", "other~1").owner.id != "idle~1") _exit(3);
  });
  const auto store = open_store(), idle = open_store();
  take(*store, "held", "a~1");
  take(*idle, "held", "idle~1");
  std::filesystem::remove(file.string() + "-shm");
  EXPECT_THAT(error_of([&] { take(*store, "held", "a~2"); }), StartsWith("the store was replaced"));
  EXPECT_EQ(take(*store, "held", "a~3").owner.id, "a~1");
  begin.give();
  taken.wait();
  EXPECT_EQ(take(*store, "report", "a~4").owner.id, "other~1");
  EXPECT_THAT(error_of([&] { take(*idle, "order", "idle~1"); }),
              StartsWith("the store was replaced"));
  EXPECT_EQ(take(*idle, "order", "idle~1").owner.id, "idle~1");
  end.give();
  EXPECT_EQ(other.join(), 0);
}

// Its own place in the log is where others have written since.
TEST_F(SqliteProcess, WhoseMemoryWasDeletedWritesOverNobodysTerm) {
  Signal opened, deleted, written;
  Child late([&] {
    const auto store = open_store();
    take(*store, "order", "late~1");
    opened.give();
    deleted.wait();
    pass(1ms);  // what is as it was is not written
    const std::string error = error_of([&] { take(*store, "order", "late~1"); });
    if (!error.starts_with("the store was replaced")) _exit(2);
  });
  Child third([&] {
    written.wait();
    if (take(*open_store(), "report", "third~1").owner.id != "a~1") _exit(3);
  });
  opened.wait();
  std::filesystem::remove(file.string() + "-shm");
  const auto store = open_store();
  const Token token = take(*store, "report", "a~1").owner.token;
  deleted.give();
  EXPECT_EQ(late.join(), 0);
  written.give();
  EXPECT_EQ(third.join(), 0) << "two own it";
  EXPECT_EQ(renew(*store, "report", "a~1", token).owner.id, "a~1");
}

// Claims in every way, for ever.
void work(Store& store, unsigned seed) {
  std::minstd_rand random(seed);
  const std::string id = "w~" + std::to_string(seed);
  std::vector<std::string> names(50);
  std::vector<Claim> claims(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = "batch-" + std::to_string(100 + i);
    claims[i] = {names[i], id, 0, 0, 10s, 6s};
  }
  while (true) {
    take(store, "one", id);
    release(store, "one", id);
    if (random() % 4 == 0) {
      store.contend(claims, soon());
      store.release(claims, soon());
    }
  }
}

TEST_F(SqliteProcess, KilledAtAnyMomentLeavesTheFileUsable) {
  std::minstd_rand random(4711);
  Token last = 0;
  for (unsigned round = 0; round < 100; ++round) {
    Signal started;
    Child first([&] {
      started.give();
      work(*open_store(), 2 * round);
    });
    Child second([&] { work(*open_store(), 2 * round + 1); });
    started.wait();
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 4'000});
    first.kill();
    first.join();
    second.kill();
    second.join();
    pass(16s + 1ms);  // the leases of the dead
    const auto store = open_store();
    const Observation taken = take(*store, "one", "checker~1");
    ASSERT_EQ(taken.owner.id, "checker~1") << round;
    ASSERT_GT(taken.owner.token, last) << round;
    last = taken.owner.token;
    for (const Listed& listed : store->list("batch-", {}, 100, soon())) {
      ASSERT_TRUE(listed.observation.is_free()) << round;
    }
    release(*store, "one", "checker~1");
  }
}

TEST_F(SqliteProcess, NeverLetsTwoProcessesOwnAtOnce) {
  Signal go;
  const auto contender = [&](const std::string& id) {
    go.wait();
    const auto store = open_store();
    for (int owned = 0; owned < 200;) {
      const Observation seen = take(*store, "one", id);
      if (seen.owner.id != id) continue;
      ++owned;
      const Observation witness = take(*store, "witness", id);
      if (witness.owner.id != id) throw std::logic_error("two owners at once");
      release(*store, "witness", id);
      release(*store, "one", id);
    }
  };
  Child a([&] { contender("a~1"); });
  Child b([&] { contender("b~1"); });
  Child c([&] { contender("c~1"); });
  for (int i = 0; i < 3; ++i) go.give();
  EXPECT_EQ(a.join(), 0);
  EXPECT_EQ(b.join(), 0);
  EXPECT_EQ(c.join(), 0);
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST_F(SqliteProcess, IsDeadInAForkedChildAndHarmsTheParentInNoWay) {
  auto store = open_store();
  auto watch = store->watch("report", "", [] {});
  take(*store, "report", "a~1");
  const auto in_the_child = [&](const std::function<void()>& call) {
    return in_child([&] { return error_of(call); });
  };
  EXPECT_THAT(in_the_child([&] { take(*store, "report", "b~1"); }),
              HasSubstr("not allowed in this state: sqlite: forked: this store"));
  EXPECT_THAT(in_the_child([&] { store->watch("report", "", [] {}); }), HasSubstr("forked"));
  EXPECT_THAT(in_the_child([&] { open_store(); }),
              HasSubstr("the parent process has this file open"));
  EXPECT_EQ(in_child([&]() -> std::string {
              const auto before = open_descriptors();
              watch.reset();
              store.reset();
              return open_descriptors() == before ? "nothing touched" : "something closed";
            }),
            "nothing touched");
  EXPECT_EQ(take(*store, "report", "b~1").owner.id, "a~1");
}

TEST_F(SqliteProcess, MayBeOpenedInAChildWhenTheParentHasClosedIt) {
  take(*open_store(), "report", "a~1");
  EXPECT_EQ(in_child([&] { return take(*open_store(), "report", "b~1").owner.id; }), "a~1");
}

}  // namespace
}  // namespace simba::sqlite
