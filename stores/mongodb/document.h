#pragma once

#include <bson/bson.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace simba::mongodb {

// A BSON document in the making: values are bound, never pasted.
//
//   Document().text("_id", mutex).number("ttlMs", 4400)
//
// Threads: one at a time; any number may read.
class Document {
 public:
  Document() : bson_(bson_new()) {}
  explicit Document(bson_t* taken) : bson_(taken) {}
  Document(const Document& other) : bson_(bson_copy(other.bson_)) {}
  Document(Document&& other) noexcept : bson_(std::exchange(other.bson_, nullptr)) {}
  Document& operator=(const Document&) = delete;
  Document& operator=(Document&& other) noexcept {
    std::swap(bson_, other.bson_);
    return *this;
  }
  ~Document() {
    if (bson_ != nullptr) bson_destroy(bson_);
  }

  Document& text(std::string_view name, std::string_view value);
  Document& number(std::string_view name, std::int64_t value);
  Document& flag(std::string_view name, bool value);
  Document& document(std::string_view name, const Document& value);
  Document& texts(std::string_view name, std::span<const std::string_view> values);
  Document& documents(std::string_view name, std::span<const Document> values);

  // All fields of the other, after ours.
  Document& and_of(const Document& other);

  const bson_t* get() const { return bson_; }

 private:
  bson_t* bson_;
};

// {name: value}, of a text or of documents.
Document just(std::string_view name, std::string_view text);
Document just(std::string_view name, const Document& value);

// {operator: [a, b, ...]} of an expression; an argument is a field or variable ("$name"), a number
// or an expression.
class Expression {
 public:
  explicit Expression(std::string_view op);
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression();

  Expression& of(std::string_view field);
  Expression& of(std::int64_t number);
  Expression& of(const Document& expression);
  Document done();

 private:
  std::string_view key();

  Document document_;
  std::string op_;
  bson_t* arguments_;
  std::size_t count_ = 0;
  char key_[12];  // NOLINT(modernize-avoid-c-arrays): libbson's
};

// What a document of the server's holds. Replies are hostile: another type is no value.
std::optional<std::int64_t> number_in(const bson_t* document, const char* name);
std::optional<std::string_view> text_in(const bson_t* document, const char* name);

// Calls `each` with every document of an array, which `path` leads to ("cursor.firstBatch").
template <class Each>
bool each_document(const bson_t* document, const char* path, Each each) {
  bson_iter_t start, at, inner;
  if (!bson_iter_init(&start, document) || !bson_iter_find_descendant(&start, path, &at) ||
      !BSON_ITER_HOLDS_ARRAY(&at) || !bson_iter_recurse(&at, &inner)) {
    return false;
  }
  while (bson_iter_next(&inner)) {
    if (!BSON_ITER_HOLDS_DOCUMENT(&inner)) return false;
    std::uint32_t length = 0;
    const std::uint8_t* data = nullptr;
    bson_iter_document(&inner, &length, &data);
    bson_t one;
    if (!bson_init_static(&one, data, length)) return false;
    each(&one);
  }
  return true;
}

}  // namespace simba::mongodb
