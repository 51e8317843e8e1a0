#include <poll.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/doorbell.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/owner_view.h"
#include "cli/signals.h"
#include "simba/contend_service.h"
#include "simba/contender_id.h"

namespace simba::cli {
namespace {

using namespace std::chrono_literals;

// Who has it now, as far as an observer knows.
struct Sighting {
  std::string mutex, owner;
  Token token = 0;
  milliseconds evicted_for{0};  // the owner's name was taken away, and its lease runs that long

  bool is_evicted() const { return evicted_for > milliseconds{0}; }
  bool is_same(const Sighting& other) const {
    return owner == other.owner && token == other.token && is_evicted() == other.is_evicted();
  }
};

Sighting sighting_of(const std::string& mutex, const MutexOwner& owner) {
  return {mutex, owner.id, owner.id.empty() ? 0 : owner.token, {}};
}

Sighting sighting_of(const OwnerView& view) {
  const bool evicted = !view.free && view.owner.empty();
  return {view.mutex, view.owner, view.owner.empty() ? 0 : view.token,
          evicted ? std::max(view.lease_left, milliseconds{1}) : milliseconds{0}};
}

// What the observers have seen, for the thread that writes.
class Sightings {
 public:
  void add(Sighting sighting) {
    {
      const std::lock_guard lock(guard_);
      seen_.push_back(std::move(sighting));
    }
    bell_.ring();
  }
  std::deque<Sighting> take() {
    bell_.hush();
    const std::lock_guard lock(guard_);
    return std::exchange(seen_, {});
  }
  int fd() const { return bell_.fd(); }

 private:
  const Doorbell bell_;
  std::mutex guard_;
  std::deque<Sighting> seen_;  // guarded by guard_
};

class Observer : public MutexRetriever {
 public:
  Observer(std::string mutex, Sightings& sightings)
      : mutex_(std::move(mutex)), sightings_(sightings) {}
  const std::string& mutex() const override { return mutex_; }
  void notify_owner(const MutexState& state) override {
    sightings_.add(sighting_of(mutex_, state.after));
  }

