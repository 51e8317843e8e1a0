#include "stores/mysql/administration.h"

#include "stores/mysql/schema.h"

namespace simba::mysql {

Preparation prepare(std::string_view url, Prepare how) {
  const MysqlOptions options = mysql_options(url);
  const Endpoint endpoint(options);
  const std::string table = endpoint.quoted_table();
  if (how == Prepare::kTell) {
    return {mysql_schema(options) +
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

}  // namespace simba::mysql
