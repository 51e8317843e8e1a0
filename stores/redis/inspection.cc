#include <random>

#include "stores/redis/administration.h"
#include "stores/redis/failure.h"
#include "stores/redis/names.h"
#include "stores/redis/redis_store.h"
#include "stores/redis/server_info.h"

namespace simba::redis {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr milliseconds kPatience{10'000};

Reply ask(Session& session, Words words, std::uint16_t slot, LocalTime deadline) {
  Request request;
  request.words = std::move(words);
  request.slot = slot;
  session.courier->perform({&request, 1}, deadline);
  if (request.error) throw Error(*request.error);
  return request.reply;
}

Finding look_at_server(Session& session, LocalTime deadline) {
  const Reply info = ask(session, {"INFO", "server"}, 0, deadline);
  const std::string version(info.is_error() ? "" : read_info(info.text, {}).version_text);
  return {"server", Verdict::kOk,
          "Redis " + (version.empty() ? "of an unknown version" : version) + ", " +
              session.courier->dialer().where()};
}

// Takes a mutex nobody knows and gives it back; its fence goes too.
Finding try_rights(const std::shared_ptr<Session>& session, LocalTime deadline) {
  const std::string mutex = "simba-doctor-" + std::to_string(std::random_device{}());
  Claim claim;
  claim.mutex = mutex;
  claim.wire_id = "simba-doctor";
  claim.ttl = 1s;
  RedisStore store(session, {});
  try {
    const Answers answers = store.contend({&claim, 1}, deadline);
    if (const auto* error = std::get_if<Error>(answers.data())) throw Error(*error);
    store.release({&claim, 1}, deadline);
    const Reply gone =
        ask(*session, {"DEL", lease_key(mutex) + std::string(kFence)}, slot_of(mutex), deadline);
    if (gone.is_error()) throw failure(gone, session->courier->dialer().where());
    return {"rights", Verdict::kOk, "may contend"};
  } catch (const Error& error) {
    return {"rights", Verdict::kFailed, std::string("may not contend: ") + error.what()};
  }
}

}  // namespace

Inspection inspect(std::string_view url) {
  const auto session = Session::of(redis_options(url));
  const LocalTime deadline = BootClock::now() + kPatience;
  Inspection seen;
  seen.tells_wall_time = true;
  seen.findings.push_back(look_at_server(*session, deadline));
  seen.findings.push_back(try_rights(session, deadline));
  return seen;
}

}  // namespace simba::redis
