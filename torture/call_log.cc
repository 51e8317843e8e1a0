#include "torture/call_log.h"

#include <algorithm>

namespace simba::torture {

CallLog::CallLog(const std::filesystem::path& file)
    : file_(file, kHead + kCapacity * sizeof(Entry)) {}

std::size_t CallLog::begin(const Call& call) {
  const std::uint64_t place = page().count.fetch_add(1, std::memory_order_relaxed);
  if (place >= kCapacity) {
    LocalTime::rep since = 0;
    page().full_since.compare_exchange_strong(since, call.before.time_since_epoch().count());
    return kNoRoom;
  }
  Entry& noted = entry(place);
  noted.call = call;
  noted.stage.store(Stage::kBegun, std::memory_order_release);
  return place;
}

void CallLog::end(std::size_t place, const Call& call) {
  if (place == kNoRoom) return;
  Entry& noted = entry(place);
  noted.call.after = call.after;
  noted.call.answer = call.answer;
  noted.call.owner = call.owner;
  noted.call.owner_token = call.owner_token;
  noted.call.left = call.left;
  noted.stage.store(Stage::kEnded, std::memory_order_release);
}

std::vector<Call> CallLog::read(int client) const {
  const auto count = std::min<std::uint64_t>(page().count.load(), kCapacity);
  std::vector<Call> calls;
  calls.reserve(count);
  for (std::size_t place = 0; place < count; ++place) {
    const Stage stage = entry(place).stage.load(std::memory_order_acquire);
    if (stage == Stage::kEmpty) continue;  // killed before it was sent
    Call call;
    const Call& noted = entry(place).call;
    call.before = noted.before;
    call.mutex = noted.mutex;
    call.id = noted.id;
    call.token = noted.token;
    call.lease = noted.lease;
    call.kind = noted.kind;
    call.client = client;
    if (stage == Stage::kEnded) {
      call.after = noted.after;
      call.answer = noted.answer;
      call.owner = noted.owner;
      call.owner_token = noted.owner_token;
      call.left = noted.left;
    }
    calls.push_back(call);
  }
  return calls;
}

LocalTime CallLog::full_since() const {
  const LocalTime::rep since = page().full_since.load();
  return since == 0 ? LocalTime::max() : LocalTime{nanoseconds{since}};
}

}  // namespace simba::torture
