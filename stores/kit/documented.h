#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What a documentation page tells its reader to run. Tests run it, so that the two cannot drift
// apart.
namespace simba::kit {

// The first block of code with these words in it.
inline std::string documented(const std::string& page, std::string_view words) {
  std::ifstream in(page);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::string_view kFence = "\n```";
  for (std::size_t at = text.find(kFence); at != text.npos;) {
    const std::size_t begin = text.find('\n', at + 1), end = text.find(kFence, begin);
    if (end == text.npos) break;
    std::string block = text.substr(begin + 1, end - begin);
    if (block.find(words) != block.npos) return block;
    at = text.find(kFence, end + 1);
  }
  throw std::runtime_error("no block with '" + std::string(words) + "' in " + page);
}

// The statements of a text in SQL. A table may be there already.
inline std::vector<std::string> statements_in(const std::string& sql) {
  std::vector<std::string> all;
  for (std::size_t begin = 0, end = 0; (end = sql.find(';', begin)) != sql.npos; begin = end + 1) {
    std::string one = sql.substr(begin, end - begin);
    constexpr std::string_view kCreate = "CREATE TABLE ";
    if (const std::size_t at = one.find(kCreate); at != one.npos) {
      one.insert(at + kCreate.size(), "IF NOT EXISTS ");
    }
    all.push_back(std::move(one));
  }
  return all;
}

// The commands of a text for the shell of MongoDB, as JSON.
inline std::vector<std::string> commands_in(const std::string& shell) {
  constexpr std::string_view kCommand = "db.adminCommand(";
  std::vector<std::string> all;
  for (std::size_t at = 0; (at = shell.find(kCommand, at)) != shell.npos;) {
    at += kCommand.size();
    all.push_back(shell.substr(at, shell.find(')', at) - at));
  }
  return all;
}

}  // namespace simba::kit
