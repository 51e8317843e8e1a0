// A file that is replaced while calls come in between of one another.
#include <algorithm>
#include <string>

#include "stores/sqlite/sqlite_fixture.h"
#include "testing/gaps.h"

namespace simba::sqlite {
namespace {

namespace fs = std::filesystem;
using SqliteReplaced = SqliteTest;

// Of two calls that find it changed, one may give it up when others have opened it anew long ago.
TEST_F(SqliteReplaced, WhichWasOpenedAnewIsNotGivenUpForWhatItWasBefore) {
  int places = 1, in_time = 0;
  for (int place = 0; place < places; ++place) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "before lock " + std::to_string(place));
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
    const auto store = open_store();
    take(*store, "report", "a~1");
    fs::remove(file.string() + "-shm");
    Token token = 0;
    const auto take_anew = [&] {
      const Claim claim{"invoice", "b~1", 0, 0, 10s, 6s};
      token = observed(store->contend({&claim, 1}, local_now() + 20ms).at(0)).owner.token;
    };
    {
      const testing::Gaps gaps([&](int at) {
        for (int i = 0; i < 3 && at == place && token == 0; ++i) error_of(take_anew);
      });
      error_of([&] { observe(*store, "report"); });
      places = std::max(places, gaps.count());
    }
    if (token == 0) continue;
    ++in_time;
    EXPECT_EQ(error_of([&] { renew(*store, "invoice", "b~1", token); }), "none");
  }
  EXPECT_GT(in_time, 2) << "no locks pass by: is it linked with --wrap?";
}

}  // namespace
}  // namespace simba::sqlite
