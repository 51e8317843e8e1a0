#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing/servers/process.h"
#include "testing/servers/relay.h"
#include "torture/call_log.h"
#include "torture/error_log.h"
#include "torture/notebook.h"
#include "torture/outcome.h"
#include "torture/plan.h"
#include "torture/target.h"

namespace simba::torture {

// A client ended by itself: how, and what it said last.
class Ended : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The client processes, each with its notebooks and, where there is a network, a relay of its own.
//
// Threads: one.
class Crowd {
 public:
  Crowd(const Plan& plan, const Target& target);

  void start(int client);  // again after kill()
  void kill(int client);   // throws Ended where it has ended by itself
  void stop(int client);
  void go_on(int client);
  void check(int client);  // the same
  // All, in good order; what does not end is killed. Of each that did not end well: how, and what
  // it said last.
  std::vector<std::string> end();
  void mend();  // all relays

  pid_t pid(int client) const;  // -1: it is dead
  servers::Relay& relay(int client) { return *members_.at(index(client)).relay; }
  Notebook& notebook(int client, int mutex) {
    return members_.at(index(client)).notebooks.at(index(mutex));
  }
  // Of each notebook the latest records.
  std::vector<History> histories(std::size_t most = Notebook::kCapacity) const;
  // What the clients asked of the store so far.
  std::vector<CallHistory> calls() const;
  // What errors they met so far.
  ErrorHistory errors() const;
  bool is_overfull() const;

 private:
  struct Member {
    std::unique_ptr<servers::Process> process;
    std::unique_ptr<servers::Relay> relay;
    std::vector<Notebook> notebooks;
    std::unique_ptr<CallLog> calls;
    std::unique_ptr<ErrorLog> errors;
  };
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  std::string told(int client, const std::string& what) const;  // with the end of its log

  const Plan& plan_;
  const Target& target_;
  std::vector<Member> members_;
};

}  // namespace simba::torture
