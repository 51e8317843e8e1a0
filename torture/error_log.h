#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "simba/error.h"
#include "simba/time.h"
#include "torture/shared_file.h"

namespace simba::torture {

inline constexpr std::size_t kErrcs = static_cast<std::size_t>(Errc::kReplaced) + 1;
using ErrorCounts = std::array<std::uint64_t, kErrcs>;  // by Errc

// What trying again does not help with.
struct Trouble {
  enum class Origin : std::uint32_t {
    kCall,    // the store's, of a call or of one claim in it
    kThrown,  // the library's, out of lock()
    kLine,    // a line of the library's log, of level kError
  };
  LocalTime at{};
  Origin origin = Origin::kCall;
  Errc errc{};  // of a line none
  int client = 0;
  std::string text;
};

// The errors that one client met, in a file that survives SIGKILL: those of calls are counted, and
// the first that trying again does not help with are kept. The next process of the client goes on
// behind the last.
//
// Threads: any of one process write; anybody reads.
class ErrorLog {
 public:
  static constexpr std::size_t kCapacity = 1'024;
  static constexpr std::size_t kLongestText = 480;  // bytes; what is longer is cut

  explicit ErrorLog(const std::filesystem::path& file);

  void note_call(const Error& error);
  void note_thrown(const Error& error);
  void note_line(std::string_view line);

  ErrorCounts counts() const;  // of calls
  std::vector<Trouble> read(int client) const;

 private:
  struct Entry {
    LocalTime at;
    Trouble::Origin origin;
    Errc errc;
    std::array<char, kLongestText> text;
    std::uint32_t length;
    std::atomic<bool> is_whole;
  };
  struct Page {
    std::array<std::atomic<std::uint64_t>, kErrcs> counts;
    std::atomic<std::uint64_t> entries;
  };
  static constexpr std::size_t kHead = 128;
  static_assert(sizeof(Page) <= kHead && std::atomic<bool>::is_always_lock_free);

  void keep(Trouble::Origin origin, Errc errc, std::string_view text);
  Page& page() const { return *static_cast<Page*>(file_.memory()); }
  Entry& entry(std::size_t place) const {
    return reinterpret_cast<Entry*>(static_cast<std::byte*>(file_.memory()) + kHead)[place];
  }

  SharedFile file_;
};

}  // namespace simba::torture
