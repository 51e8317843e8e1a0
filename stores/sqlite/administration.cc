#include "stores/sqlite/administration.h"

#include <filesystem>

#include "stores/sqlite/location.h"
#include "stores/sqlite/schema.h"

namespace simba::sqlite {

Preparation prepare(std::string_view url, Prepare how) {
  const SqliteOptions options = sqlite_options(url);
  const std::filesystem::path file = options.file.empty() ? default_sqlite_file() : options.file;
  const std::string name = file.string();
  if (how == Prepare::kTell) {
    return {"-- " + name +
                ", mode 0600 in a directory of the same user. Contenders need to read and write\n"
                "-- it and to make files beside it; who only looks, to read it.\n" +
                schema_sql(),
            "these make the file " + name};
  }
  std::error_code ignored;
  const bool was_there = std::filesystem::file_size(file, ignored) > 0 && !ignored;
  open_sqlite(options);
  if (was_there) return {"", "the file " + name + " was there already"};
  return {schema_sql(), "the file " + name + " is made"};
}

std::string missing(std::string_view url) {
  const std::filesystem::path file = missing_file(sqlite_options(url).file);
  return file.empty() ? "" : "file " + file.string();
}

}  // namespace simba::sqlite
