#pragma once

#include <string>

#include "simba/error.h"

namespace simba::zookeeper {

// What an answer of ZooKeeper means to a caller: which kind of trouble, where, and what to do.
Error failure(int code, const std::string& doing, const std::string& where);

// Whether the server may have acted although it did not say so.
bool is_ambiguous(int code);

}  // namespace simba::zookeeper
