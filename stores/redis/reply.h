#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace simba::redis {

// What a server said to one command.
struct Reply {
  enum class Kind { kNil, kText, kNumber, kArray, kError };

  Kind kind = Kind::kNil;
  std::int64_t number = 0;
  std::string text;  // also of an error
  std::vector<Reply> items;

  bool is_error() const { return kind == Kind::kError; }
  // The error's first word: "NOSCRIPT", "MOVED".
  bool is_error(std::string_view word) const {
    return is_error() && text.starts_with(word) &&
           (text.size() == word.size() || text[word.size()] == ' ');
  }
};
using Replies = std::vector<Reply>;

// Replies from a stream of bytes, by hiredis.
//
// Threads: one at a time.
// Errors: Error (kCorrupt) for what is no reply, or larger than any of ours can be.
class ReplyReader {
 public:
  struct Growing;  // the reply that is not complete yet

  ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  // Appends what is complete now.
  void feed(std::string_view bytes, Replies& complete);

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::unique_ptr<Growing> growing_;
};

}  // namespace simba::redis
