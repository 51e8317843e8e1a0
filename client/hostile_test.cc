// Servers that answer nonsense: each store over its real driver, and between it and a real server a
// relay that lies. Whatever is said, every call ends, nobody becomes owner by it, and the truth is
// believed again later, by who asks and by who watches.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/forgery.h"
#include "core/utf8.h"
#include "simba/connect.h"
#include "stores/kit/worker.h"
#include "testing/servers/relay.h"
#include "testing/servers/server.h"
#include "testing/servers/shared.h"

namespace simba {
namespace {

using namespace std::chrono_literals;
using servers::Relay;

// A protocol: how its server is reached through another port, and what no such server says.
struct Protocol {
  std::string server;         // as servers::SharedServer knows it
  std::string before, after;  // a URL, around the port
  std::vector<std::string> nonsense;
  // An error of such a server, with kTrick in it: what a terminal would obey, and half a character.
  std::string refusal = {};
  // What is wrong with the driver, and not with us, is left out.
  std::string spared = {};  // answers with this in them stay true
  bool is_repeated = true;  // the nonsense can come without an end
  bool is_pushing = false;  // who watches is told by this server, without asking
  // In a table of JVM Simba a row has no token before its next term: who renews keeps its own.
  bool may_lack_token = false;
};

void PrintTo(const Protocol& protocol, std::ostream* out) { *out << protocol.server; }

std::string bytes(std::initializer_list<int> values) {
  std::string made;
  for (const int value : values) made += static_cast<char>(value);
  return made;
}

const std::string kTrick = "\x1b]0;x\a\x9b\xc2\x9b]forged\x7f";

// A number of so many bytes, the least first.
std::string little(std::size_t number, int size) {
  std::string made;
  for (int i = 0; i < size; ++i) made += static_cast<char>(number >> (8 * i) & 0xffU);
  return made;
}

std::string redis_refusal() { return "-NOPERM " + kTrick + "\r\n"; }

std::string postgres_refusal() {
  using namespace std::string_literals;
  const std::string fields = "SERROR\0C42501\0M"s + kTrick + "\n\0\0"s;
  std::string size = little(fields.size() + 4, 4);
  std::reverse(size.begin(), size.end());
  return 'E' + size + fields + "Z\0\0\0\x05I"s;
}

std::string mariadb_refusal() {
  const std::string said = "\xff" + little(1142, 2) + "#42000" + kTrick + '\n';
  return little(said.size(), 3) + '\x01' + said;
}

std::string mongodb_refusal() {
  using namespace std::string_literals;
  const std::string said = kTrick + "\n\0"s;
  const std::string fields = "\001ok\0"s + little(0, 8) + "\020code\0"s + little(13, 4) +
                             "\002errmsg\0"s + little(said.size(), 4) + said + '\0';
  const std::string body = little(0, 5) + little(fields.size() + 4, 4) + fields;  // OP_MSG
  return little(body.size() + 16, 4) + little(1, 4) + little(1, 4) + little(2013, 4) + body;
}

const std::vector<Protocol>& protocols() {
  using namespace std::string_literals;
  static const std::vector<Protocol> all{
      {"redis",
       "redis://127.0.0.1:",
       "?restart-guard=off",
       {":1\r\n", "*-1\r\n", "$-1\r\n", "+OK\r\n", "*0\r\n", "*1000000\r\n", "*2147483647\r\n",
        "$2147483647\r\nx", "*2\r\n:1\r\n:1\r\n", "*2\r\n$1\r\n1\r\n$1\r\n0\r\n",
        "*2\r\n$20\r\n99999999999999999999\r\n$1\r\n1\r\n",
        "*5\r\n$1\r\n1\r\n$1\r\n1\r\n:9223372036854775807\r\n$1\r\na\r\n$7\r\n1 1 1 a\r\n",
        "*2\r\n$1\r\n7\r\n*1\r\n$11\r\nsimba:{job}\r\n",
        "*3\r\n$7\r\nmessage\r\n$11\r\nsimba:{job}\r\n$12\r\nreleased@@a~\r\n"},
       redis_refusal(),
       "",
       true,
       true},
      {"postgres",
       "postgresql://postgres@127.0.0.1:",
       "/postgres?sslmode=disable",
       {"Z\x00\x00\x00\x05I"s, "T\x7f\xff\xff\xff"s, "D\x00\x00\x00\x06\xff\xff"s,
        "D\x00\x00\x00\x0a\x00\x01\x7f\xff\xff\xff"s, "E\x00\x00\x00\x05\x00"s,
        "C\x00\x00\x00\x0dSELECT 1\x00Z\x00\x00\x00\x05I"s, "A\x00\x00\x00\x04"s},
       postgres_refusal(),
       "",
       true,
       true},
      {"mariadb",
       "mariadb://admin@127.0.0.1:",
       "/simba_db?sslmode=disable",
       {bytes({1, 0, 0, 1, 0}), bytes({0xff, 0xff, 0xff, 1}),
        bytes({7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0}), bytes({1, 0, 0, 1, 0xfb}),
        bytes({9, 0, 0, 1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}),
        bytes({3, 0, 0, 1, 0xff, 0x10, 0x04}), bytes({5, 0, 0, 1, 0xfe, 0, 0, 2, 0})},
       mariadb_refusal(),
       "",
       true,
       false,
       true},
      // The driver ends the process at an answer that nobody asked for, so they do not come again.
      {"zookeeper",
       "zookeeper://127.0.0.1:",
       "",
       {bytes({0x7f, 0xff, 0xff, 0xff}), bytes({0xff, 0xff, 0xff, 0xff}), bytes({0, 0, 0, 0}),
        bytes({0, 0, 0, 4, 0, 0, 0, 1}),
        bytes({0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})},
       "",  // it sends numbers alone
       "",
       false},
      // Its monitor, a thread of the driver, ends the process at a length that no message has.
      {"mongodb",
       "mongodb://127.0.0.1:",
       "/?directConnection=true",
       {bytes({0, 0, 0, 0}), bytes({0xff, 0xff, 0xff, 0x7f}),
        bytes({16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0xdd, 7, 0, 0}),
        bytes({26, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}),
        bytes({0xff, 0xff, 0xff, 0xff})},
       mongodb_refusal(),
       "maxWireVersion"},
  };
  return all;
}

// The most since the last call.
std::size_t resident_megabytes() {
  std::size_t kilobytes = 0;
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    if (word == "VmHWM:") in >> kilobytes;
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return kilobytes / 1'024;
}

class HostileTest : public ::testing::TestWithParam<Protocol> {
 protected:
  void SetUp() override {
    try {
      server_ = std::make_unique<servers::SharedServer>(GetParam().server);
    } catch (const servers::Unavailable& reason) {
      GTEST_SKIP() << reason.what();
    }
    relay = std::make_unique<Relay>(port_in(server_->address()));
    try {
      straight_ = open_store(server_url());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();  // this build has no such store
    }
    mutex = "hostile-" + std::to_string(std::random_device{}());
    const Claim claim{mutex, kHolder, 0, 0, 300s, 100s};
    ASSERT_TRUE(asks_until_owned(*straight_, claim)) << "the server itself does not work";
    store = open_store(relayed_url());
    ASSERT_TRUE(hears_the_truth());
    watch_ = store->watch(mutex, {}, [this] { ++wakes_; });
  }
  void TearDown() override {
    if (!straight_) return;
    const bool listens = watch_ && GetParam().is_pushing;
    EXPECT_TRUE(!listens || comes_true([&] { return watch_->is_live(); }));
    const int before = wakes_;
    const Claim term{mutex, kHolder, 0};
    straight_->release({&term, 1}, BootClock::now() + 30s);
    EXPECT_TRUE(!listens || comes_true([&] { return wakes_ > before; }));
  }

