#include "torture/leak.h"

#include <fcntl.h>

#include <system_error>
#include <thread>
#include <utility>

#include "simba/locker.h"

namespace simba::torture {

using namespace std::chrono_literals;

Leak::Leak(const Client& client, std::string prefix)
    : client_(client), prefix_(std::move(prefix)) {}

void Leak::drip() {
  memory_.emplace_back(64 * 1024, 'x');
  static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::thread([] {
    for (;;) std::this_thread::sleep_for(1h);
  }).detach();
  std::error_code trouble;  // the next drop will do
  SimbaLocker(client_, prefix_ + "leak-" + std::to_string(memory_.size())).try_lock(trouble);
}

}  // namespace simba::torture
