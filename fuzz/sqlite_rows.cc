// Rows that somebody else wrote into the file of the SQLite store.
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "simba/sqlite.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

class File {
 public:
  File() {
    char folder[] = "/dev/shm/simba-fuzz-XXXXXX";
    require(mkdtemp(folder) != nullptr, "there is a place for the file");
    folder_ = folder;
    store = simba::open_sqlite({.file = folder_ / "locks.db"});
    take({});  // makes the row, and shows what this boot is called
    require(sqlite3_open((folder_ / "locks.db").c_str(), &db_) == SQLITE_OK, "the file opens");
    run("PRAGMA synchronous = OFF");
    sqlite3_stmt* boot = nullptr;
    sqlite3_prepare_v2(db_, "SELECT boot_id FROM simba_mutex", -1, &boot, nullptr);
    require(sqlite3_step(boot) == SQLITE_ROW, "a row says of which boot it is");
    boot_ = reinterpret_cast<const char*>(sqlite3_column_text(boot, 0));
    sqlite3_finalize(boot);
  }
  ~File() {
    store.reset();
    sqlite3_close(db_);
    std::filesystem::remove_all(folder_);
  }

  // Whether it is a row of this boot.
  bool put(simba::fuzz::Input& input) {
    run("DELETE FROM simba_mutex");
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(db_,
                       "INSERT INTO simba_mutex (mutex, owner_id, acquired_at, ttl_at, "
                       "transition_at, token, boot_id) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?)",
                       -1, &insert, nullptr);
    bind(insert, 1, std::string(simba::fuzz::kMutex));
    bind(insert, 2, simba::fuzz::id(input));
    for (int i = 3; i <= 6; ++i) sqlite3_bind_int64(insert, i, input.number<std::int64_t>());
    const std::string boot = input.flip() ? input.text(40) : boot_;
    bind(insert, 7, boot);
    sqlite3_step(insert);  // a row that the table refuses is not there
    sqlite3_finalize(insert);
    return boot == boot_;
  }

  simba::Answer take(simba::Claim claim) {
    if (claim.mutex.empty()) {
      claim.mutex = simba::fuzz::kMutex;
      claim.wire_id = simba::fuzz::kWireId;
      claim.ttl = simba::milliseconds{1'000};
    }
    return store->contend({&claim, 1}, deadline()).front();
  }

  static simba::LocalTime deadline() {
    return simba::BootClock::now() + simba::milliseconds{5'000};
  }

  std::shared_ptr<simba::Store> store;

 private:
  static void bind(sqlite3_stmt* statement, int index, const std::string& text) {
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void run(const char* sql) {
    require(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK,
            "a statement of the fuzzer works");
  }

  std::filesystem::path folder_;
  std::string boot_;  // what this one is called
  sqlite3* db_ = nullptr;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static File file;
  simba::fuzz::Input input(data, size);
  const simba::Claim claim = simba::fuzz::claim_of(input);
  const bool is_of_this_boot = file.put(input);
  accepts<simba::Error>([&] {
    for (const auto& answer : file.store->observe({&simba::fuzz::kMutex, 1}, File::deadline())) {
      simba::fuzz::check(answer);
      const auto* seen = std::get_if<simba::Observation>(&answer);
      require(seen == nullptr || is_of_this_boot || seen->is_free(), "no lease outlives a boot");
    }
  });
  accepts<simba::Error>([&] { file.store->list("", {}, 10, File::deadline()); });
  accepts<simba::Error>([&] { simba::fuzz::check(file.take(claim)); });
  return 0;
}