  static bool comes_true(const std::function<bool()>& condition) {
    const kit::StopSignal moment;
    const LocalTime until = BootClock::now() + 60s;
    while (!condition() && BootClock::now() < until) moment.pause(10ms);
    return condition();
  }

  static Relay::Lie sparing(Relay::Lie lie) {
    const std::string& spared = GetParam().spared;
    return [lie = std::move(lie), &spared](std::string_view said) {
      const bool is_spared = !spared.empty() && said.find(spared) != said.npos;
      return is_spared ? std::string(said) : lie(said);
    };
  }
  // The holder's answers, about the asker; counts how often it was named.
  static Relay::Lie naming_the_asker(Token token, std::int64_t instead, std::atomic<int>& named) {
    return sparing([=, &named](std::string_view said) {
      const Forged made = forge(said, kHolder, kAsker, token, instead);
      named += made.named;
      return made.answer;
    });
  }
  // A connection that was lied to is opened anew, which may take longer than a call has.
  void ask_until_named(const std::atomic<int>& named, const std::function<void()>& ask) {
    const LocalTime end = BootClock::now() + 30s;
    do {
      keep_holding();
      ask();
    } while (named == 0 && BootClock::now() < end);
    EXPECT_GT(named, 0) << "nobody was named";
  }
  static Relay::Lie saying(const std::string& words) {
    return sparing([words](std::string_view) { return words; });
  }
  // At least as many bytes as a relay passes on at once.
  static Relay::Lie repeating(const std::string& words) {
    std::string many;
    constexpr std::size_t kPiece = 65'536;
    while (many.size() < kPiece) many += words;
    return saying(many);
  }

