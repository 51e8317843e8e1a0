#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "simba/log.h"
#include "simba/store.h"

// What makes a store known under the scheme of its URLs, and what it offers beside the six calls:
// what `simba init` does for it.
namespace simba::inline v0 {

using StoreFactory =
    std::function<std::shared_ptr<Store>(std::string_view url, const LogSink& log)>;

// What a store needs on its server before the first claim.
enum class Prepare {
  kNow,   // makes what is missing. What is there already stays as it is
  kTell,  // changes nothing and asks no server: the statements for somebody who may run them
};
struct Preparation {
  std::string
      statements;       // what was run or is to be run, a line each; what is only told may hold
                        // comments, as the privileges of contenders. Empty: nothing was to be done
  std::string summary;  // for a person, one line
};

struct StoreEntry {
  std::string scheme;
  StoreFactory open;
  // Throws Error for what cannot be had. Empty: there is nothing to prepare.
  std::function<Preparation(std::string_view url, Prepare how)> prepare = {};
};

}  // namespace simba::inline v0
