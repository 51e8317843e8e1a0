#include "stores/zookeeper/handle.h"

#include <cerrno>
#include <fstream>
#include <memory>
#include <mutex>
#include <system_error>

#include "simba/error.h"
#include "stores/zookeeper/nodes.h"

#if SIMBA_ZOOKEEPER_TLS
// Its header says so only where OpenSSL's are included before.
extern "C" zhandle_t* zookeeper_init_ssl(const char* host, const char* cert, watcher_fn watcher,
                                         int recv_timeout, const clientid_t* clientid,
                                         void* context, int flags);
#endif

namespace simba::zookeeper {
namespace {

// The driver writes to standard error unless it is given somewhere else.
void discard(const char*) {}

template <class Function>
void* pack(Function& function) {
  return new Function(std::move(function));
}

template <class Function>
std::unique_ptr<Function> unpack(const void* data) {
  return std::unique_ptr<Function>(static_cast<Function*>(const_cast<void*>(data)));
}

const Stat kNoStat{};

#if SIMBA_ZOOKEEPER_TLS
// The driver says of a file that it cannot read no more than that there is no connection.
void check_files(const Handle::Certificates& certificates) {
  for (const auto& [file, option] :
       {std::pair(&certificates.authority, "tls-ca"), std::pair(&certificates.own, "tls-cert"),
        std::pair(&certificates.key, "tls-key")}) {
    if (std::ifstream(*file)) continue;
    throw Error(Errc::kMisconfigured,
                std::string("zookeeper: the file of ") + option + " cannot be read");
  }
}
#endif

}  // namespace

// What a request for a transaction has to keep until it is answered.
struct Handle::Transaction {
  Transaction(std::size_t size, Checked whose)
      : operations(size), results(size), done(std::move(whose)) {}
  std::vector<int> codes() const {
    std::vector<int> all;
    all.reserve(results.size());
    for (const zoo_op_result_t& result : results) all.push_back(result.err);
    return all;
  }

  std::vector<zoo_op_t> operations;
  std::vector<zoo_op_result_t> results;
  Checked done;
};

Handle::Handle(const std::string& servers, const Certificates& certificates, milliseconds timeout,
               Events events)
    : events_(std::move(events)) {
  const std::unique_lock lock(guard_);
  zh_ = open(servers, certificates, static_cast<int>(timeout.count()));
  if (zh_) return;
  const int why = errno;
  throw Error(why == EINVAL ? Errc::kMisconfigured : Errc::kUnreachable,
              "zookeeper at " + servers +
                  ": the servers cannot be looked up: " + std::generic_category().message(why));
}

zhandle_t* Handle::open(const std::string& servers, const Certificates& certificates, int timeout) {
#if SIMBA_ZOOKEEPER_TLS
  if (!certificates.authority.empty()) {
    check_files(certificates);
    const std::string files =
        certificates.authority + ',' + certificates.own + ',' + certificates.key;
    zhandle_t* made = zookeeper_init_ssl(servers.c_str(), files.c_str(), on_event, timeout, nullptr,
                                         this, ZOO_NO_LOG_CLIENTENV);
    if (made) zoo_set_log_callback(made, discard);
    return made;
  }
#else
  static_cast<void>(certificates);  // check_options() lets none through
#endif
  return zookeeper_init2(servers.c_str(), on_event, timeout, nullptr, this, ZOO_NO_LOG_CLIENTENV,
                         discard);
}

Handle::~Handle() { close(); }

void Handle::close() {
  if (!process_.is_still()) return;  // forked: the threads, and the session, are the parent's
  zhandle_t* closing = nullptr;
  {
    const std::unique_lock lock(guard_);
    closing = std::exchange(zh_, nullptr);
  }
  if (closing) zookeeper_close(closing);
}

void Handle::on_event(zhandle_t*, int type, int state, const char* path, void* context) {
  const auto* self = static_cast<const Handle*>(context);
  if (type == ZOO_SESSION_EVENT) {
    self->events_.on_state(state);
  } else if (path) {
    self->events_.on_change(path);
  }
}

// `call` returns the driver's code; where it did not take the request, nobody else will answer.
template <class Call, class Fail>
void Handle::submit(Call call, Fail fail) {
  int code = ZINVALIDSTATE;
  {
    const std::shared_lock lock(guard_);
    if (zh_) code = call(zh_);
  }
  if (code != ZOK) fail(code);
}

void Handle::authenticate(const std::string& user, const std::string& password) {
  const std::string both = user + ':' + password;
  submit(
      [&](zhandle_t* zh) {
        return zoo_add_auth(zh, "digest", both.data(), static_cast<int>(both.size()), nullptr,
                            nullptr);
      },
      [](int) {});
}

std::int64_t Handle::session() const {
  const std::shared_lock lock(guard_);
  return zh_ ? zoo_client_id(zh_)->client_id : 0;
}

milliseconds Handle::timeout() const {
  const std::shared_lock lock(guard_);
  return milliseconds{zh_ ? zoo_recv_timeout(zh_) : 0};
}

void Handle::create(const std::string& path, const std::string& data, const ACL_vector& acl,
                    int mode, Created done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_acreate2(
            zh, path.c_str(), data.data(), static_cast<int>(data.size()), &acl, mode,
            [](int code, const char* made, const Stat* stat, const void* packed) {
              const auto call = unpack<Created>(packed);
              if (code == ZOK && !made) code = ZMARSHALLINGERROR;
              (*call)(code, made ? made : "", stat ? *stat : kNoStat);
            },
            context);
      },
      [&](int code) { (*unpack<Created>(context))(code, {}, kNoStat); });
}