  // Noise is no answer at all; what is one can be of another question.
  enum class Told { kError, kAnything };

  // The whole of what is promised of a lie.
  void survive(const std::string& what, Told told = Told::kAnything) {
    SCOPED_TRACE(what);
    resident_megabytes();
    const std::size_t before = resident_megabytes();
    for (int i = 0; i < 2; ++i) make_every_call("b~000000000000" + std::to_string(i), told);
    EXPECT_LT(resident_megabytes(), before + 512);  // some drivers read large packets whole
    relay->mend();
    EXPECT_TRUE(hears_the_truth());
  }

  // Whether it was answered by errors alone.
  using Call = std::function<bool(LocalTime deadline)>;
  // All at once, so that each also hears what is said to the others.
  void make_every_call(const std::string& id, Told told) {
    const std::string_view name = mutex;
    const Claim take{mutex, id, 0, 0, 10s, 5s}, renew{mutex, id, 1, 0, 10s, 5s};
    const std::pair<const char*, Call> calls[] = {
        {"take",
         [&](LocalTime end) {
           return check(store->contend({&take, 1}, end), id);
         }},
        {"renew",
         [&](LocalTime end) {
           return check(store->contend({&renew, 1}, end), id);
         }},
        {"observe",
         [&](LocalTime end) {
           return check(store->observe({&name, 1}, end), id);
         }},
        {"release",
         [&](LocalTime end) {
           return check(store->release({&renew, 1}, end), id);
         }},
        {"list", [&](LocalTime end) { return check(store->list("hostile-", {}, 10, end), id); }},
        {"evict",
         [&](LocalTime end) {
           store->evict(mutex, id, 1, Eviction::kFreeNow, end);  // of a term that never was
           return false;
         }},
    };
    const auto watch = store->watch(mutex, {}, [] {});
    std::vector<std::jthread> threads;
    for (const auto& [called, call] : calls) {
      threads.emplace_back([called = called, &call = call, told] {
        const bool is_error = expect_an_end(called, call);
        EXPECT_TRUE(is_error || told == Told::kAnything) << called << " believed it";
      });
    }
  }

  static bool expect_an_end(const char* called, const Call& call) {
    // A call that hangs does so for good; a busy machine does not keep one for so long.
    constexpr auto kDeadline = 400ms, kSlack = 60'000ms;
    const LocalTime began = BootClock::now();
    bool is_error = true;
    try {
      is_error = call(began + kDeadline);
    } catch (const Error& error) {
      EXPECT_TRUE(can_be_shown(error)) << called;
    }
    EXPECT_LT(BootClock::now() - began, kDeadline + kSlack) << called;
    return is_error;
  }

