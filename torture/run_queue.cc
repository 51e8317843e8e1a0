#include "torture/run_queue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace simba::torture {

RunQueue RunQueue::now() {
  RunQueue queue;
  std::error_code gone;  // a thread may end meanwhile
  for (std::filesystem::directory_iterator it("/proc/self/task", gone), end; !gone && it != end;
       it.increment(gone)) {
    std::string name;
    std::getline(std::ifstream(it->path() / "comm"), name);
    if (name != "simba-dispatch" && name != "simba-revoke") continue;
    nanoseconds::rep ran = 0, waited = 0;
    std::ifstream(it->path() / "schedstat") >> ran >> waited;
    Waits& waits = name == "simba-dispatch" ? queue.dispatchers_ : queue.revokers_;
    waits[it->path().filename()] = nanoseconds{waited};
  }
  return queue;
}

nanoseconds RunQueue::since(const RunQueue& before) const {
  return longest(before.dispatchers_, dispatchers_) + longest(before.revokers_, revokers_);
}

nanoseconds RunQueue::longest(const Waits& before, const Waits& after) {
  nanoseconds longest{0};
  for (const auto& [thread, waited] : after) {
    const auto it = before.find(thread);
    longest = std::max(longest, it == before.end() ? waited : waited - it->second);
  }
  return longest;
}

}  // namespace simba::torture
