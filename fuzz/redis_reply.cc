// Bytes of a Redis server, in pieces: replies, and what the scripts' answers mean.
#include <string>
#include <vector>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/redis/requests.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

// Whether the asker stands as the owner in the part of an answer that is about its mutex: at the
// end of a text, or as the third of {token, ms left, owner, details}.
bool names_asker(const simba::redis::Reply& part, const simba::Claim& claim) {
  return part.text.ends_with(' ' + std::string(claim.wire_id)) ||
         (part.items.size() == 4 && part.items[2].text == claim.wire_id);
}

void check_owner(const simba::Answer& answer, const simba::redis::Reply& reply,
                 const simba::Claim& claim) {
  const auto* seen = std::get_if<simba::Observation>(&answer);
  if (seen == nullptr || !seen->owner.is_owner(claim.wire_id)) return;
  require(names_asker(reply.items.at(1), claim), "only who is named owns");
}

void read(const simba::redis::Reply& reply, const simba::Claim& claim) {
  namespace redis = simba::redis;
  const std::string where = "redis at nowhere";
  accepts<simba::Error>([&] {
    const simba::Observation seen = redis::read_take(claim, reply, where);
    simba::fuzz::check(seen);
    const bool is_mine = seen.owner.is_owner(claim.wire_id);
    require(!is_mine || reply.kind == redis::Reply::Kind::kText ||
                reply.kind == redis::Reply::Kind::kArray,
            "only what a script answers makes an owner");
  });
  simba::Answers answers(1, simba::Blocked{});
  if (accepts<simba::Error>([&] { redis::read_renewals({&claim, 1}, reply, where, answers); })) {
    simba::fuzz::check(answers[0]);
    check_owner(answers[0], reply, claim);
  }
  if (accepts<simba::Error>([&] { redis::read_observations(reply, where, answers); })) {
    simba::fuzz::check(answers[0]);
    check_owner(answers[0], reply, claim);
  }
  accepts<simba::Error>([&] { redis::read_release(reply, where); });
  std::vector<std::string> mutexes;
  accepts<simba::Error>(
      [&] { require(!redis::read_scan(reply, where, mutexes).empty(), "a cursor has digits"); });
  for (const std::string& mutex : mutexes) require(!mutex.empty(), "a mutex has a name");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const simba::Claim claim = simba::fuzz::claim_of(input);
  const std::size_t piece = input.in_range<std::size_t>(1, 64);
  const std::string bytes = input.rest();
  simba::redis::ReplyReader reader;
  simba::redis::Replies replies;
  accepts<simba::Error>([&] {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece), replies);
    }
  });
  for (const auto& reply : replies) read(reply, claim);
  return 0;
}
