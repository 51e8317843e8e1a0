#include "testing/gaps.h"

#include <pthread.h>

#include <utility>

namespace simba::testing {
namespace {

thread_local Gaps* current = nullptr;

}  // namespace

Gaps::Gaps(std::function<void(int place)> come_in) : come_in_(std::move(come_in)) {
  current = this;
}
Gaps::~Gaps() { current = nullptr; }

void Gaps::before_a_lock() {
  if (!current || current->held_ > 0 || current->is_inside_) return;
  current->is_inside_ = true;
  current->come_in_(current->count_++);
  current->is_inside_ = false;
}

void Gaps::locked(int change) {
  if (current && !current->is_inside_) current->held_ += change;
}

}  // namespace simba::testing

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): these are the linker's
// names.
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  simba::testing::Gaps::before_a_lock();
  simba::testing::Gaps::locked(+1);
  return __real_pthread_mutex_lock(mutex);
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  simba::testing::Gaps::locked(-1);
  return __real_pthread_mutex_unlock(mutex);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
