#include "stores/mysql/mysql_fixture.h"

#include <mysql.h>

#include <random>
#include <stdexcept>

#include "stores/mysql/schema.h"

namespace simba::mysql {

Admin::Admin(const MysqlOptions& options) : connection_(mysql_init(nullptr)) {
  const auto& [host, port] = options.hosts.at(0);
  if (mysql_real_connect(connection_, host.c_str(), options.user.c_str(), options.password.c_str(),
                         options.database.c_str(), port, nullptr, 0) != nullptr) {
    return;
  }
  const std::string why = mysql_error(connection_);
  mysql_close(connection_);
  throw std::runtime_error(why);
}

Admin::~Admin() { mysql_close(connection_); }

std::string Admin::operator()(const std::string& sql) {
  if (mysql_query(connection_, sql.c_str()) != 0) {
    throw std::runtime_error(sql + ": " + mysql_error(connection_));
  }
  std::string values;
  Result rows(mysql_store_result(connection_), 0, 0);
  const unsigned columns = mysql_field_count(connection_);
  if (!rows.next()) return values;
  for (unsigned i = 0; i < columns; ++i) {
    values += (i > 0 ? "|" : "") + (rows.is_null(i) ? "NULL" : std::string(rows.text(i)));
  }
  return values;
}

std::string jvm_table_sql(const std::string& table) {
  return "CREATE TABLE " + table +
         " (mutex VARCHAR(66) NOT NULL PRIMARY KEY COMMENT 'mutex name',"
         " acquired_at BIGINT UNSIGNED NOT NULL, ttl_at BIGINT UNSIGNED NOT NULL,"
         " transition_at BIGINT UNSIGNED NOT NULL, owner_id CHAR(32) NOT NULL,"
         " version INT UNSIGNED NOT NULL) ENGINE = InnoDB CHARACTER SET utf8mb4"
         " COLLATE utf8mb4_general_ci";
}

void MysqlTest::SetUp() {
  try {
    server_ = std::make_unique<servers::TestServer>("mariadb");
  } catch (const servers::Unavailable& reason) {
    GTEST_SKIP() << reason.what();
  }
  admin_ = std::make_unique<Admin>(server_->url());
  const std::string number = std::to_string(std::random_device{}());
  table = "simba_test_" + number;
  user = "u" + number;
}

void MysqlTest::TearDown() {
  if (!admin_) return;
  admin()("DROP TABLE IF EXISTS " + table);
  admin()("DROP USER IF EXISTS " + user);
}

std::string MysqlTest::url(const std::string& as, const std::string& more) const {
  std::string out = server_->url("table=" + table);
  if (!as.empty()) {
    const std::size_t from = out.find("//") + 2, at = out.find('@');
    out.replace(from, at - from, as);
  }
  return out + (more.empty() ? "" : "&" + more);
}

MysqlOptions MysqlTest::options(const std::string& as, const std::string& more) const {
  MysqlOptions made = mysql_options(url(as, more));
  made.log = const_cast<Lines&>(log).sink();  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return made;
}

std::shared_ptr<Store> MysqlTest::open_elsewhere(const std::string& as) const {
  static std::atomic<int> count{0};
  return open(as, "connect_timeout=" + std::to_string(20 + ++count));
}

void MysqlTest::make_user(const std::string& how) const {
  (*admin_)("CREATE USER " + user + ' ' + how);
}

void MysqlTest::grant(const std::string& rights) const {
  (*admin_)("GRANT " + rights + " ON " + table + " TO " + user);
}

void MysqlTest::make_table() const { (*admin_)(create_table_sql(Endpoint(options()))); }

std::string MysqlTest::row(const std::string& mutex, const std::string& columns) {
  return admin()("SELECT " + columns + " FROM " + table + " WHERE mutex = '" + mutex + "'");
}

std::unique_ptr<Admin> MysqlTest::lock_row(const std::string& mutex) const {
  auto stranger = std::make_unique<Admin>(server_->url());
  (*stranger)("BEGIN");
  (*stranger)("SELECT 1 FROM " + table + " WHERE mutex = '" + mutex + "' FOR UPDATE");
  return stranger;
}

int MysqlTest::count_connections(const std::string& condition) const {
  return std::stoi((*admin_)("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '" +
                             user + "' AND (" + condition + ')'));
}

}  // namespace simba::mysql
