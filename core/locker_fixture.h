#pragma once

#include "core/api_fixture.h"
#include "simba/locker.h"

namespace simba {

class LockerTest : public ApiTest {
 protected:
  Client client{store, with(long_lease())};

  bool is_left_free() {
    return eventually([&] {
      if (!is_free()) return false;
      std::this_thread::sleep_for(50ms);
      return is_free();
    });
  }
};

}  // namespace simba