 private:
  const std::string mutex_;
  Sightings& sightings_;
};

enum class Zone { kLocal, kUtc };

std::string time_of_day(Zone zone, const char* format) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  zone == Zone::kLocal ? localtime_r(&now.tv_sec, &parts) : gmtime_r(&now.tv_sec, &parts);
  std::array<char, 32> text{}, fraction{};
  std::strftime(text.data(), text.size(), format, &parts);
  std::snprintf(fraction.data(), fraction.size(), ".%03ld", now.tv_nsec / 1'000'000);
  return std::string(text.data()) + fraction.data();
}

// `before`: the owner until now, or empty.
std::string json_of(const Sighting& seen, const Sighting& before) {
  const auto or_null = [](std::string_view value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  const auto token_or_null = [](Token token) {
    return token == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(token);
  };
  nlohmann::ordered_json object;
  object["time"] = time_of_day(Zone::kUtc, "%Y-%m-%dT%H:%M:%S") + 'Z';
  object["mutex"] = seen.mutex;
  object["state"] = seen.is_evicted() ? "evicted" : seen.owner.empty() ? "free" : "held";
  object["owner"] = or_null(seen.owner);
  object["label"] = or_null(label_of(seen.owner));
  object["token"] = token_or_null(seen.token);
  object["before_owner"] = or_null(before.owner);
  object["before_token"] = token_or_null(before.token);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string text_of(const Sighting& seen, const Sighting& before) {
  const std::string time = styled(Style::kDim, time_of_day(Zone::kLocal, "%H:%M:%S"));
  const std::string mutex = time + "  " + printable(seen.mutex);
  const std::string who = before.owner.empty() ? ""
                                               : printable(label_of(before.owner)) + ", token " +
                                                     std::to_string(before.token);
  if (seen.is_evicted()) {
    return mutex + " was taken from " + (who.empty() ? "its owner" : who) +
           " (evicted): others may take it in at most " + print_bound(seen.evicted_for) + '\n';
  }
  if (seen.owner.empty())
    return mutex + " is free" + (who.empty() ? "" : ", left by " + who) + '\n';
  return mutex + " is held by " + printable(label_of(seen.owner)) + ", token " +
         std::to_string(seen.token) + '\n';
}

// Writes what changed since it was last written.
class Log {
 public:
  explicit Log(Format format) : format_(format) {}

  bool is_news(const Sighting& seen) const {
    const auto last = last_.find(seen.mutex);
    if (last == last_.end()) return true;
    const auto& [before, at] = last->second;
    // An observer hears no more of an owner that was evicted: it is free when its lease is over.
    const bool is_still_evicted = before.is_evicted() && BootClock::now() < at + before.evicted_for;
    return !before.is_same(seen) && !(is_still_evicted && seen.owner.empty());
  }
  // False when nobody reads it any more.
  bool note(const Sighting& seen) {
    if (!is_news(seen)) return true;
    const Sighting before = std::exchange(last_[seen.mutex], {seen, BootClock::now()}).first;
    return print(format_ == Format::kJson ? json_of(seen, before) : text_of(seen, before));
  }

 private:
  const Format format_;
  std::map<std::string, std::pair<Sighting, LocalTime>> last_;  // by mutex, and when
};

// An observer is not told whether an owner went or was evicted: the store is asked.
Sighting looked_into(Client& client, Sighting seen) {
  if (!seen.owner.empty()) return seen;
  try {
    const Sighting now = sighting_of(OwnerView(seen.mutex, client.observe(seen.mutex, 1s)));
    return now.is_evicted() ? now : seen;
  } catch (const Error&) {
    return seen;  // the observers say that the store is away
  }
}

constexpr int kQuietMs = 1'000;

// The signal that ends it. Not longer than it is quiet.
int wait_beside(int news, const Signals& signals) {
  std::array<pollfd, 2> sources{{{news, POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
  poll(sources.data(), sources.size(), kQuietMs);
  while (const auto signal = signals.next()) {
    if (ends_waiting(*signal)) return *signal;
    if (*signal == SIGTSTP) stop_by_tstp(Stop::kSelf);
  }
  return 0;
}

// As it is when it is first looked at. False when nobody reads it.
bool note_all(Client& client, const WatchCommand& command, Log& log) {
  for (const std::string& mutex : command.mutexes) {
    const OwnerView now(mutex, client.observe(mutex));
    if (!log.note(sighting_of(now))) return false;
    if (!now.free || now.token != 0) continue;
    const std::string meant = suggest_mutex(client, mutex);
    if (!meant.empty()) say("nobody ever held '" + printable(mutex) + "'" + meant);
  }
  return true;
}

// Until somebody has made what is looked at. The signal that ends it first, or 0.
int wait_for_store(const Configured& store, const Signals& signals) {
  constexpr int kNoNews = -1;
  int signal = 0;
  while (signal == 0 && !missing_in(store).empty()) signal = wait_beside(kNoNews, signals);
  return signal;
}

}  // namespace

int watch(const WatchCommand& command) {
  const Signals signals;
  ClientOptions options;
  options.log = [](LogLevel level, std::string_view line) {
    if (level != LogLevel::kInfo || line == "the store answers again") say(line);
  };
  Log log(command.format);
  if (!missing_in(command.store).empty()) {
    Client nobody = open_to_look(command.store);
    if (!note_all(nobody, command, log)) return exit_code::kUnavailable;
    if (const int signal = wait_for_store(command.store, signals)) die_by(signal);
  }
  Client client = open_client(command.store, options);
  Sightings sightings;
  if (!note_all(client, command, log)) return exit_code::kUnavailable;
  std::vector<std::unique_ptr<MutexRetrievalService>> services;
  for (const std::string& mutex : command.mutexes) {
    services.push_back(std::make_unique<MutexRetrievalService>(
        client, std::make_shared<Observer>(mutex, sightings), ContendOptions{}));
    services.back()->start();
  }
  while (true) {
    if (const int signal = wait_beside(sightings.fd(), signals)) {
      services.clear();
      die_by(signal);
    }
    const std::deque<Sighting> seen = sightings.take();
    bool is_read = std::all_of(seen.begin(), seen.end(), [&](const Sighting& each) {
      return !log.is_news(each) || log.note(looked_into(client, each));
    });
    // What was over before an observer's first answer is told by nobody.
    for (std::size_t i = 0; seen.empty() && i < services.size(); ++i) {
      if (services[i]->status() != Status::kRunning) continue;
      const Sighting now = sighting_of(command.mutexes[i], services[i]->after_owner());
      if (log.is_news(now)) is_read = log.note(looked_into(client, now)) && is_read;
    }
    if (!is_read) return exit_code::kUnavailable;
  }
}

}  // namespace simba::cli
