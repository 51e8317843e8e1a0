#include "stores/redis/listener.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <random>
#include <utility>

#include "stores/kit/forked.h"
#include "stores/kit/this_process.h"
#include "stores/redis/messages.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

// For people: which process waits. The end makes it unlike every other.
std::string new_id() {
  constexpr std::size_t kLongestHost = 40;
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuv";
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::string id =
      std::to_string(getpid()) + '@' + std::string(host.data()).substr(0, kLongestHost) + '~';
  std::random_device random;
  for (int i = 0; i < 13; ++i) id += kDigits[random() % kDigits.size()];
  return id;
}

// How old the map of a cluster may be while somebody waits.
constexpr milliseconds kLook{5'000};

// False: nothing happened for so long.
bool wait_for_either(const Bell& bell, const kit::StopSignal& stop,
                     milliseconds patience = milliseconds{-1}) {
  pollfd sources[] = {{bell.descriptor(), POLLIN, 0}, {stop.descriptor(), POLLIN, 0}};
  const int ready = poll(sources, std::size(sources), static_cast<int>(patience.count()));
  bell.quiet();
  return ready != 0;
}

void look_at_the_map(Courier& courier) try {
  courier.servers().learn(BootClock::now() + courier.dialer().options().connect_timeout);
} catch (const Error&) {  // whoever claims next is told
  return;
}

std::function<void(const Error&)> says_that_waiters_poll(const std::shared_ptr<Courier>& courier) {
  return [courier](const Error& error) {
    courier->dialer().log(LogLevel::kWarning,
                          std::string("waiters poll until this is over: ") + error.what());
  };
}

}  // namespace

// The thread that hears of the mutexes of one server.
struct Listener::Ear {
  std::shared_ptr<const Bell> bell = std::make_shared<Bell>();
  std::unique_ptr<kit::Reader> reader;
};

class Listener::Heard : public Watch {
 public:
  Heard(std::unique_ptr<Watch> inner, std::shared_ptr<Listener> listener, std::string mutex,
        const std::atomic<bool>& is_live, std::shared_ptr<Ear> ear)
      : inner_(std::move(inner)),
        listener_(std::move(listener)),
        mutex_(std::move(mutex)),
        is_live_(is_live),
        ear_(std::move(ear)) {
    if (ear_) need_.emplace(*ear_->reader);
  }
  ~Heard() override {
    if (!process_.is_still()) {
      if (need_) need_->forget();
      kit::leave_alone(std::move(ear_));
      kit::leave_alone(std::move(listener_));
      return;
    }
    inner_.reset();
    listener_->forget(mutex_);
  }
  bool is_live() const override { return is_live_.load(std::memory_order_relaxed); }
  bool listen(int interrupt, LocalTime until) override {
    return ear_ && ear_->reader->listen(interrupt, until);
  }
  void need_reader(bool needed) override {
    if (need_) need_->set(needed);
  }

 private:
  const kit::ThisProcess process_;
  std::unique_ptr<Watch> inner_;
  std::shared_ptr<Listener> listener_;
  const std::string mutex_;
  const std::atomic<bool>& is_live_;  // of the subscriptions, until it is forgotten
  std::shared_ptr<Ear> ear_;          // that a waiter may read; null in a cluster, where slots move
  std::optional<kit::Reader::Need> need_;
};

Listener::Listener(std::shared_ptr<Courier> courier)
    : courier_(std::move(courier)), id_(new_id()) {}

Listener::~Listener() { courier_->servers().on_change({}); }

std::unique_ptr<Watch> Listener::add(std::string_view mutex, std::function<void()> wake) try {
  std::string name(mutex);
  const std::shared_ptr<Node> node = courier_->servers().known(slot_of(mutex));
  std::shared_ptr<Ear> ear;
  {
    const std::lock_guard lock(guard_);
    if (!scout_ && courier_->servers().is_cluster()) start_scout();
    ear = node ? ear_of(node) : scout_;
  }
  auto inner = kit::Watchers::add(watchers_, mutex, std::move(wake));
  const Subscriptions::Watched watched = subscriptions_->watch(name, node);
  if (ear && watched.is_new) ear->bell->ring();
  if (courier_->servers().is_cluster()) ear.reset();
  return std::make_unique<Heard>(std::move(inner), shared_from_this(), std::move(name),
                                 *watched.is_live, std::move(ear));
} catch (const Error&) {
  return nullptr;
}

