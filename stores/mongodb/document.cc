#include "stores/mongodb/document.h"

namespace simba::mongodb {
namespace {

int size_of(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Document& Document::text(std::string_view name, std::string_view value) {
  bson_append_utf8(bson_, name.data(), size_of(name), value.data(), size_of(value));
  return *this;
}

Document& Document::number(std::string_view name, std::int64_t value) {
  bson_append_int64(bson_, name.data(), size_of(name), value);
  return *this;
}

Document& Document::flag(std::string_view name, bool value) {
  bson_append_bool(bson_, name.data(), size_of(name), value);
  return *this;
}

Document& Document::document(std::string_view name, const Document& value) {
  bson_append_document(bson_, name.data(), size_of(name), value.get());
  return *this;
}

Document& Document::texts(std::string_view name, std::span<const std::string_view> values) {
  bson_t array;
  bson_append_array_begin(bson_, name.data(), size_of(name), &array);
  std::uint32_t index = 0;
  for (const std::string_view value : values) {
    char buffer[12];  // NOLINT(modernize-avoid-c-arrays): libbson's
    const char* key = nullptr;
    const auto length = bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
    bson_append_utf8(&array, key, static_cast<int>(length), value.data(), size_of(value));
  }
  bson_append_array_end(bson_, &array);
  return *this;
}

Document& Document::documents(std::string_view name, std::span<const Document> values) {
  bson_t array;
  bson_append_array_begin(bson_, name.data(), size_of(name), &array);
  std::uint32_t index = 0;
  for (const Document& value : values) {
    char buffer[12];  // NOLINT(modernize-avoid-c-arrays): libbson's
    const char* key = nullptr;
    const auto length = bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
    bson_append_document(&array, key, static_cast<int>(length), value.get());
  }
  bson_append_array_end(bson_, &array);
  return *this;
}

Document& Document::and_of(const Document& other) {
  bson_concat(bson_, other.bson_);
  return *this;
}

Document just(std::string_view name, std::string_view text) {
  Document made;
  made.text(name, text);
  return made;
}

Document just(std::string_view name, const Document& value) {
  Document made;
  made.document(name, value);
  return made;
}

Expression::Expression(std::string_view op) : op_(op), arguments_(bson_new()) {}
Expression::~Expression() { bson_destroy(arguments_); }

std::string_view Expression::key() {
  const char* text = nullptr;
  const auto length =
      bson_uint32_to_string(static_cast<std::uint32_t>(count_++), &text, key_, sizeof key_);
  return {text, length};
}

Expression& Expression::of(std::string_view field) {
  const std::string_view at = key();
  bson_append_utf8(arguments_, at.data(), size_of(at), field.data(), size_of(field));
  return *this;
}

Expression& Expression::of(std::int64_t number) {
  const std::string_view at = key();
  bson_append_int64(arguments_, at.data(), size_of(at), number);
  return *this;
}

Expression& Expression::of(const Document& expression) {
  const std::string_view at = key();
  bson_append_document(arguments_, at.data(), size_of(at), expression.get());
  return *this;
}

Document Expression::done() {
  bson_t* made = bson_new();
  bson_append_array(made, op_.data(), size_of(op_), arguments_);
  return Document(made);
}

// A whole number, however the writer's language keeps it.
std::optional<std::int64_t> number_in(const bson_t* document, const char* name) {
  bson_iter_t at;
  if (!bson_iter_init_find(&at, document, name)) return std::nullopt;
  if (BSON_ITER_HOLDS_INT64(&at) || BSON_ITER_HOLDS_INT32(&at)) return bson_iter_as_int64(&at);
  if (BSON_ITER_HOLDS_DATE_TIME(&at)) return bson_iter_date_time(&at);
  if (!BSON_ITER_HOLDS_DOUBLE(&at)) return std::nullopt;
  const double value = bson_iter_double(&at);
  constexpr double kLargest = 9007199254740992.0;  // whole numbers up to here are exact
  if (!(value >= -kLargest && value <= kLargest)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::string_view> text_in(const bson_t* document, const char* name) {
  bson_iter_t at;
  if (!bson_iter_init_find(&at, document, name) || !BSON_ITER_HOLDS_UTF8(&at)) return std::nullopt;
  std::uint32_t length = 0;
  const char* text = bson_iter_utf8(&at, &length);
  return std::string_view(text, length);
}

}  // namespace simba::mongodb
