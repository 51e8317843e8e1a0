// Names of mutexes, ids of contenders, and what the stores make of them: different names stay
// different.
#include <string>
#include <vector>

#include "core/utf8.h"
#include "fuzz/target.h"
#include "simba/contender_id.h"
#include "simba/memory.h"
#include "simba/store.h"
#include "stores/kit/claims.h"
#include "stores/mysql/literal.h"
#include "stores/redis/names.h"
#include "stores/zookeeper/latch.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

void check_wire_id(std::string_view label, std::uint64_t random) {
  const std::string id = simba::make_wire_id(label, random, ~random);
  if (simba::is_uuid_label(label)) {
    require(simba::is_uuid_label(id), "a UUID becomes a UUID");
  } else {
    require(simba::label_of(id) == label, "a wire id gives its label back");
  }
  require(id != simba::make_wire_id(label, random + 1, ~random), "other bits, another id");
}

void check_redis(const std::string& name, const std::string& other) {
  namespace redis = simba::redis;
  require(redis::mutex_of(redis::lease_key(name)) == name, "a key gives its mutex back");
  require(name == other || redis::lease_key(name) != redis::lease_key(other), "one key, one mutex");
  redis::scan_pattern(name);
  redis::why_no_id(name);
  redis::parse_message(name);
  redis::mutex_of(name);
  if (redis::why_no_name(name).empty())
    require(redis::slot_of(name) < 16'384, "there are 16384 slots");
}

void check_mysql(const std::string& name) {
  const std::string literal = simba::mysql::literal(name);
  require(literal.size() == 2 * name.size() + 3, "a literal has two digits for each byte");
  require(literal.find_first_not_of("0123456789abcdef", 2) == literal.size() - 1,
          "and nothing else");
}

void check_zookeeper(const std::string& name, const std::string& other) {
  namespace zookeeper = simba::zookeeper;
  const bool usable = zookeeper::why_no_node_name(name).empty();
  require(!usable || name.find('/') == name.npos, "a name is one node");
  require(name == other || zookeeper::latch_stem(name) != zookeeper::latch_stem(other),
          "one stem, one wire id");
  require(zookeeper::latch_number(zookeeper::latch_stem(name) + "0000000042") == 42,
          "the server's number is found again");
  const std::vector<std::string> children{name, zookeeper::latch_stem(other) + "0000000007", other};
  for (const std::string& each : zookeeper::latch_order(children)) {
    require(zookeeper::latch_number(each).has_value(), "only latch nodes stand in line");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const auto random = input.number<std::uint64_t>();
  const std::string name = input.text(300);
  const std::string other = input.text(300);

  static const auto store = simba::open_memory();
  if (accepts<simba::Error>([&] { store->check_mutex(name); })) {
    require(simba::core::is_valid_utf8(name) && !simba::core::has_control_characters(name),
            "a name is text that can be shown");
    require(simba::core::printable(name, name.size()) == name, "and is shown as it is");
  }
  if (accepts<simba::Error>([&] { store->check_label(name); })) check_wire_id(name, random);
  accepts<simba::Error>([&] { simba::kit::check_name(store->traits(), name); });
  const std::string shown = simba::core::printable(name, 80);
  require(!simba::core::has_control_characters(shown), "what is shown plays no tricks");
  simba::label_of(name);
  check_redis(name, other);
  check_mysql(name);
  check_zookeeper(name, other);
  return 0;
}