// Needs the lock.
std::shared_ptr<Listener::Ear> Listener::ear_of(const std::shared_ptr<Node>& node) {
  std::shared_ptr<Ear>& ear = ears_[node];
  if (ear) return ear;
  auto made = std::make_shared<Ear>();
  kit::Reader::Parts parts;
  parts.name = "simba-listen";
  parts.hint = [watchers = watchers_](std::string_view mutex) {
    if (!mutex.empty()) watchers->wake(mutex);  // each is told once it is subscribed
  };
  parts.open = [courier = courier_, key = node.get(), subscriptions = subscriptions_,
                bell = made->bell, id = id_,
                hint = parts.hint](const kit::StopSignal& stop) -> std::unique_ptr<kit::Source> {
    // A server that serves nothing of ours any more is left alone.
    std::shared_ptr<Node> its;
    while (!(its = subscriptions->wanted(key)) && !stop.is_requested()) {
      wait_for_either(*bell, stop);
    }
    if (!its) return nullptr;
    const Address* address = its->address() ? &*its->address() : nullptr;
    try {
      auto connection = courier->dialer().open(address, Dialer::Purpose::kSubscription, stop);
      auto heard =
          std::make_unique<redis::Messages>(std::move(connection), key, subscriptions, bell, id);
      heard->begin(BootClock::now() + courier->dialer().options().connect_timeout, stop, hint);
      return heard;
    } catch (const Error&) {
      // A dead master has a successor, and who only waits would hear of it at the next poll alone.
      look_at_the_map(*courier);
      throw;
    }
  };
  parts.on_trouble = says_that_waiters_poll(courier_);
  made->reader = std::make_unique<kit::Reader>(std::move(parts));
  return ear = std::move(made);
}

// Needs the lock.
void Listener::start_scout() {
  auto made = std::make_shared<Ear>();
  kit::Reader::Parts parts;
  parts.name = "simba-map";
  parts.open = [courier = courier_, subscriptions = subscriptions_,
                bell = made->bell](const kit::StopSignal& stop) -> std::unique_ptr<kit::Source> {
    while (true) {
      const bool rings = subscriptions->is_at_a_loss() || wait_for_either(*bell, stop, kLook);
      if (stop.is_requested()) return nullptr;
      if (rings ? !subscriptions->is_at_a_loss() : !subscriptions->is_watched()) continue;
      courier->servers().learn(BootClock::now() + courier->dialer().options().connect_timeout);
      if (subscriptions->is_at_a_loss()) {
        throw Error(Errc::kUnreachable,
                    courier->dialer().where() + ": no node of the cluster serves some slots");
      }
    }
  };
  parts.hint = [](std::string_view) {};
  parts.on_trouble = says_that_waiters_poll(courier_);
  courier_->servers().on_change([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->follow();
  });
  made->reader = std::make_unique<kit::Reader>(std::move(parts));
  scout_ = std::move(made);
}

// Slots have moved: each mutex is listened for at its master.
void Listener::follow() {
  const auto busy = subscriptions_->place_all(
      [&](std::string_view mutex) { return courier_->servers().known(slot_of(mutex)); });
  std::vector<Ears::node_type> unused;  // go without the lock: their threads are waited for
  const std::lock_guard lock(guard_);
  for (auto it = ears_.begin(); it != ears_.end();) {
    const auto each = it++;
    if (each->first.expired()) unused.push_back(ears_.extract(each));
  }
  try {
    for (const std::shared_ptr<Node>& node : busy) ear_of(node)->bell->ring();
  } catch (const Error&) {
    return;  // no thread is left for it: who waits there polls
  }
}

void Listener::forget(const std::string& mutex) {
  if (!subscriptions_->unwatch(mutex, BootClock::now())) return;
  const RedisOptions::Queue queue = courier_->dialer().options().queue;
  courier_->post(
      slot_of(mutex),
      Commands().add(Words().text("ZREM").text(lease_key(mutex), queue_suffix(queue)).text(id_)));
}

}  // namespace simba::redis
