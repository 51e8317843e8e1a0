#include "torture/ambush.h"

namespace simba::torture {

using Window = Notebook::Window;

Ambush::Ambush(const Plan& plan, Crowd& crowd, std::vector<bool>& is_struck,
               std::vector<Fault>& faults)
    : plan_(plan), crowd_(crowd), is_struck_(is_struck), faults_(faults) {
  for (int mutex = 0; mutex < plan.mutexes; ++mutex) {
    registers_.emplace_back(plan.registers(mutex));
  }
}

void Ambush::lay(int mutex) {
  if (is_laid()) return;
  stage_ = Stage::kWaiting;
  mutex_ = mutex;
  victim_ = -1;
  until_ = BootClock::now() + 2 * nanoseconds{plan_.lease()};
  for (int client = 0; client < plan_.clients; ++client) {
    crowd_.notebook(client, mutex).set_window(Window::kWanted);
  }
}

void Ambush::step() {
  const LocalTime now = BootClock::now();
  if (stage_ == Stage::kWaiting) spring();
  const bool is_over = stage_ == Stage::kStopped &&
                       registers_.at(static_cast<std::size_t>(mutex_)).unfenced() > token_;
  if (is_laid() && (is_over || now >= until_)) end();
}

void Ambush::spring() {
  for (int client = 0; client < plan_.clients; ++client) {
    const bool is_inside = crowd_.notebook(client, mutex_).window() == Window::kInside;
    if (is_inside && !is_struck_.at(static_cast<std::size_t>(client))) return stop(client);
  }
}

void Ambush::stop(int client) {
  crowd_.stop(client);
  const LocalTime now = BootClock::now();
  is_struck_.at(static_cast<std::size_t>(client)) = true;
  stage_ = Stage::kStopped;
  victim_ = client;
  token_ = crowd_.notebook(client, mutex_).read(1).back().token;
  until_ = now + 3 * nanoseconds{plan_.lease()};
  fault_ = faults_.size();
  faults_.push_back({FaultKind::kStopInWindow, client, now, until_});
  for (int other = 0; other < plan_.clients; ++other) {
    if (other != client) crowd_.notebook(other, mutex_).set_window(Window::kNone);
  }
}

void Ambush::end() {
  if (!is_laid()) return;
  for (int client = 0; client < plan_.clients; ++client) {
    crowd_.notebook(client, mutex_).set_window(Window::kNone);
  }
  if (victim_ >= 0) {
    crowd_.go_on(victim_);
    is_struck_.at(static_cast<std::size_t>(victim_)) = false;
    faults_.at(fault_).end = BootClock::now();
  }
  stage_ = Stage::kNone;
}

}  // namespace simba::torture
