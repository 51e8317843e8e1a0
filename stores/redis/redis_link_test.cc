#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "simba/error.h"
#include "stores/kit/eventually.h"
#include "stores/redis/link.h"
#include "stores/redis/node.h"
#include "testing/servers/unique_fd.h"

// Many callers on one connection: each gets the answer to its own question, or none.
namespace {

// How many times more this thread gets memory; negative: always.
thread_local int memory_left = -1;
thread_local bool memory_ran_out = false;

void* get_memory(std::size_t count) {
  if (memory_left == 0) {
    memory_ran_out = true;
    throw std::bad_alloc();
  }
  if (memory_left > 0) --memory_left;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(std::max_align_t), std::max<std::size_t>(count, 1)) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t count) { return get_memory(count); }
void* operator new[](std::size_t count) { return get_memory(count); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace simba::redis {
namespace {

using namespace std::chrono_literals;
using kit::eventually;
using ::testing::AnyOf;

LocalTime in(milliseconds patience) { return BootClock::now() + patience; }

// Whether this thread got all the memory that the call wanted. After `count` times there is none.
bool passes_with_memory(int count, const std::function<void()>& call) {
  memory_ran_out = false;
  memory_left = count;
  try {
    call();
  } catch (const std::bad_alloc&) {
    memory_left = -1;
  } catch (const Error&) {
    memory_left = -1;
  }
  memory_left = -1;
  return !memory_ran_out;
}

constexpr std::size_t kAll = std::size_t{1} << 30;

std::string word(int number) { return std::to_string(10'000'000 + number); }
Commands echo(int number) { return Commands().add({"ECHO", word(number)}); }

// Takes little at a time, and now and then nothing.
class Narrow : public Transport {
 public:
  using Transport::Transport;

  Moved write(const char* from, std::size_t count) override {
    if (++times_ % 3 == 0) return {0, POLLOUT};
    return Transport::write(from, std::min<std::size_t>(count, count > 8'192 ? 1'024 : 16));
  }

 private:
  int times_ = 0;  // without a lock: one sends at a time
};

// A server that knows ECHO alone, of words of eight digits, at the other end of a pair of sockets.
//
// Threads: any.
class Parrot {
 public:
  ~Parrot() {
    {
      const std::lock_guard lock(guard_);
      is_closed_ = true;
      changed_.notify_all();
    }
    cut();
    for (std::thread& each : threads_) each.join();
  }

  std::unique_ptr<Connection> connect() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kRoom, sizeof kRoom);
    const std::lock_guard lock(guard_);
    Ear& ear = ears_.emplace_back();
    ear.socket = servers::UniqueFd(ends[1]);
    threads_.emplace_back([this, &ear] { serve(ear); });
    return std::make_unique<Connection>(std::make_unique<Narrow>(ends[0]), "redis at nowhere:1");
  }

  // From now on it reads and answers so many commands of each connection, and no more.
  void listen_to(std::size_t commands) {
    const std::lock_guard lock(guard_);
    for (Ear& each : ears_) each.patience = std::min(commands, kAll / kCommand) * kCommand;
    changed_.notify_all();
  }
  void cut() {
    const std::lock_guard lock(guard_);
    for (const Ear& each : ears_) ::shutdown(each.socket.get(), SHUT_RDWR);
  }
  // So many commands of the last connection have come and are not read.
  bool has_unread(std::size_t commands) const {
    const std::lock_guard lock(guard_);
    int bytes = 0;
    return ioctl(ears_.back().socket.get(), FIONREAD, &bytes) == 0 &&
           static_cast<std::size_t>(bytes) >= commands * kCommand;
  }
  std::size_t heard() const {
    const std::lock_guard lock(guard_);
    return heard_;
  }

  static constexpr std::size_t kCommand = sizeof "*2\r\n$4\r\nECHO\r\n$8\r\n12345678\r\n" - 1;

 private:
  static constexpr std::size_t kAnswer = sizeof "$8\r\n12345678\r\n" - 1;
  static constexpr int kRoom = 32'768;  // for some dozens of writes

  struct Ear {
    servers::UniqueFd socket;
    std::size_t patience = kAll;  // bytes that it will read
    std::string unread;
  };

  void serve(Ear& ear) {
    while (true) {
      {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return is_closed_ || ear.patience > 0; });
        if (is_closed_) return;
      }
      pollfd source{ear.socket.get(), POLLIN, 0};
      poll(&source, 1, 10);
      const std::lock_guard lock(guard_);
      std::array<char, 1'024> bytes{};
      const std::size_t most = std::min(bytes.size(), ear.patience);
      const ssize_t got = most > 0 ? recv(source.fd, bytes.data(), most, MSG_DONTWAIT) : -1;
      if (got == 0) return;
      if (got < 0) continue;
      ear.patience -= static_cast<std::size_t>(got);
      ear.unread.append(bytes.data(), static_cast<std::size_t>(got));
      answer(ear);
    }
  }

  // What a command has behind its first word is the answer.
  void answer(Ear& ear) {
    std::string answers;
    std::size_t at = 0;
    for (; ear.unread.size() - at >= kCommand; at += kCommand, ++heard_) {
      answers.append(ear.unread, at + kCommand - kAnswer, kAnswer);
    }
    ear.unread.erase(0, at);
    if (!answers.empty()) send(ear.socket.get(), answers.data(), answers.size(), MSG_NOSIGNAL);
  }

  mutable std::mutex guard_;
  std::condition_variable changed_;
  // All below guarded by guard_.
  std::list<Ear> ears_;
  std::vector<std::thread> threads_;
  std::size_t heard_ = 0;  // commands
  bool is_closed_ = false;
};

