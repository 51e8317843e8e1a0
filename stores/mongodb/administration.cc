#include "stores/mongodb/administration.h"

#include "stores/mongodb/connection.h"

namespace simba::mongodb {
namespace {

constexpr milliseconds kPatience{15'000};

std::string told(const MongodbOptions& options) {
  return "db.getSiblingDB(\"" + options.database + "\").createCollection(\"" + options.collection +
         "\")\n// A contender needs this and no more; who only looks (ls, show, watch) find and "
         "changeStream:\n// db.getSiblingDB(\"admin\").createRole({role: \"simba\", roles: [], "
         "privileges: [{resource: {db: \"" +
         options.database + "\", collection: \"" + options.collection +
         "\"}, actions: [\"find\", \"insert\", \"update\", \"changeStream\"]}]})\n";
}

// False: there is no such collection. Throws Error for one that cannot hold mutexes.
bool check_collection(Connection& connection, LocalTime deadline) {
  const MongodbOptions& options = connection.endpoint().options();
  Document command;
  command.number("listCollections", 1)
      .document("filter", just("name", options.collection))
      .flag("authorizedCollections", true);
  const Document reply = connection.read(command, deadline);
  bool is_there = false;
  std::string wrong;
  each_document(reply.get(), "cursor.firstBatch", [&](const bson_t* found) {
    is_there = true;
    const std::string type(text_in(found, "type").value_or("collection"));
    bson_iter_t start, at;
    const bool capped = bson_iter_init(&start, found) &&
                        bson_iter_find_descendant(&start, "options.capped", &at) &&
                        bson_iter_as_bool(&at);
    if (type != "collection") wrong = "a " + type;
    if (capped) wrong = "capped, and forgets";
  });
  if (wrong.empty()) return is_there;
  throw Error(Errc::kMisconfigured, "mongodb at " + connection.endpoint().where() +
                                        ": the collection is " + wrong +
                                        ": mutexes need an ordinary one; name another with "
                                        "collection= in the URL");
}

}  // namespace

Preparation prepare(std::string_view url, Prepare how) {
  const MongodbOptions options = mongodb_options(url);
  const std::string name = "the collection " + options.database + '.' + options.collection;
  const std::string statements = told(options);
  if (how == Prepare::kTell) return {statements, "this makes " + name};
  const kit::StopSignal never;
  Connection connection(Endpoint::make(options), never);
  const LocalTime deadline = BootClock::now() + kPatience;
  if (check_collection(connection, deadline)) return {"", name + " was there already"};
  connection.write(just("create", options.collection), deadline);
  return {statements.substr(0, statements.find('\n') + 1), name + " is made"};
}

}  // namespace simba::mongodb
