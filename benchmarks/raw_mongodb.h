#pragma once

#include <cstdint>
#include <string>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): libmongoc's
struct _mongoc_client_t;
struct _mongoc_collection_t;
struct _mongoc_change_stream_t;
// NOLINTEND(bugprone-reserved-identifier)

namespace simba::bench {

// The driver alone, doing what a call of the MongoDB store has to do, and nothing besides: the same
// documents, the same conditions, the same write concern. Trouble ends the program.
//
// Threads: one at a time.
class RawMongodb {
 public:
  RawMongodb(const std::string& uri, const std::string& collection);
  RawMongodb(const RawMongodb&) = delete;
  RawMongodb& operator=(const RawMongodb&) = delete;
  ~RawMongodb();

  void create(const std::string& mutex);  // unowned
  // The token; 0 when somebody else has it.
  std::int64_t take(const std::string& mutex, const std::string& owner);
  bool release(const std::string& mutex, const std::string& owner, std::int64_t token);
  // All of them in one update; how many matched.
  std::int64_t renew(const std::vector<std::string>& mutexes,
                     const std::vector<std::string>& owners);

  void listen();
  void wait_for_release();  // of any mutex of the collection

 private:
  _mongoc_client_t* client_;
  _mongoc_collection_t* stream_of_ = nullptr;
  _mongoc_change_stream_t* stream_ = nullptr;
  const std::string collection_;
};

}  // namespace simba::bench
