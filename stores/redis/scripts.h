#pragma once

#include <string>
#include <string_view>

namespace simba::redis {

// One of the three scripts, and the name under which a server that knows it runs it.
struct Script {
  std::string_view text;
  std::string hash;
};

// In the files mutex_*.lua, which the build embeds.
const Script& acquire_script();
const Script& guard_script();
const Script& release_script();

}  // namespace simba::redis
