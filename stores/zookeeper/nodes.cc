#include "stores/zookeeper/nodes.h"

#include "stores/zookeeper/latch.h"

namespace simba::zookeeper {
namespace {

constexpr std::size_t kMostData = 1'024;

}  // namespace

std::optional<std::vector<std::string>> read_names(const String_vector* names) {
  if (!names || names->count < 0 || (names->count > 0 && !names->data)) return std::nullopt;
  std::vector<std::string> all;
  for (int i = 0; i < names->count; ++i) {
    if (!names->data[i]) return std::nullopt;
    all.emplace_back(names->data[i]);
  }
  return all;
}

std::string read_data(const char* data, int length) {
  if (data == nullptr || length <= 0) return {};
  std::string_view all(data, static_cast<std::size_t>(length));
  if (all.size() <= kMostData) return std::string(all);
  std::size_t end = kMostData;
  // The first byte that is left out begins a character.
  while (end > 0 && (static_cast<unsigned char>(all[end]) & 0xC0U) == 0x80) --end;
  return std::string(all.substr(0, end));
}

std::string read_id(std::string_view node, std::string data) {
  return data.empty() ? std::string(node) : std::move(data);
}

std::optional<Token> read_token(const Stat& stat) {
  if (stat.czxid <= 0) return std::nullopt;
  return static_cast<Token>(stat.czxid);
}

Container read_container(const Stat& stat) { return {stat.czxid, stat.version}; }

std::optional<std::string> read_made(std::string_view path, std::string_view wire_id) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(latch_stem(wire_id)) || !latch_number(name)) return std::nullopt;
  return std::string(name);
}

std::optional<ChangedNode> read_changed(std::string_view path, std::string_view base) {
  if (!path.starts_with(base)) return std::nullopt;
  path.remove_prefix(base.size());
  const std::size_t at = path.rfind('/');
  if (!path.starts_with('/') || at == 0) return std::nullopt;
  return ChangedNode{std::string(path.substr(1, at - 1)), std::string(path.substr(at + 1))};
}

}  // namespace simba::zookeeper