class RedisLinkTest : public ::testing::Test {
 protected:
  RedisLinkTest() {
    kit::Pool::Options options;
    options.name = "redis at nowhere:1";
    options.open = [this](const kit::StopSignal&) { return parrot.connect(); };
    pool_ = std::make_unique<kit::Pool>(std::move(options));
  }
  std::shared_ptr<Link> open() {
    return std::make_shared<Link>(pool_->borrow(Lane::kKeep, in(60s)));
  }
  // The answer to this question; "" where there was none.
  static std::string ask(Link& link, int number) {
    Replies replies;
    const Commands question = echo(number);
    return link.run(question, in(60s), replies) ? replies.at(0).text : std::string();
  }

  // One drives, and has so little memory, while others wait; the server answers so many at first.
  // Whether that was enough.
  bool drive_with(int memory, std::size_t others, std::size_t answered) {
    const auto link = open();
    bool enough = false;
    parrot.listen_to(0);
    std::atomic<bool> has_ended{false};
    const auto is_on_the_way = [&](std::size_t count) {
      return eventually([&] { return has_ended || parrot.has_unread(count); });
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      const Commands question = echo(0);
      Replies replies;
      enough = passes_with_memory(memory, [&] { link->run(question, in(60s), replies); });
      if (!replies.empty()) {
        EXPECT_EQ(replies[0].text, word(0));
      }
      has_ended = true;
    });
    EXPECT_TRUE(is_on_the_way(1));
    for (std::size_t i = 1; i <= others; ++i) {
      threads.emplace_back([&, number = static_cast<int>(i)] {
        try {
          EXPECT_THAT(ask(*link, number), AnyOf(word(number), ""));
        } catch (const Error& error) {
          EXPECT_EQ(error.errc(), Errc::kUnreachable) << memory << ": " << error.what();
        }
      });
    }
    EXPECT_TRUE(is_on_the_way(1 + others));
    parrot.listen_to(answered);
    EXPECT_TRUE(eventually([&] { return has_ended.load(); }));
    parrot.listen_to(kAll);
    for (std::thread& each : threads) each.join();
    if (!link->is_broken()) {
      EXPECT_EQ(ask(*link, 99), word(99)) << memory;
    }
    return enough;
  }

  Parrot parrot;

 private:
  std::unique_ptr<kit::Pool> pool_;
};

TEST_F(RedisLinkTest, WhereverMemoryRunsOutTheNextAnswerIsThatToTheNextQuestion) {
  int number = 0;
  bool enough = false;
  for (int memory = 0; !enough; ++memory) {
    enough = true;
    auto link = open();
    // Some need memory only now and then.
    for (int round = 0; round < 64; ++round) {
      const Commands question = echo(++number);
      Replies replies;
      const bool posts = round % 3 == 2;
      enough &= passes_with_memory(memory, [&] {
        posts ? link->post(question) : void(link->run(question, in(60s), replies));
      });
      if (!replies.empty()) {
        ASSERT_EQ(replies[0].text, word(number)) << memory;
      }
      if (link->is_broken()) link = open();
      ++number;
      ASSERT_EQ(ask(*link, number), word(number)) << memory;
    }
  }
}

