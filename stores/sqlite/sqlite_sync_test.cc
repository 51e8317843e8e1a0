// What the store's own connections are set to: they are asked, not the options.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <mutex>
#include <set>

#include "stores/sqlite/sqlite_fixture.h"

namespace simba::sqlite {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

std::mutex open_mutex;
std::set<sqlite3*> open_now;  // guarded by open_mutex

void forget(void* db) {
  const std::lock_guard lock(open_mutex);
  open_now.erase(static_cast<sqlite3*>(db));
}

// SQLite calls it for each connection of this process; a function of our own says when it closes.
int remember(sqlite3* db, char**, const void*) {
  const auto nothing = [](sqlite3_context*, int, sqlite3_value**) {};
  {
    const std::lock_guard lock(open_mutex);
    open_now.insert(db);
  }
  return sqlite3_create_function_v2(db, "simba_test", 0, SQLITE_UTF8, db, nothing, nullptr, nullptr,
                                    forget);
}

class SqliteSyncTest : public SqliteTest {
 public:
  SqliteSyncTest() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(remember)); }
  ~SqliteSyncTest() override { sqlite3_reset_auto_extension(); }

 protected:
  // PRAGMA synchronous of each connection that a store of this URL has open after a lock and an
  // unlock: 0 OFF, 1 NORMAL, 2 FULL.
  std::vector<int> modes(const std::string& parameters) const {
    const auto store = open_sqlite(sqlite_options("sqlite:" + file.string() + parameters));
    const Token token = take(*store, "report", "a~1").owner.token;
    release(*store, "report", "a~1", token);
    const std::lock_guard lock(open_mutex);
    std::vector<int> all;
    for (sqlite3* db : open_now) all.push_back(mode_of(db));
    return all;
  }

 private:
  static int mode_of(sqlite3* db) {
    int mode = -1;
    const auto take_it = [](void* out, int, char** values, char**) {
      *static_cast<int*>(out) = std::stoi(values[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, "PRAGMA synchronous", take_it, &mode, nullptr), SQLITE_OK);
    return mode;
  }
};

TEST_F(SqliteSyncTest, IsNormalByDefault) {
  EXPECT_THAT(modes(""), Not(IsEmpty()));
  EXPECT_THAT(modes(""), Each(1));
  EXPECT_THAT(modes("?synchronous=normal"), Each(1));
}

TEST_F(SqliteSyncTest, IsFullByTheOption) {
  EXPECT_THAT(modes("?synchronous=full"), Not(IsEmpty()));
  EXPECT_THAT(modes("?synchronous=full"), Each(2));
}

}  // namespace
}  // namespace simba::sqlite
