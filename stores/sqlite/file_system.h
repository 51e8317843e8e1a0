#pragma once

#include <filesystem>

namespace simba::sqlite {

// Throws Error (kMisconfigured) unless the directory is on a local file system whose locks, shared
// memory and notifications hold among the processes of one host.
void check_file_system(const std::filesystem::path& directory);

// Something is mounted at this path itself, links resolved. Without /proc nobody can tell.
bool is_mount_point(const std::filesystem::path& path);

}  // namespace simba::sqlite
