// Changes that a stream of MongoDB tells of: what libbson takes for a document, and all that it
// does not look at.
#include <bson/bson.h>

#include <optional>
#include <string>

#include "fuzz/target.h"
#include "stores/mongodb/change.h"
#include "stores/mongodb/document.h"

using simba::fuzz::require;

namespace {

namespace mongodb = simba::mongodb;

std::optional<std::string_view> read(const bson_t* change) {
  mongodb::ends_stream(change);
  const auto mutex = mongodb::freed_by(change);
  if (!mutex || mutex->empty()) return mutex;
  const auto* begin = reinterpret_cast<const char*>(bson_get_data(change));
  require(begin <= mutex->data() && mutex->data() + mutex->size() <= begin + change->len,
          "a name stands in the document");
  return mutex;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const std::string operation = input.flip() ? mongodb::kEndOfStream : input.text(20);
  const std::string name = input.text(60);
  mongodb::Document key, change;
  key.text("_id", name);
  change.text("operationType", operation).document("documentKey", key);
  require(mongodb::ends_stream(change.get()) == (operation == mongodb::kEndOfStream),
          "a stream ends by this word alone");
  require(name.empty() ? !read(change.get()) : read(change.get()) == name, "a name is kept");

  const std::string bytes = input.rest();
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  bson_t raw;
  if (!bytes.empty() && bson_init_static(&raw, first, bytes.size())) read(&raw);
  return 0;
}
