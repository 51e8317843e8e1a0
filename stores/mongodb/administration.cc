#include "stores/mongodb/administration.h"

#include <memory>

#include "stores/mongodb/connection.h"

namespace simba::mongodb {
namespace {

constexpr milliseconds kPatience{15'000};

// A role that may do this and no more.
std::string role(const MongodbOptions& options, const std::string& name,
                 const std::string& actions) {
  return "// db.adminCommand({\"createRole\": \"" + name +
         "\", \"roles\": [], \"privileges\": [{\n//   \"resource\": {\"db\": \"" +
         options.database + "\", \"collection\": \"" + options.collection +
         "\"},\n//   \"actions\": [" + actions + "]}]})\n";
}

std::string user(const std::string& name, const std::string& role) {
  return "// db.adminCommand({\"createUser\": \"" + name +
         "\", \"pwd\": \"PASSWORD\", \"roles\": [\"" + role + "\"]})\n";
}

std::string told(const MongodbOptions& options) {
  return "db.getSiblingDB(\"" + options.database + "\").createCollection(\"" + options.collection +
         "\")\n// A contender needs the first of these roles and no more, who only looks (ls, "
         "show, "
         "watch) the second:\n" +
         role(options, "simba", R"("find", "insert", "update", "changeStream")") +
         role(options, "simbaObserver", R"("find")") + user("contender", "simba") +
         user("observer", "simbaObserver");
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

// The right to insert is asked for with a document that no server takes, and the right to update
// with one that no filter finds: nothing is written.
Finding try_rights(Connection& connection, LocalTime deadline) {
  const std::string& name = connection.endpoint().options().collection;
  const auto write = [&](const Document& command) {
    const Document reply = connection.write(command, deadline);
    each_document(reply.get(), "writeErrors", [&](const bson_t* error) {
      const auto code = static_cast<int>(number_in(error, "code").value_or(0));
      if (code != ServerCode::kUnauthorized) return;
      throw server_failure(code, std::string(text_in(error, "errmsg").value_or("")),
                           connection.endpoint().where());
    });
  };
  try {
    Document impossible, insert, update, change;
    impossible.texts("_id", {});
    insert.text("insert", name).documents("documents", {&impossible, 1});
    change.document("q", just("_id", "simba-doctor")).document("u", just("$set", just("x", "")));
    update.text("update", name).documents("updates", {&change, 1});
    write(update);
    write(insert);
    return {"rights", Finding::Verdict::kOk, "may contend"};
  } catch (const Error& error) {
    return {"rights", Finding::Verdict::kFailed, std::string("may not contend: ") + error.what()};
  }
}

// False: somebody else has made it meanwhile.
bool make_collection(Connection& connection, LocalTime deadline) try {
  connection.write(just("create", connection.endpoint().options().collection), deadline);
  return true;
} catch (const Failure& failure) {
  if (failure.server_code() != ServerCode::kNamespaceExists) throw;
  check_collection(connection, deadline);
  return false;
}

}  // namespace

Preparation prepare(std::string_view url, Prepare how) {
  const MongodbOptions options = mongodb_options(url);
  check_options(options);
  const std::string name = "the collection " + options.database + '.' + options.collection;
  const std::string statements = told(options);
  if (how == Prepare::kTell) return {statements, "this makes " + name};
  const kit::StopSignal never;
  Connection connection(Endpoint::make(options), never);
  const LocalTime deadline = BootClock::now() + kPatience;
  if (check_collection(connection, deadline) || !make_collection(connection, deadline)) {
    return {"", name + " was there already"};
  }
  return {statements.substr(0, statements.find('\n') + 1), name + " is made"};
}

Inspection inspect(std::string_view url) {
  using Verdict = Finding::Verdict;
  const MongodbOptions options = mongodb_options(url);
  const kit::StopSignal never;
  Connection connection(Endpoint::make(options), never);
  const LocalTime deadline = BootClock::now() + kPatience;
  const std::string name = options.database + '.' + options.collection;
  Document question;
  question.number("buildInfo", 1);
  const Document build = connection.read(question, deadline);
  Inspection seen;
  seen.tells_wall_time = true;
  seen.findings.push_back(
      {"server", Verdict::kOk,
       "MongoDB " + std::string(text_in(build.get(), "version").value_or("of an unknown version")) +
           " at " + connection.endpoint().where()});
  try {
    if (!check_collection(connection, deadline)) {
      seen.findings.push_back(
          {"collection", Verdict::kFailed, name + " is missing: run simba init"});
      return seen;
    }
    seen.findings.push_back({"collection", Verdict::kOk, name + " is there"});
    seen.findings.push_back(try_rights(connection, deadline));
  } catch (const Error& error) {
    seen.findings.push_back({"collection", Verdict::kFailed, error.what()});
  }
  return seen;
}

std::vector<std::string> secrets(std::string_view url) {
  const std::unique_ptr<mongoc_uri_t, void (*)(mongoc_uri_t*)> uri(
      mongoc_uri_new_with_error(mongodb_options(url).uri.c_str(), nullptr), mongoc_uri_destroy);
  const char* mechanism = uri ? mongoc_uri_get_auth_mechanism(uri.get()) : nullptr;
  const bool is_taken = mechanism != nullptr && std::string_view(mechanism) == "MONGODB-AWS" &&
                        mongoc_uri_get_username(uri.get()) == nullptr;
  if (!is_taken) return {};
  return {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
}

}  // namespace simba::mongodb