// The first reads all answers, and has no memory to note whom to wake.
TEST_F(RedisLinkTest, WhoWaitsHearsOfItWhenTheDriverRunsOutOfMemory) {
  bool enough = false;
  for (int memory = 0; !enough; ++memory) enough = drive_with(memory, 1, 2);
}

// The first reads its own, and has no memory for a thread that reads those of the others.
TEST_F(RedisLinkTest, TheWheelIsPassedOnWithoutMemoryToo) {
  bool enough = false;
  for (int memory = 0; !enough; ++memory) enough = drive_with(memory, 6, 1);
}

// Its socket has room for some of them.
TEST_F(RedisLinkTest, WhatIsPostedWhileAServerStandsStillCostsNobodyAnAnswer) {
  const auto link = open();
  ASSERT_EQ(ask(*link, 0), word(0));
  parrot.listen_to(0);
  std::thread caller([&] { EXPECT_EQ(ask(*link, 1), word(1)); });
  EXPECT_TRUE(eventually([&] { return parrot.has_unread(1); }));
  for (int i = 0; i < 2'000; ++i) link->post(echo(1'000 + i));
  EXPECT_FALSE(link->is_broken());
  parrot.listen_to(kAll);
  caller.join();
  EXPECT_EQ(ask(*link, 2), word(2));

  parrot.listen_to(0);
  for (int i = 0; i < 2'000; ++i) link->post(echo(5'000 + i));
  EXPECT_FALSE(link->is_broken()) << "and nobody calls";
  parrot.listen_to(kAll);
  EXPECT_EQ(ask(*link, 3), word(3));
  EXPECT_EQ(parrot.heard(), 4'004U) << "nothing is lost";
}

TEST_F(RedisLinkTest, WhatIsPostedToAServerThatStandsStillDoesNotGrowForEver) {
  const auto link = open();
  parrot.listen_to(0);
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
  Commands many;
  for (int i = 0; i < 100; ++i) many.add({"ECHO", word(i)});
  for (std::size_t bytes = 0; bytes < 3 * kMegabyte; bytes += many.bytes().size()) link->post(many);
  parrot.listen_to(kAll);
  EXPECT_EQ(ask(*link, 2), word(2));
  EXPECT_GT(parrot.heard() * Parrot::kCommand, kMegabyte);
  EXPECT_LT(parrot.heard() * Parrot::kCommand, 2 * kMegabyte);
}

// Some leave early, some post, the server stands still now and then, and its connections are cut.
TEST_F(RedisLinkTest, ManyCallersGetTheirOwnAnswersThroughCuts) {
  std::mutex guard;
  std::shared_ptr<Link> current;  // guarded by guard
  const auto link = [&] {
    const std::lock_guard lock(guard);
    if (!current || current->is_broken()) current = open();
    return current;
  };
  std::atomic<bool> stop{false};
  std::atomic<int> good{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; !stop; ++round) {
        const int number = i * 1'000'000 + 4 * (round % 100'000);
        if (round % 5 == i % 5) link()->post(echo(number + 3));
        const Commands two = Commands().add({"ECHO", word(number)}).add({"ECHO", word(number + 1)});
        Replies replies;
        try {
          if (!link()->run(two, in(round % 7 == 0 ? 1ms : 60s), replies)) continue;
        } catch (const Error&) {
          continue;
        }
        const bool is_mine = replies.size() == 2 && replies[0].text == word(number) &&
                             replies[1].text == word(number + 1);
        ++(is_mine ? good : wrong);
      }
    });
  }
  for (int round = 0; round < 24; ++round) {
    const int before = good;
    ASSERT_TRUE(eventually([&] { return good > before + 100; })) << "round " << round;
    parrot.listen_to(5);
    if (round % 2 == 0) parrot.cut();
    parrot.listen_to(kAll);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Bound, and nobody listens.
TEST(RedisNode, WhoeverRanOutOfMemoryWhileItOpenedDoesNotBlockTheOthers) {
  const servers::UniqueFd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(bound.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(bound.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const auto dialer = std::make_shared<const Dialer>(
      redis_options("redis://127.0.0.1:" + std::to_string(ntohs(address.sin_port))));
  bool enough = false;
  for (int memory = 0; !enough; ++memory) {
    Node node(dialer, std::nullopt);
    const LocalTime later = in(60s);
    enough = passes_with_memory(memory, [&] { node.link(later); });
    try {
      node.link(in(20s));
      FAIL() << "nobody listens";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kUnreachable) << memory << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace simba::redis
