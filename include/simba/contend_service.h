#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "simba/client.h"
#include "simba/contender_id.h"
#include "simba/export.h"
#include "simba/mutex_state.h"

namespace simba::inline v0 {

//   start()            first answer            stop()            released
// kInitial ---> kStarting ---> kRunning ---> kStopping ---> kInitial
enum class Status { kInitial, kStarting, kRunning, kStopping };

SIMBA_EXPORT const char* to_string(Status) noexcept;
inline bool is_active(Status status) {
  return status == Status::kStarting || status == Status::kRunning;
}

// Wants to know who owns a mutex. Notices come one at a time, in order, each with its own before
// and after; an exception that leaves one is logged and changes nothing.
class SIMBA_EXPORT MutexRetriever {
 public:
  virtual ~MutexRetriever() = default;
  virtual const std::string& mutex() const = 0;
  virtual void notify_owner(const MutexState& state) = 0;
};

// Wants to own a mutex.
//
// on_acquired may work as long as it likes: until state.term.lost() is requested. on_released comes
// when it has returned, and the store is told only when that has returned too, so that the next
// owner's work does not overlap this one's: unless the term was lost and the work goes on past the
// end of its lease. The two strictly alternate; a term that ended before its on_acquired could
// begin has neither.
class SIMBA_EXPORT MutexContender : public MutexRetriever {
 public:
  explicit MutexContender(std::string mutex,
                          std::string contender_id = ContenderIdGenerator::host().generate());

  const std::string& mutex() const override { return mutex_; }
  const std::string& contender_id() const { return contender_id_; }
  void notify_owner(const MutexState& state) override;

  virtual void on_acquired(const MutexState& state);
  virtual void on_released(const MutexState& state);

 private:
  const std::string mutex_;
  const std::string contender_id_;
};

// The same from functions; either may be empty.
struct ContenderCallbacks {
  std::function<void(const MutexState&)> on_acquired;
  std::function<void(const MutexState&)> on_released;
};
SIMBA_EXPORT std::shared_ptr<MutexContender> make_contender(
    std::string mutex, ContenderCallbacks callbacks,
    std::string contender_id = ContenderIdGenerator::host().generate());

// Watches the owner of a mutex without contending for it. What it knows may be late: state is what
// the store said last.
//
// Threads: any.
// Errors: start() and stop() in the wrong state throw Error (kMisuse) that names the state.
class SIMBA_EXPORT MutexRetrievalService {
 public:
  MutexRetrievalService(const Client& client, std::shared_ptr<MutexRetriever> retriever,
                        const ContendOptions& options);
  // Stops; never throws.
  virtual ~MutexRetrievalService();
  MutexRetrievalService(const MutexRetrievalService&) = delete;
  MutexRetrievalService& operator=(const MutexRetrievalService&) = delete;

  // Returns at once; kStarting until the store's first answer.
  void start();
  // Legal while active. Returns when the mutex has been released, at the latest when the grace and
  // one call deadline have passed: what the store has not confirmed by then is released in the
  // background. From inside a callback of this service at once: on_released follows when the
  // callback has returned.
  void stop();
  // The same with another grace; false when a callback outlived it. Where that was one of the term,
  // nothing was released: the lease runs out.
  bool stop(milliseconds grace);
  // The same with an error code instead of an exception, and false then.
  bool stop(std::error_code& error);
  bool stop(milliseconds grace, std::error_code& error);
  // stop() if it is active.
  void close() noexcept;

  Status status() const;
  bool running() const { return is_active(status()); }
  const std::shared_ptr<MutexRetriever>& retriever() const;
  const std::string& mutex() const;
  const ContendOptions& options() const;
  MutexState mutex_state() const;
  MutexOwner before_owner() const { return mutex_state().before; }
  MutexOwner after_owner() const { return mutex_state().after; }
  bool has_owner() const { return !after_owner().id.empty(); }

 protected:
  struct State;
  explicit MutexRetrievalService(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
};

// Leadership: contends for a mutex, renews it while it owns it, and contends again when it lost it.
class SIMBA_EXPORT MutexContendService : public MutexRetrievalService {
 public:
  MutexContendService(const Client& client, std::shared_ptr<MutexContender> contender);
  MutexContendService(const Client& client, std::shared_ptr<MutexContender> contender,
                      const ContendOptions& options);

  const std::shared_ptr<MutexContender>& contender() const { return contender_; }
  const std::string& contender_id() const { return contender_->contender_id(); }
  // Both read the clock at every question.
  bool is_owner() const { return term().is_owner(); }
  bool is_in_ttl() const { return term().is_in_ttl(); }
  Term term() const;  // the running or the last one

 private:
  const std::shared_ptr<MutexContender> contender_;
};

class SIMBA_EXPORT MutexContendServiceFactory {
 public:
  virtual ~MutexContendServiceFactory() = default;
  virtual std::unique_ptr<MutexContendService> create_mutex_contend_service(
      std::shared_ptr<MutexContender> contender) = 0;
};

class SIMBA_EXPORT MutexRetrievalServiceFactory {
 public:
  virtual ~MutexRetrievalServiceFactory() = default;
  virtual std::unique_ptr<MutexRetrievalService> create_mutex_retrieval_service(
      std::shared_ptr<MutexRetriever> retriever) = 0;
};

// Factories on a client; both keep it alive.
SIMBA_EXPORT std::unique_ptr<MutexContendServiceFactory> make_contend_service_factory(
    const Client& client, const ContendOptions& options);
SIMBA_EXPORT std::unique_ptr<MutexRetrievalServiceFactory> make_retrieval_service_factory(
    const Client& client, const ContendOptions& options);

}  // namespace simba::inline v0
