#include "testing/servers/turn.h"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <string>
#include <thread>

#include "testing/servers/directory.h"

namespace simba::servers {

Turn::Turn(std::string_view kind, int count) {
  using namespace std::chrono_literals;
  const auto place = shared_directory("turns/" + std::string(kind));
  while (true) {
    for (int i = 0; i < count; ++i) {
      const auto file = place / std::to_string(i);
      UniqueFd lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
      if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      lock_ = std::move(lock);
      return;
    }
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace simba::servers
