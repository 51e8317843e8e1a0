#include "stores/kit/reader.h"

#include <random>
#include <utility>

namespace simba::kit {

Reader::Reader(Parts parts)
    : shared_(std::make_shared<Shared>(std::move(parts))),
      worker_(shared_->parts.name,
              [shared = shared_](const StopSignal& stop) { run(*shared, stop); }) {}

void Reader::run(Shared& shared, const StopSignal& stop) {
  std::minstd_rand random(std::random_device{}());
  bool said = false;
  while (!stop.is_requested()) {
    try {
      if (!read(shared, stop)) return;
      said = false;
    } catch (const Error& error) {
      if (shared.live.exchange(false)) said = false;
      if (!said && shared.parts.on_trouble) shared.parts.on_trouble(error);
      said = true;
    }
    if (!stop.pause(shared.parts.backoff.next(random()))) return;
  }
}

// False: nothing will ever come.
bool Reader::read(Shared& shared, const StopSignal& stop) {
  const std::unique_ptr<Source> source = shared.parts.open(stop);
  if (!source) return false;
  shared.parts.backoff.reset();
  shared.parts.hint({});
  shared.live = true;
  read_on(shared, *source, stop);
  shared.live = false;
  return true;
}

void Reader::read_on(Shared& shared, Source& source, const StopSignal& stop) {
  auto* const lendable = dynamic_cast<LendableSource*>(&source);
  if (lendable == nullptr) {
    while (!stop.is_requested()) source.read(stop, shared.parts.hint);
    return;
  }
  Turns::Lent lent(shared.turns, *lendable, stop);
  while (!stop.is_requested()) lent.read(shared.parts.hint);
}

}  // namespace simba::kit
