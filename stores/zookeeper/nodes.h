#pragma once

#include <zookeeper/zookeeper.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simba/time.h"
#include "stores/zookeeper/places.h"

namespace simba::zookeeper {

// What the driver hands on of nodes, read with suspicion. None: no server says so, and nothing of
// it is believed.

// The names of a list. The driver says that it did not understand the whole of it only by the names
// it lacks, and who believed the rest might find itself the first of them.
std::optional<std::vector<std::string>> read_names(const String_vector* names);

// What a node says, up to a kilobyte: a wire id and the name of a node are shorter. What others
// wrote there may have a megabyte, is kept for each mutex, and shown; it is cut between two
// characters.
std::string read_data(const char* data, int length);

// Who made a latch node, by what it says. Curator's contenders have no id unless they are given
// one: where a node says nothing, its name stands for it.
std::string read_id(std::string_view node, std::string data);

// The token of the one who made a node: its czxid.
std::optional<Token> read_token(const Stat& stat);

// What the stat of a mutex's container says of it.
Container read_container(const Stat& stat);

// The name of the latch node that was made for a wire id, of the path that the server gave it.
std::optional<std::string> read_made(std::string_view path, std::string_view wire_id);

// A node that has changed: "BASE/MUTEX/NODE".
struct ChangedNode {
  std::string mutex, name;
};
std::optional<ChangedNode> read_changed(std::string_view path, std::string_view base);

}  // namespace simba::zookeeper
