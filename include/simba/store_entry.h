#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simba/log.h"
#include "simba/store.h"

// What makes a store known under the scheme of its URLs, and what it offers beside the six calls:
// what `simba init` and `simba doctor` do for it, and what may stand in a file with settings.
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

// One thing that was looked at.
struct Finding {
  enum class Verdict { kOk, kWarning, kFailed };
  std::string check;  // "server", "table", "rights"
  Verdict verdict = Verdict::kOk;
  std::string text;  // what was found; unless it is fine, what to do
};
struct Inspection {
  std::vector<Finding> findings;
  bool tells_wall_time = false;  // the store's clock is one that people read
};

// A setting of the store: a parameter of its URL that may also stand in a file with settings.
struct StoreProperty {
  std::string name;
  std::string allowed = "any text";                          // for errors: "it can be ..."
  std::function<bool(std::string_view value)> accepts = {};  // empty: anything
  bool secret = false;  // the tool never prints it, and refuses it where others could read it
};

struct StoreEntry {
  std::string scheme;
  StoreFactory open;
  // Both throw Error for what cannot be had. Empty: there is nothing to prepare, or to look at.
  std::function<Preparation(std::string_view url, Prepare how)> prepare = {};
  // Makes nothing that is missing, and leaves nothing behind.
  std::function<Inspection(std::string_view url)> inspect = {};
  // Variables of the environment out of which it takes a password or the like for this URL, as
  // PGPASSWORD: they are ours then, and the tool keeps them from the programs that it runs.
  std::function<std::vector<std::string>(std::string_view url)> secrets = {};
  std::string section = {};  // of files with settings; empty: the scheme
  std::vector<StoreProperty> properties = {};
  // What is not there and would be made by opening it, as "file /srv/app/locks.db"; empty text:
  // nothing. Throws as `open` does where it could not be made. For who only looks.
  std::function<std::string(std::string_view url)> missing = {};
};

}  // namespace simba::inline v0
