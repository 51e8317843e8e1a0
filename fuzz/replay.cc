// In place of libFuzzer where there is none: calls a target with each file of the folders that are
// named, so that no seed of its corpus is forgotten by a change of the code.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz/target.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& each : fs::directory_iterator(folder)) files.push_back(each);
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const fs::path& file) {
  // The last one is who ended the process.
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) try {
  int replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : files_in(argv[i])) {
      replay(file);
      ++replayed;
    }
  }
  if (replayed == 0) std::fprintf(stderr, "there is no seed to replay\n");
  return replayed == 0 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "broken: %s\n", error.what());
  return 1;
}
