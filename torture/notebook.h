#pragma once

#include <atomic>
#include <filesystem>
#include <vector>

#include "torture/history.h"
#include "torture/shared_file.h"

namespace simba::torture {

// The records of one client for one mutex, in a file that survives SIGKILL: a record counts once
// the number of them does. The client of the next process goes on after those of the last.
//
// Threads: one thread of one process writes; anybody reads.
class Notebook {
 public:
  static constexpr std::size_t kCapacity = 400'000;

  explicit Notebook(const std::filesystem::path& file);

  void add(const Record& record);
  std::vector<Record> read(std::size_t most = kCapacity) const;  // the latest
  bool is_full() const { return page().count.load() >= kCapacity; }

  // How the harness stops a client between its look at the clock and its write:
  //   harness kWanted -> client kInside (waits) -> harness stops it, lets it go on: kNone
  enum class Window : std::uint32_t { kNone, kWanted, kInside };
  Window window() const { return page().window.load(); }
  void set_window(Window window) { page().window.store(window); }
  bool enter_window() {
    Window wanted = Window::kWanted;
    return page().window.compare_exchange_strong(wanted, Window::kInside);
  }

 private:
  struct Page {
    std::atomic<std::uint64_t> count;
    std::atomic<Window> window;
  };
  static constexpr std::size_t kHead = 64;
  static_assert(sizeof(Page) <= kHead && std::atomic<std::uint64_t>::is_always_lock_free);

  Page& page() const { return *static_cast<Page*>(file_.memory()); }
  Record* records() const {
    return reinterpret_cast<Record*>(static_cast<std::byte*>(file_.memory()) + kHead);
  }

  SharedFile file_;
};

// What clients write to while they own a mutex. The fenced one refuses tokens smaller than the one
// it has seen; the other takes everything. A write is one atomic step: no lock to die with.
//
// Threads: any, of any process.
class Registers {
 public:
  explicit Registers(const std::filesystem::path& file);

  // Each returns the token that stood there before.
  Token write_unfenced(Token token) { return page().unfenced.exchange(token); }
  Token write_fenced(Token token);  // larger than `token`: refused
  Token unfenced() const { return page().unfenced.load(); }

 private:
  struct Page {
    std::atomic<Token> fenced, unfenced;
  };
  Page& page() const { return *static_cast<Page*>(file_.memory()); }

  SharedFile file_;
};

}  // namespace simba::torture