  // It is one line, and nothing in it moves a terminal.
  static ::testing::AssertionResult can_be_shown(const Error& error) {
    const std::string_view what = error.what();
    const bool is_line = core::is_valid_utf8(what) && !core::has_control_characters(what);
    if (is_line && !what.empty()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << ::testing::PrintToString(std::string(what));
  }

  static bool check(const Answers& answers, const std::string& id) {
    EXPECT_EQ(answers.size(), 1U);
    for (const Answer& answer : answers) {
      const auto* error = std::get_if<Error>(&answer);
      EXPECT_TRUE(error == nullptr || can_be_shown(*error));
      const auto* seen = std::get_if<Observation>(&answer);
      EXPECT_FALSE(seen != nullptr && seen->owner.is_owner(id)) << "owner by a lie";
    }
    return std::all_of(answers.begin(), answers.end(),
                       [](const Answer& answer) { return std::holds_alternative<Error>(answer); });
  }
  static bool check(const std::vector<Listed>& all, const std::string& id) {
    EXPECT_LE(all.size(), 10U);
    for (const Listed& each : all)
      EXPECT_FALSE(each.observation.owner.is_owner(id)) << "owner by a lie";
    return false;
  }

  // By what the engine goes: such an answer would make the asker owner, or keep it.
  void expect_no_grant(Token token) {
    const Claim claim{mutex, kAsker, token, 0, 10s, 5s};
    expect_an_end("claim", [&](LocalTime end) {
      for (const Answer& answer : store->contend({&claim, 1}, end + 2s)) {
        const auto* seen = std::get_if<Observation>(&answer);
        if (seen == nullptr || !seen->owner.is_owner(kAsker)) continue;
        const bool is_term = token == 0 ? seen->owner.token != 0 : seen->owner.token == token;
        EXPECT_FALSE(is_term && !seen->is_free())
            << "owner by a lie, with token " << seen->owner.token << ", asked with " << token;
      }
      return false;
    });
  }
  Token token_of_the_holder() {
    const std::string_view name = mutex;
    const Answers answers = straight_->observe({&name, 1}, BootClock::now() + 30s);
    return std::get<Observation>(answers.at(0)).owner.token;
  }

  // Where the lease is that of a session it does not last as long as was asked for.
  void keep_holding() {
    const Claim claim{mutex, kHolder, token_of_the_holder(), 0, 300s, 100s};
    straight_->contend({&claim, 1}, BootClock::now() + 30s);
  }

  ::testing::AssertionResult hears_the_truth() {
    std::string instead;
    const kit::StopSignal moment;
    for (const LocalTime until = BootClock::now() + 60s; BootClock::now() < until;
         moment.pause(20ms)) {
      keep_holding();
      try {
        const std::string_view name = mutex;
        const Answers answers = store->observe({&name, 1}, BootClock::now() + 5s);
        const auto* seen = std::get_if<Observation>(&answers.at(0));
        if (seen != nullptr && seen->owner.is_owner(kHolder)) return ::testing::AssertionSuccess();
        const auto* error = std::get_if<Error>(&answers.at(0));
        instead = error != nullptr ? error->what() : "another owner";
      } catch (const Error& error) {
        instead = error.what();
      }
    }
    return ::testing::AssertionFailure() << instead;
  }

  // Its text, looked at; empty: there was none.
  std::string error_of_asking() {
    const std::string_view name = mutex;
    try {
      const Answers answers = store->observe({&name, 1}, BootClock::now() + 2s);
      check(answers, std::string(kAsker));
      const auto* error = std::get_if<Error>(&answers.at(0));
      return error != nullptr ? error->what() : "";
    } catch (const Error& error) {
      EXPECT_TRUE(can_be_shown(error));
      return error.what();
    }
  }

  // Of the same length: what names one can name the other.
  static constexpr std::string_view kHolder = "holder~0123456789abc",
                                    kAsker = "asker~~0123456789abc";
  std::unique_ptr<Relay> relay;
  std::shared_ptr<Store> store;
  std::string mutex;

 private:
  static std::uint16_t port_in(const std::string& address) {
    const std::size_t at = address.find("127.0.0.1:") + 10;
    return static_cast<std::uint16_t>(std::stoi(address.substr(at)));
  }
  std::string relayed_url() const {
    return GetParam().before + std::to_string(relay->port()) + GetParam().after;
  }
  std::string server_url() const {
    return GetParam().before + std::to_string(port_in(server_->address())) + GetParam().after;
  }
  static bool asks_until_owned(Store& store, const Claim& claim) {
    const kit::StopSignal moment;
    for (const LocalTime until = BootClock::now() + 60s; BootClock::now() < until;
         moment.pause(20ms)) {
      try {
        const Answers answers = store.contend({&claim, 1}, BootClock::now() + 10s);
        const auto* seen = std::get_if<Observation>(&answers.at(0));
        if (seen != nullptr && seen->owner.is_owner(claim.wire_id)) return true;
      } catch (const Error&) {
        continue;
      }
    }
    return false;
  }

  std::unique_ptr<servers::SharedServer> server_;
  std::shared_ptr<Store> straight_;
  std::atomic<int> wakes_{0};
  std::unique_ptr<Watch> watch_;  // goes before what it calls
};

std::string noise(std::mt19937& random, std::size_t size) {
  std::string made(size, '\0');
  for (char& each : made) each = static_cast<char>(random());
  return made;
}

TEST_P(HostileTest, NoiseMakesNoOwner) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    relay->lie(sparing([random = std::mt19937(seed)](std::string_view said) mutable {
      return noise(random, said.size());
    }));
    survive("noise " + std::to_string(seed), Told::kError);
  }
}

TEST_P(HostileTest, HalfAnAnswerMakesNoOwner) {
  relay->lie(
      sparing([](std::string_view said) { return std::string(said.substr(0, said.size() / 2)); }));
  survive("half of each answer");
}

TEST_P(HostileTest, WhatNoServerSaysMakesNoOwner) {
  for (const std::string& each : GetParam().nonsense) {
    relay->lie(saying(each));
    survive(::testing::PrintToString(each));
  }
}

// Servers whose errors have a text.
class HostileWordsTest : public HostileTest {};

TEST_P(HostileWordsTest, AreOneLineThatATerminalCanBeShown) {
  relay->lie(saying(GetParam().refusal));
  std::string said;
  // A connection that was lied to is opened anew, and is then perhaps not understood.
  EXPECT_TRUE(comes_true([&] {
    said = error_of_asking();
    return said.find("]forged") != said.npos;
  })) << "what was said is not repeated: "
      << said;
  survive("an error with tricks");
}

TEST_P(HostileTest, WhoIsNamedAsTheOwnerWithATokenThatIsNoneOwnsNothing) {
  const Token token = token_of_the_holder();
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    std::atomic<int> named = 0;
    relay->lie(naming_the_asker(token, wrong, named));
    const bool is_lacking = wrong == 0 && GetParam().may_lack_token;
    ask_until_named(named, [&] {
      expect_no_grant(0);
      for (const Token asked : {token, token + 1}) {
        if (!is_lacking) expect_no_grant(asked);
      }
    });
    relay->mend();
    EXPECT_TRUE(hears_the_truth());
  }
}

