#include "testing/servers/tool.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "testing/servers/directory.h"
#include "testing/servers/process.h"

namespace simba::servers {

std::string output_of(const std::vector<std::string>& words, std::chrono::milliseconds patience) {
  const Directory directory;  // threads may ask at once
  const auto file = directory.path() / "out";
  Process process(
      {.words = words, .directory = directory.path(), .log = file, .environment = {}, .user = {}});
  if (!process.wait(patience)) throw std::runtime_error(words.at(0) + " does not end");
  std::ifstream in(file);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace simba::servers
