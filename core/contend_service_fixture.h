#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/api_fixture.h"
#include "simba/contend_service.h"

namespace simba {

using Words = std::vector<std::string>;

class ContendServiceTest : public ApiTest {
 protected:
  Client client{store, with(long_lease())};
  // Shared with the callbacks: abandoned work may outlive the test.
  struct Told {
    std::mutex guard;
    Words words;  // guarded by guard
    std::function<void(const MutexState&)> on_acquired, on_released;

    void say(const char* word) {
      const std::lock_guard lock(guard);
      words.emplace_back(word);
    }
  };
  const std::shared_ptr<Told> told = std::make_shared<Told>();
  std::function<void(const MutexState&)>&on_acquired = told->on_acquired,
                           &on_released = told->on_released;
  const std::shared_ptr<MutexContender> contender =
      make_contender("m",
                     {[told = told](const MutexState& state) {
                        told->say("acquired");
                        if (told->on_acquired) told->on_acquired(state);
                      },
                      [told = told](const MutexState& state) {
                        told->say("released");
                        if (told->on_released) told->on_released(state);
                      }},
                     "c");

  Words heard() {
    const std::lock_guard lock(told->guard);
    return told->words;
  }
  bool waits_for(const Words& words) {
    return eventually([&] { return heard() == words; });
  }
};

}  // namespace simba
