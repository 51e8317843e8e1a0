#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/time.h"
#include "stores/kit/reader.h"
#include "stores/mysql/bells.h"
#include "stores/mysql/connection.h"
#include "stores/mysql/endpoint.h"

// A doorbell between processes, on a server that cannot push.
//
//   who waits     holds a user-level lock in the mutex's name (GET_LOCK) on one connection, which
//                 waits in the server
//   who releases  hears in the same answer which connection holds that lock, and ends its wait
//                 (KILL QUERY, which everybody may do to connections of the same user)
//
// What it waits for is another such lock, the gate, which nobody gives away: one connection has it
// and sleeps (SLEEP), all others queue for it. All could sleep; but one lock of the server is of
// every sleep, and where a dozen fall asleep and are woken, who rings waits for it for seconds. A
// connection that waits for the gate is waited for by nobody.
//
// There are two locks for each mutex, so that two processes can pass it to and fro; a third one
// polls (bells.h has who gets them). A contender that finds both taken holds one more, which says
// so to whoever only watches, and has one of the two. On a server that only reads nobody rings:
// there is no bell there, and waiters poll until one is found on a server that writes. A ring
// between two sleeps is not heard: so each sleep begins with a look whether the rows were written
// meanwhile. Rung for a mutex that is not waited for, or not rung at all, costs time and nothing
// else.
//
// One rings at a time, who holds a lock in the waiter's name: where two of them end the same sleep,
// MariaDB lets one wait for two seconds, and with it every sleeper and whoever wants to connect.
namespace simba::mysql {

// The name of the locks of a mutex, without the last letter: a or b for a place, c for the one that
// has none. Names of locks are short and of the whole server, so this is a hash.
std::string bell_of(const Endpoint& endpoint, std::string_view mutex);

std::uint64_t hash_of(const Endpoint& endpoint, std::string_view mutex);

// The name of the lock that is waited for, by all who wait for mutexes of this table.
std::string gate_of(const Endpoint& endpoint);

// Ends the sleep of a connection that waits. Throws Error only where ours is lost.
void ring(Connection& connection, std::uint64_t waiter, LocalTime deadline);

// The connection that waits for the bells.
class BellSource : public kit::Source {
 public:
  BellSource(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<Bells> bells,
             const kit::StopSignal& stop);
  ~BellSource() override;

  void read(const kit::StopSignal& stop, const Hint& hint) override;

 private:
  struct Held {
    std::shared_ptr<Bells::Bell> bell;
    char slot = 0;          // a or b; 0: others have them
    bool contends = false;  // tried for both
    bool asks = false;      // has c
  };
  void look_for_cluster();
  [[noreturn]] void refuse_reader() const;
  void start_over();
  void give_way();
  void register_wanted(const Hint& hint);
  void await_releases(const std::vector<const Bells::Wanted*>& tried);
  void let_go(const std::vector<Bells::Wanted>& wanted);
  std::string try_sql(const Bells::Wanted& wanted, bool asks) const;
  void idle(const kit::StopSignal& stop);
  std::string wait_sql() const;
  void wait_in_server(const kit::StopSignal& stop);
  // False: stop was requested.
  bool wait_for_ring(int status, LocalTime deadline, const kit::StopSignal& stop);
  void interrupt(const kit::StopSignal& stop);
  bool has_slot() const;
  bool lacks_slot() const;

  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<Bells> bells_;
  Connection connection_;
  bool is_in_cluster_ = false;        // others may be on other nodes: a bell is never live
  std::map<std::string, Held> held_;  // by mutex
  bool is_unsure_ = false;            // whether held_ is what the server has
  LocalTime try_again_{};             // for the slots that others have
  // To the rows of held_ together, when they were last looked at.
  static constexpr const char* kUnknown = "-1";
  std::string writes_ = kUnknown;
  bool was_rung_ = false;
  bool is_asked_ = false;  // for a place that is here for a watch alone
};

}  // namespace simba::mysql
