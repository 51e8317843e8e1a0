#pragma once

#include <string>

#include "stores/sqlite/connection.h"

namespace simba::sqlite {

// What stands in the file.
//
//   mutex          the name; compared byte by byte
//   owner_id       the wire id of the owner; '' nobody
//   acquired_at    start of the term           \   milliseconds of CLOCK_BOOTTIME
//   ttl_at         end of the TTL               >  in the boot `boot_id`;
//   transition_at  end of the lease            /   0 after a release
//   token          of the term, or of the last one: a row is never deleted
//   boot_id        the boot the times are of; in any other boot the row is free
//
// A mutex is free when transition_at < now, or when boot_id is not this boot's.
inline constexpr int kSchemaVersion = 1;           // PRAGMA user_version
inline constexpr int kApplicationId = 0x53494d42;  // PRAGMA application_id, "SIMB"

// The statements that set up a new file.
std::string schema_sql();

// Makes the table where the file is new, and switches it to WAL. Any number of processes may do so
// at once. Throws Error (kMisconfigured) for a file of somebody else or of a newer version.
void prepare_schema(Connection& connection);

}  // namespace simba::sqlite
