#include "stores/mongodb/change.h"

#include "stores/mongodb/document.h"

namespace simba::mongodb {

bool ends_stream(const bson_t* change) { return text_in(change, "operationType") == kEndOfStream; }

std::optional<std::string_view> freed_by(const bson_t* change) {
  bson_iter_t start, id;
  const bool is_named = bson_iter_init(&start, change) &&
                        bson_iter_find_descendant(&start, "documentKey._id", &id) &&
                        BSON_ITER_HOLDS_UTF8(&id);
  if (!is_named) return std::string_view{};
  std::uint32_t length = 0;
  const char* name = bson_iter_utf8(&id, &length);
  if (length == 0) return std::nullopt;
  return std::string_view{name, length};
}

}  // namespace simba::mongodb