TEST_P(HostileTest, WhoIsNamedAsTheOwnerOfAnotherTermHasNotRenewedItsOwn) {
  const Token token = token_of_the_holder();
  std::atomic<int> named = 0;
  relay->lie(naming_the_asker(token, static_cast<std::int64_t>(token), named));
  ask_until_named(named, [&] {
    for (const Token asked : {token - 1, token + 1}) expect_no_grant(asked);
  });
  relay->mend();
  EXPECT_TRUE(hears_the_truth());
}

TEST_P(HostileTest, AnEndlessAnswerMakesNoOwnerAndCostsNoMemory) {
  std::mt19937 random(1);
  relay->flood(repeating(noise(random, 65'536)));
  survive("noise without an end");
  if (!GetParam().is_repeated) return;
  for (const std::string& each : GetParam().nonsense) {
    relay->flood(repeating(each));
    survive("without an end: " + ::testing::PrintToString(each));
  }
}

std::vector<Protocol> with_words() {
  std::vector<Protocol> some = protocols();
  std::erase_if(some, [](const Protocol& each) { return each.refusal.empty(); });
  return some;
}

INSTANTIATE_TEST_SUITE_P(All, HostileTest, ::testing::ValuesIn(protocols()),
                         [](const auto& each) { return each.param.server; });
INSTANTIATE_TEST_SUITE_P(All, HostileWordsTest, ::testing::ValuesIn(with_words()),
                         [](const auto& each) { return each.param.server; });

}  // namespace
}  // namespace simba
