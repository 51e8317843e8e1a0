#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "simba/sqlite.h"
#include "testing/contract.h"

namespace simba::testing {
namespace {

class SqliteContract : public StoreContract {
 public:
  SqliteContract() {
    std::string pattern = std::filesystem::temp_directory_path() / "simba-contract-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
    directory_ = pattern;
  }
  ~SqliteContract() override { std::filesystem::remove_all(directory_); }

  std::shared_ptr<Store> connect() override {
    SqliteOptions options;
    options.file = directory_ / "locks.db";
    return open_sqlite(options);
  }

 private:
  std::filesystem::path directory_;
};

SIMBA_CONTRACT(Sqlite, [] { return std::make_unique<SqliteContract>(); })

}  // namespace
}  // namespace simba::testing
