#include "stores/mysql/administration.h"

#include <cstdlib>

#include "stores/mysql/schema.h"

namespace simba::mysql {

Preparation prepare(std::string_view url, Prepare how) {
  const MysqlOptions options = mysql_options(url);
  const Endpoint endpoint(options);
  const std::string& table = endpoint.quoted_table();
  if (how == Prepare::kTell) {
    return {
        mysql_schema(options) +
            "-- A table that JVM Simba has made stays as it is. This brings it up to date, also "
            "while contenders run:\n-- ALTER TABLE " +
            table +
            " MODIFY owner_id VARCHAR(128) NOT NULL, ADD COLUMN fencing_token BIGINT UNSIGNED "
            "NOT NULL DEFAULT (version);\n"
            "-- Where owner_id has a character set of its own (SHOW CREATE TABLE), write it after "
            "VARCHAR(128), as init does: CHARACTER SET ... COLLATE ...\n"
            "-- A contender needs this and no more:\n"
            "-- GRANT SELECT, INSERT, UPDATE ON " +
            table + " TO 'contender'@'%';\n-- Who only looks (ls, show, watch):\n" +
            "-- GRANT SELECT ON " + table + " TO 'observer'@'%';\n",
        "these make the table " + table};
  }
  const std::string ran = create_mysql_table(options);
  const bool altered = ran.starts_with("ALTER");
  return {ran, "the table " + table +
                   (ran.empty() ? " was there already"
                    : altered   ? " is up to date now"
                                : " is made")};
}

std::vector<std::string> secrets(std::string_view url) {
  const char* password = std::getenv("MYSQL_PWD");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const bool is_taken = password != nullptr && mysql_options(url).password == password;
  return is_taken ? std::vector<std::string>{"MYSQL_PWD"} : std::vector<std::string>{};
}

}  // namespace simba::mysql
