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
                ", mode 0600 in a directory of the same user, who alone can use it. Contenders\n"
                "-- read and write it and make files beside it; with mode 0400 it can only be "
                "looked at.\n" +
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
