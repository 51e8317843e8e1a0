#include "stores/mysql/mysql_fixture.h"

#include <mysql.h>

#include <sstream>
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
  Result rows(mysql_store_result(connection_), 0, 0, "a test");
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

void MysqlTest::TearDown() {
  if (!is_prepared()) return;
  admin()("DROP TABLE IF EXISTS " + table);
  admin()("DROP USER IF EXISTS " + user);
}

MysqlOptions MysqlTest::options(const std::string& as, const std::string& more) const {
  MysqlOptions made = mysql_options(url(as, more));
  made.log = log.sink();
  return made;
}

std::shared_ptr<Store> MysqlTest::open_elsewhere(const std::string& as) const {
  static std::atomic<int> count{0};
  return open(as, "connect_timeout=" + std::to_string(20 + ++count));
}

void MysqlTest::make_table() const { admin()(create_table_sql(Endpoint(options()))); }

void MysqlTest::prepare_user(const std::string& how) const {
  make_user(how);
  make_table();
  grant();
}

int MysqlTest::count_connections(const std::string& condition) const {
  return std::stoi(admin()("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '" +
                           user + "' AND (" + condition + ')'));
}

// MySQL has no KILL USER.
void MysqlTest::cut_connections() const {
  std::istringstream ids(admin()(
      "SELECT GROUP_CONCAT(ID) FROM information_schema.PROCESSLIST WHERE USER = '" + user + '\''));
  for (std::string id; std::getline(ids, id, ',') && id != "NULL";) {
    try {
      admin()("KILL " + id);
    } catch (const std::runtime_error&) {  // it has gone by itself
    }
  }
}

// INNODB_TRX would say so too, but not to somebody who asks all the time.
bool MysqlTest::somebody_waits_for_a_row() const {
  const auto who = [&] {
    return admin()(
        "SELECT GROUP_CONCAT(ID) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() "
        "AND INFO LIKE '%" +
        table + "%'");
  };
  const std::string first = who();
  kit::StopSignal().pause(100ms);
  return first != "NULL" && who() == first;
}

std::string MysqlTest::writes() const {
  return admin()("SELECT MODIFIED_COUNTER, (SELECT SUM(version) FROM " + table +
                 ") FROM information_schema." +
                 (is_mariadb() ? "INNODB_SYS_TABLESTATS" : "INNODB_TABLESTATS") +
                 " WHERE NAME LIKE '%/" + table + '\'');
}

}  // namespace simba::mysql
