#include "stores/sqlite/database.h"

#include <utility>

#include "stores/sqlite/schema.h"

namespace simba::sqlite {
namespace {

constexpr std::size_t kMaxIdle = 4;

}  // namespace

Database::Session::Session(Database& database, LocalTime deadline)
    : connection_(database.location_, database.synchronous_, database.host_, deadline),
      table_(connection_) {}

Database::Session::~Session() = default;

Database::Database(const std::filesystem::path& file, SqliteOptions::Synchronous synchronous,
                   const Host& host, LocalTime deadline)
    : location_(locate(file)),
      synchronous_(synchronous),
      host_(host),
      id_(file_id(location_.given)),
      bells_(location_.bells(), location_.writable ? Bells::Make::kYes : Bells::Make::kNo),
      open_(id_, [this] { return let_go(); }) {
  std::unique_ptr<Session> first = open_session(deadline);
  idle_.reserve(kMaxIdle);
  idle_.push_back(std::move(first));
}

Database::~Database() = default;

std::unique_ptr<Database::Session> Database::open_session(LocalTime deadline) {
  std::unique_ptr<Session> session(new Session(*this, deadline));
  prepare_schema(session->connection());
  session->connection().guard().remember();  // now the log and the shared memory are there too
  const FileGuard& guard = session->connection().guard();
  if (guard.database() != id_) fail_replaced(" was replaced while it was opened");
  if (location_.writable && !guard.shares_memory()) {
    give_up();
    fail_replaced("-shm was deleted while this process had it open");
  }
  return session;
}

void Database::fail_replaced(const char* how) const {
  throw Error(Errc::kReplaced, "sqlite: " + location_.given.string() + how);
}

std::shared_ptr<Database::Sessions> Database::let_go() {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Sessions>(std::exchange(idle_, {}));
}

void Database::check(Access access) const {
  if (access == Access::kRead || location_.writable) return;
  throw Error(Errc::kDenied, "sqlite: this user can read but not write " +
                                 location_.given.string() + "; it can observe, not contend");
}

Database::Borrowed Database::borrow(Access access, LocalTime deadline) {
  if (open_.is_given_up()) fail_replaced(" was deleted or replaced");
  std::unique_lock lock(mutex_);
  if (access != Access::kRead) wait_to_write(lock, access, deadline);
  Borrowed session(nullptr, GiveBack{this, access});
  if (!idle_.empty()) {
    session.reset(idle_.back().release());
    idle_.pop_back();
    lock.unlock();
    session->connection().start(deadline);
    return session;
  }
  lock.unlock();
  try {
    session.reset(open_session(deadline).release());
  } catch (...) {
    give_back(nullptr, access);
    throw;
  }
  return session;
}

bool Database::is_unchanged(Connection& connection) {
  FileGuard& guard = connection.guard();
  if (!guard.is_unchanged(connection.now())) return false;
  if (guard.has_compared()) bells_.look_again();
  return true;
}

void Database::wait_to_write(std::unique_lock<std::mutex>& lock, Access access,
                             LocalTime deadline) {
  const bool keeps = access == Access::kKeep;
  const auto is_next = [&] { return !writing_ && (keeps || waiting_to_keep_ == 0); };
  if (!is_next()) {
    int& waiting = keeps ? waiting_to_keep_ : waiting_to_take_;
    ++waiting;
    const bool mine =
        (keeps ? may_keep_ : may_take_).wait_for(lock, deadline - local_now(), is_next);
    --waiting;
    if (!mine) {
      throw Error(Errc::kTimeout, "sqlite: other threads of this process wrote to " +
                                      location_.given.string() + " until the deadline");
    }
  }
  writing_ = true;
}

void Database::give_back(Session* session, Access access) {
  std::unique_ptr<Session> unwanted(session);
  const std::lock_guard lock(mutex_);
  if (access != Access::kRead) {
    writing_ = false;
    if (waiting_to_keep_ > 0) {
      may_keep_.notify_one();
    } else if (waiting_to_take_ > 0) {
      may_take_.notify_one();
    }
  }
  if (session != nullptr && !session->connection().is_broken() && !open_.is_given_up() &&
      idle_.size() < kMaxIdle) {
    idle_.push_back(std::move(unwanted));
  }
}

}  // namespace simba::sqlite
