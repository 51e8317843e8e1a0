#include "stores/redis/listener.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <random>
#include <utility>

#include "stores/kit/forked.h"
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

}  // namespace

// The thread that hears of the mutexes of one server.
struct Listener::Ear {
  std::shared_ptr<const Bell> bell = std::make_shared<Bell>();
  std::unique_ptr<kit::Reader> reader;
};

class Listener::Heard : public Watch {
 public:
  Heard(std::unique_ptr<Watch> inner, std::shared_ptr<Listener> listener, std::string mutex)
      : inner_(std::move(inner)), listener_(std::move(listener)), mutex_(std::move(mutex)) {}
  ~Heard() override {
    if (getpid() != process_) {
      kit::leave_alone(std::move(listener_));
      return;
    }
    inner_.reset();
    listener_->forget(mutex_);
  }
  bool is_live() const override { return listener_->subscriptions_->is_live(mutex_); }

 private:
  const pid_t process_ = getpid();
  std::unique_ptr<Watch> inner_;
  std::shared_ptr<Listener> listener_;
  const std::string mutex_;
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
    if (ears_.empty() && courier_->servers().is_cluster()) {
      courier_->servers().on_change([weak = weak_from_this()] {
        if (const auto alive = weak.lock()) alive->follow();
      });
    }
    if (node) ear = ear_of(node);
  }
  auto inner = kit::Watchers::add(watchers_, mutex, std::move(wake));
  const bool is_new = subscriptions_->watch(name, node);
  if (ear && is_new) ear->bell->ring();
  return std::make_unique<Heard>(std::move(inner), shared_from_this(), std::move(name));
} catch (const Error&) {
  return nullptr;
}

// Needs the lock.
std::shared_ptr<Listener::Ear> Listener::ear_of(const std::shared_ptr<Node>& node) {
  std::shared_ptr<Ear>& ear = ears_[node.get()];
  if (ear) return ear;
  auto made = std::make_shared<Ear>();
  kit::Reader::Parts parts;
  parts.name = "simba-listen";
  parts.open = [courier = courier_, node, subscriptions = subscriptions_, bell = made->bell,
                id = id_](const kit::StopSignal& stop) -> std::unique_ptr<kit::Source> {
    // A server that serves nothing of ours any more is left alone.
    while (!subscriptions->wants(node.get()) && !stop.is_requested()) {
      pollfd sources[] = {{bell->descriptor(), POLLIN, 0}, {stop.descriptor(), POLLIN, 0}};
      poll(sources, std::size(sources), -1);
      bell->quiet();
    }
    const Address* address = node->address() ? &*node->address() : nullptr;
    try {
      auto connection = courier->dialer().open(address, Dialer::Purpose::kSubscription, stop);
      return std::make_unique<redis::Messages>(std::move(connection), node, subscriptions, bell,
                                               id);
    } catch (const Error&) {
      // A dead master has a successor, and who only waits would hear of it at the next poll alone.
      courier->servers().ask_again(BootClock::now() + courier->dialer().options().connect_timeout);
      throw;
    }
  };
  parts.hint = [watchers = watchers_](std::string_view mutex) {
    if (!mutex.empty()) watchers->wake(mutex);  // each is told once it is subscribed
  };
  parts.on_trouble = [courier = courier_](const Error& error) {
    courier->dialer().log(LogLevel::kWarning,
                          std::string("waiters poll until this is over: ") + error.what());
  };
  made->reader = std::make_unique<kit::Reader>(std::move(parts));
  return ear = std::move(made);
}

// Slots have moved: each mutex is listened for at its master.
void Listener::follow() {
  const auto busy = subscriptions_->place_all(
      [&](std::string_view mutex) { return courier_->servers().known(slot_of(mutex)); });
  const std::lock_guard lock(guard_);
  for (const std::shared_ptr<Node>& node : busy) ear_of(node)->bell->ring();
}

void Listener::forget(const std::string& mutex) {
  if (!subscriptions_->unwatch(mutex, BootClock::now())) return;
  const RedisOptions::Queue queue = courier_->dialer().options().queue;
  courier_->post(
      slot_of(mutex),
      Commands().add(Words().text("ZREM").text(lease_key(mutex), queue_suffix(queue)).text(id_)));
}

}  // namespace simba::redis
