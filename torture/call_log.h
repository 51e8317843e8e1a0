#pragma once

#include <atomic>
#include <filesystem>
#include <vector>

#include "torture/linear.h"
#include "torture/shared_file.h"

namespace simba::torture {

// What one client asked its store and what it was answered, in a file that survives SIGKILL: that a
// call is under way is noted before it is sent. The next process of the client goes on behind the
// last.
//
// Threads: any of one process write; anybody reads.
class CallLog {
 public:
  static constexpr std::size_t kCapacity = 1 << 17;
  static constexpr std::size_t kNoRoom = kCapacity;

  explicit CallLog(const std::filesystem::path& file);

  // Where it is noted; kNoRoom: nowhere. From then on nothing is.
  std::size_t begin(const Call& call);
  // `call` with what came of it.
  void end(std::size_t place, const Call& call);

  std::vector<Call> read(int client) const;
  // When the first call began that found no room; LocalTime::max(): all are here.
  LocalTime full_since() const;

 private:
  enum class Stage : std::uint32_t { kEmpty, kBegun, kEnded };
  struct Entry {
    Call call;
    std::atomic<Stage> stage;
  };
  struct Page {
    std::atomic<std::uint64_t> count;
    std::atomic<LocalTime::rep> full_since;  // 0: not yet
  };
  static constexpr std::size_t kHead = 64;
  static_assert(sizeof(Page) <= kHead && std::atomic<Stage>::is_always_lock_free);

  Page& page() const { return *static_cast<Page*>(file_.memory()); }
  Entry& entry(std::size_t place) const {
    return reinterpret_cast<Entry*>(static_cast<std::byte*>(file_.memory()) + kHead)[place];
  }

  SharedFile file_;
};

}  // namespace simba::torture
