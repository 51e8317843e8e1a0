// Lists, nodes and events as the driver of ZooKeeper hands them on: who stands in line is one of
// the names that came, and only a node that is ours by name is taken for ours.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "stores/kit/claims.h"
#include "stores/zookeeper/latch.h"
#include "stores/zookeeper/nodes.h"

using simba::fuzz::kWireId;
using simba::fuzz::require;

namespace {

namespace zookeeper = simba::zookeeper;

std::string name(simba::fuzz::Input& input) {
  const std::string mine = zookeeper::latch_stem(kWireId);
  switch (input.in_range(0, 3)) {
    case 0:
      return mine + input.text(12);
    case 1:
      return "_c_1-latch-" + std::to_string(1'000'000'000 + input.number<std::uint16_t>());
    case 2:
      return "latch-" + input.text(24);
    default:
      return input.text(64);
  }
}

void check_list(simba::fuzz::Input& input) {
  std::vector<std::string> texts(input.in_range<std::size_t>(0, 16));
  std::vector<char*> pointers;
  bool is_whole = true;
  for (std::string& text : texts) {
    text = name(input);
    const bool lacks = input.in_range(0, 15) == 0;
    is_whole = is_whole && !lacks;
    pointers.push_back(lacks ? nullptr : text.data());
  }
  const bool is_odd = input.in_range(0, 15) == 0;
  const String_vector list{is_odd ? -1 : static_cast<int>(pointers.size()), pointers.data()};
  const auto names = zookeeper::read_names(&list);
  require(names.has_value() == (is_whole && !is_odd), "a list that lacks names is no list");
  if (!names) return;
  const std::vector<std::string> order = zookeeper::latch_order(*names);
  for (std::size_t i = 0; i < order.size(); ++i) {
    require(std::find(names->begin(), names->end(), order[i]) != names->end(),
            "nobody is invented");
    const auto number = zookeeper::latch_number(order[i]);
    require(number.has_value(), "only latch nodes stand in line");
    require(i == 0 || *zookeeper::latch_number(order[i - 1]) <= *number, "the lowest leads");
  }
  const auto latches = std::count_if(names->begin(), names->end(), [](const std::string& each) {
    return zookeeper::latch_number(each).has_value();
  });
  require(static_cast<std::size_t>(latches) == order.size(), "nobody is left out");
}

void check_node(simba::fuzz::Input& input) {
  Stat stat{};
  stat.czxid = input.number<std::int64_t>();
  const auto token = zookeeper::read_token(stat);
  require(!token || (*token > 0 && *token <= simba::kit::kMaxToken), "a token fits into 63 bits");
  const std::string path = input.text(40) + '/' + name(input);
  const auto made = zookeeper::read_made(path, kWireId);
  require(!made || made->starts_with(zookeeper::latch_prefix(kWireId)), "ours is ours by name");
  require(!made || (path.ends_with(*made) && made->find('/') == made->npos), "and one node");
}

void check_event(simba::fuzz::Input& input) {
  const std::string base = "/simba";
  const std::string path = (input.flip() ? base : std::string()) + input.rest();
  const auto changed = zookeeper::read_changed(path, base);
  if (!changed) return;
  require(changed->name.find('/') == changed->name.npos, "a name is one node");
  require(base + '/' + changed->mutex + '/' + changed->name == path, "of this path");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  check_list(input);
  check_node(input);
  check_event(input);
  return 0;
}
