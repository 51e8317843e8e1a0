#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simba/time.h"
#include "torture/store_rules.h"

namespace simba::torture {

// Something that a store has a number of; none: it did not say. In a run that goes on for long it
// may grow by the share and the constant.
struct Count {
  std::string name;  // "rows"
  std::optional<double> value;
  double share = 0, constant = 0;
};

// What is attacked, and how far. What is empty cannot be done to it.
struct Target {
  std::string name;  // for people
  std::string url;   // may hold a password

  // Its network: clients go through a relay each.
  struct Network {
    std::string host;
    std::uint16_t port = 0;
    std::function<std::string(std::uint16_t)> url;  // as `url`, at a port of 127.0.0.1
  };
  std::optional<Network> network;

  // A server that we started: it is killed, and launched again on the same data.
  struct Server {
    std::function<void()> kill, launch, await_ready;
    std::function<bool()> is_ready;
    // Of several servers: another one leads than the one that was killed. Then a kill is a
    // failover, and what was killed is launched after it.
    std::function<bool()> has_heir;
    // From now on the others get nothing of what the one that leads is told, until it is killed:
    // what it has not acknowledged by then is lost.
    std::function<void()> hold_back;
  };
  std::optional<Server> server;
  StoreRules rules;  // of its answers
  // A failover may forget what was acknowledged: then two owners are possible for a lease.
  bool forgets = false;
  // Of the wall clock that the store decides by: how far off it is to be, and what time it is by
  // it, since 1970, as the server says. None: it does not answer.
  std::function<void(nanoseconds)> step_clock;
  std::function<std::optional<nanoseconds>()> read_clock;

  // What the store keeps: rows, keys, files, connections. Always the same names.
  std::function<std::vector<Count>()> count;

  std::vector<std::string> spared;  // what is not attacked, and why
  std::shared_ptr<void> keeps;      // lives as long as this
};

// A server of somebody else, by its URL: its network is attacked where it is one host without TLS.
Target target_of(const std::string& url);

}  // namespace simba::torture
