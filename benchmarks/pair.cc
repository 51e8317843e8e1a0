#include "benchmarks/pair.h"

#include "simba/connect.h"
#include "simba/locker.h"

namespace simba::bench {

Duel locker_against(const std::string& url, const Operation& raw, const Operation& raw_again,
                    double seconds, int repeat) {
  const Client client = connect(url);
  SimbaLocker locker(client, kMutex);
  return duel(
      seconds, [&] { raw(); }, [&] { raw_again(); },
      [&] {
        locker.lock();
        locker.unlock();
      },
      repeat);
}

}  // namespace simba::bench
