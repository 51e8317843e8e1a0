#pragma once

#include <sqlite3.h>

#include <string>

#include "simba/error.h"

namespace simba::sqlite {

// What an answer of SQLite means to a caller: which kind of trouble, the file, and what to do.
Error failure(sqlite3* db, int code, const std::string& file, const std::string& doing);

// After this the connection is not used again.
bool breaks_connection(int code);

}  // namespace simba::sqlite
