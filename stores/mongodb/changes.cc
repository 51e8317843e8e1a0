#include "stores/mongodb/changes.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stores/kit/per_process.h"
#include "stores/mongodb/change.h"
#include "stores/mongodb/connection.h"

namespace simba::mongodb {
namespace {

// Milliseconds the server keeps a question open: as long may the end of a store wait for it. To cut
// the connection instead would make the driver look for another server, which takes longer.
constexpr std::int64_t kAwait = 500;
constexpr std::chrono::seconds kPatience{15};  // with its answer

// Only what may have made a mutex free: our release empties the owner, the Java side deletes. And
// the end of the stream, when the collection is dropped or renamed.
Document only_releases() {
  Document deleted, emptied, replaced, ended, wanted;
  deleted.text("operationType", "delete");
  emptied.text("updateDescription.updatedFields.ownerId", "");
  replaced.text("operationType", "replace").text("fullDocument.ownerId", "");
  ended.text("operationType", kEndOfStream);
  const std::vector<Document> any{std::move(deleted), std::move(emptied), std::move(replaced),
                                  std::move(ended)};
  wanted.documents("$or", any);
  Document shown;
  shown.number("documentKey", 1).number("operationType", 1);
  const std::vector<Document> stages{just("$match", wanted), just("$project", shown)};
  Document pipeline;
  pipeline.documents("pipeline", stages);
  return pipeline;
}

// Whatever the URI says: a secondary hears of releases later, and a lesser concern is refused.
void ask_primary(mongoc_collection_t* collection) {
  using Concern = std::unique_ptr<mongoc_read_concern_t, void (*)(mongoc_read_concern_t*)>;
  using Prefs = std::unique_ptr<mongoc_read_prefs_t, void (*)(mongoc_read_prefs_t*)>;
  const Concern majority(mongoc_read_concern_new(), mongoc_read_concern_destroy);
  const Prefs primary(mongoc_read_prefs_new(MONGOC_READ_PRIMARY), mongoc_read_prefs_destroy);
  mongoc_read_concern_set_level(majority.get(), MONGOC_READ_CONCERN_LEVEL_MAJORITY);
  mongoc_collection_set_read_concern(collection, majority.get());
  mongoc_collection_set_read_prefs(collection, primary.get());
}

class Stream : public kit::Source {
 public:
  Stream(std::shared_ptr<Endpoint> endpoint, const kit::StopSignal& stop)
      : connection_(std::move(endpoint), stop) {
    const MongodbOptions& options = connection_.endpoint().options();
    Limit& limit = connection_.limit();
    limit = {BootClock::now() + options.connect_timeout, &stop};
    collection_.reset(mongoc_client_get_collection(connection_.client(), options.database.c_str(),
                                                   options.collection.c_str()));
    ask_primary(collection_.get());
    Document opts;
    opts.number("maxAwaitTimeMS", kAwait);
    stream_.reset(mongoc_collection_watch(collection_.get(), only_releases().get(), opts.get()));
    check();
  }
  ~Stream() override {
    // The server need not be told: without the deadline it could hang here.
    connection_.limit() = {BootClock::now() + std::chrono::milliseconds(100), nullptr};
    stream_.reset();
    collection_.reset();
  }

  void read(const kit::StopSignal& stop, const Hint& hint) override {
    connection_.limit() = {BootClock::now() + kPatience, nullptr};
    const bson_t* change = nullptr;
    if (!mongoc_change_stream_next(stream_.get(), &change)) {
      if (!stop.is_requested()) check();
      return;
    }
    if (ends_stream(change)) {
      throw Error(Errc::kUnreachable, "mongodb at " + connection_.endpoint().where() +
                                          ": the collection was dropped or renamed");
    }
    if (const auto mutex = freed_by(change)) hint(*mutex);
  }

 private:
  void check() {
    bson_error_t error{};
    const bson_t* reply = nullptr;
    if (mongoc_change_stream_error_document(stream_.get(), &error, &reply)) {
      connection_.fail(error, reply);
    }
  }

  struct Destroy {
    void operator()(mongoc_collection_t* it) const { mongoc_collection_destroy(it); }
    void operator()(mongoc_change_stream_t* it) const { mongoc_change_stream_destroy(it); }
  };
  Connection connection_;
  std::unique_ptr<mongoc_collection_t, Destroy> collection_;
  std::unique_ptr<mongoc_change_stream_t, Destroy> stream_;
};

// Null: this server has none.
std::unique_ptr<kit::Source> open_stream(const std::shared_ptr<Endpoint>& endpoint,
                                         const kit::StopSignal& stop) try {
  return std::make_unique<Stream>(endpoint, stop);
} catch (const Failure& failure) {
  if (failure.server_code() != ServerCode::kNoChangeStreams) throw;
  endpoint->log(LogLevel::kWarning,
                "mongodb at " + endpoint->where() +
                    ": a server that is no replica set has no change streams: waiters poll");
  return nullptr;
}

}  // namespace

std::shared_ptr<kit::Listener> changes_of(const std::shared_ptr<Endpoint>& endpoint,
                                          const std::shared_ptr<kit::SharedLog>& log) {
  const auto make = [&] {
    return std::make_shared<kit::Listener>(
        "simba-changes",
        [endpoint](const kit::StopSignal& stop) { return open_stream(endpoint, stop); }, log);
  };
  if (endpoint->is_users()) return make();
  return kit::PerProcess<kit::Listener>::get("mongodb\n" + endpoint->identity(), make);
}

}  // namespace simba::mongodb