void Handle::remove(const std::string& path, Done done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_adelete(
            zh, path.c_str(), -1,
            [](int code, const void* packed) { (*unpack<Done>(packed))(code); }, context);
      },
      [&](int code) { (*unpack<Done>(context))(code); });
}

void Handle::get(const std::string& path, Watching watching, Got done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_aget(
            zh, path.c_str(), watching == Watching::kYes ? 1 : 0,
            [](int code, const char* data, int length, const Stat* stat, const void* packed) {
              const auto call = unpack<Got>(packed);
              (*call)(code, read_data(data, length), stat ? *stat : kNoStat);
            },
            context);
      },
      [&](int code) { (*unpack<Got>(context))(code, {}, kNoStat); });
}

void Handle::children(const std::string& path, GotChildren done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_aget_children2(
            zh, path.c_str(), 0,
            [](int code, const String_vector* names, const Stat* stat, const void* packed) {
              const auto call = unpack<GotChildren>(packed);
              auto all = code == ZOK ? read_names(names) : std::vector<std::string>();
              if (!all) code = ZMARSHALLINGERROR;
              (*call)(code, std::move(all).value_or(std::vector<std::string>()),
                      stat ? *stat : kNoStat);
            },
            context);
      },
      [&](int code) { (*unpack<GotChildren>(context))(code, {}, kNoStat); });
}

void Handle::exists(const std::string& path, Done done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_aexists(
            zh, path.c_str(), 0,
            [](int code, const Stat*, const void* packed) { (*unpack<Done>(packed))(code); },
            context);
      },
      [&](int code) { (*unpack<Done>(context))(code); });
}

void Handle::sync(const std::string& path, Done done) {
  void* context = pack(done);
  submit(
      [&](zhandle_t* zh) {
        return zoo_async(
            zh, path.c_str(),
            [](int code, const char*, const void* packed) { (*unpack<Done>(packed))(code); },
            context);
      },
      [&](int code) { (*unpack<Done>(context))(code); });
}

void Handle::check(const std::vector<std::pair<std::string, int>>& versions, Checked done) {
  auto all = std::make_unique<Transaction>(versions.size(), std::move(done));
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const auto& [path, version] = versions[i];
    zoo_check_op_init(&all->operations[i], path.c_str(), version);
  }
  commit(std::move(all));
}

void Handle::set_while(const std::string& present, const std::string& path, const std::string& data,
                       Done done) {
  auto all = std::make_unique<Transaction>(
      2, [done = std::move(done)](int code, const std::vector<int>&) { done(code); });
  zoo_check_op_init(&all->operations[0], present.c_str(), -1);
  zoo_set_op_init(&all->operations[1], path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                  nullptr);
  commit(std::move(all));
}

// What its operations point to is read here, and not again.
void Handle::commit(std::unique_ptr<Transaction> transaction) {
  Transaction* context = transaction.release();
  submit(
      [&](zhandle_t* zh) {
        return zoo_amulti(
            zh, static_cast<int>(context->operations.size()), context->operations.data(),
            context->results.data(),
            [](int code, const void* packed) {
              const auto call = unpack<Transaction>(packed);
              call->done(code, call->codes());
            },
            context);
      },
      [&](int code) {
        const auto call = unpack<Transaction>(context);
        call->done(code, call->codes());
      });
}

}  // namespace simba::zookeeper
