#include "torture/crowd.h"

#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "torture/recording_store.h"
#include "torture/worker.h"

namespace simba::torture {

using namespace std::chrono_literals;

namespace {

// For a last release on a busy machine, whatever the store is doing: who takes longer hangs.
constexpr std::chrono::milliseconds kPatience = 60s;

std::string way_of(const servers::Process& process) {
  const std::optional<int> status = process.status();
  if (!status) return "for reasons unknown";
  return WIFSIGNALED(*status) ? "of signal " + std::to_string(WTERMSIG(*status))
                              : "with exit code " + std::to_string(WEXITSTATUS(*status));
}

bool died_of(const servers::Process& process, int signal) {
  const int status = process.status().value_or(0);
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

// Also of the signal itself: one that has just been started does not heed it yet.
bool ended_well(const servers::Process& process) {
  return process.status() == 0 || died_of(process, SIGTERM);
}

}  // namespace

Crowd::Crowd(const Plan& plan, const Target& target) : plan_(plan), target_(target) {
  for (int client = 0; client < plan.clients; ++client) {
    Member member;
    if (target.network) {
      member.relay = std::make_unique<servers::Relay>(target.network->host, target.network->port);
    }
    for (int mutex = 0; mutex < plan.mutexes; ++mutex) {
      member.notebooks.emplace_back(plan.notebook(client, mutex));
    }
    member.calls = std::make_unique<CallLog>(plan.calls(client));
    member.errors = std::make_unique<ErrorLog>(plan.errors(client));
    members_.push_back(std::move(member));
  }
}

void Crowd::start(int client) {
  Member& member = members_.at(index(client));
  for (Notebook& notebook : member.notebooks) {  // the last process may have died inside
    if (notebook.window() == Notebook::Window::kInside)
      notebook.set_window(Notebook::Window::kNone);
  }
  const std::string url = member.relay ? target_.network->url(member.relay->port()) : target_.url;
  servers::Command command;
  command.words = {"/proc/self/exe", kWorkerWord, plan_.directory.string(), std::to_string(client)};
  command.directory = plan_.directory;
  command.log = plan_.log(client);
  command.environment = {std::string(kWorkerUrl) + '=' + url};
  // What a thread has freed and keeps for itself would count as in use, for hundreds of threads.
  if (plan_.survivors > 0)
    command.environment.emplace_back("GLIBC_TUNABLES=glibc.malloc.tcache_count=0");
  member.process = std::make_unique<servers::Process>(command);
}

void Crowd::kill(int client) {
  const auto process = std::move(members_.at(index(client)).process);
  if (!process) return;
  process->kill();
  if (!died_of(*process, SIGKILL))
    throw Ended(told(client, "ended by itself, " + way_of(*process)));
}

void Crowd::stop(int client) {
  if (const auto& process = members_.at(index(client)).process) process->pause();
}

void Crowd::go_on(int client) {
  if (const auto& process = members_.at(index(client)).process) process->signal(SIGCONT);
}

pid_t Crowd::pid(int client) const {
  const auto& process = members_.at(index(client)).process;
  return process ? process->pid() : -1;
}

void Crowd::check(int client) {
  const auto& process = members_.at(index(client)).process;
  if (process && !process->is_running())
    throw Ended(told(client, "ended by itself, " + way_of(*process)));
}

std::string Crowd::told(int client, const std::string& what) const {
  constexpr std::size_t kMost = 2'000;
  std::ifstream file(plan_.log(client));
  std::string log{std::istreambuf_iterator<char>(file), {}};
  log.erase(0, log.size() - std::min(log.size(), kMost));
  while (log.ends_with('\n')) log.pop_back();
  return "client " + std::to_string(client) + ' ' + what + "; it said last: " + log;
}

std::vector<std::string> Crowd::end() {
  std::vector<std::string> troubles;
  for (const Member& member : members_) {
    if (member.process) member.process->signal(SIGTERM);
  }
  for (int client = 0; client < plan_.clients; ++client) {
    const auto process = std::move(members_.at(index(client)).process);
    if (!process) continue;
    if (!process->stop(SIGTERM, kPatience)) {
      troubles.push_back(told(client, "does not end, and was killed"));
    } else if (!ended_well(*process)) {
      troubles.push_back(told(client, "was to end, and ended " + way_of(*process)));
    }
  }
  return troubles;
}

void Crowd::mend() {
  for (const Member& member : members_) {
    if (!member.relay) continue;
    member.relay->mend();
    member.relay->delay(0ms);
  }
}

std::vector<History> Crowd::histories(std::size_t most) const {
  std::vector<History> all;
  for (int mutex = 0; mutex < plan_.mutexes; ++mutex) {
    History history{plan_.mutex(mutex), {}};
    for (int client = 0; client < plan_.clients; ++client) {
      history.lanes.push_back(
          {client, members_.at(index(client)).notebooks.at(index(mutex)).read(most)});
    }
    all.push_back(std::move(history));
  }
  return all;
}

std::vector<CallHistory> Crowd::calls() const {
  // Whoever is read last may have been answered by what those before have done since.
  const LocalTime now = BootClock::now();
  LocalTime full_since = LocalTime::max();
  std::vector<CallHistory> all;
  std::map<std::uint64_t, std::size_t> places;
  for (int mutex = 0; mutex < plan_.mutexes; ++mutex) {
    places[hash_of(plan_.mutex(mutex))] = all.size();
    all.push_back({plan_.mutex(mutex), {}, now, false});
  }
  for (int client = 0; client < plan_.clients; ++client) {
    const CallLog& log = *members_.at(index(client)).calls;
    full_since = std::min(full_since, log.full_since());
    for (const Call& call : log.read(client)) {
      const auto place = places.find(call.mutex);
      if (place != places.end()) all[place->second].calls.push_back(call);
    }
  }
  for (CallHistory& history : all) {
    history.cut = std::min(now, full_since);
    history.is_cut = full_since < now;
  }
  return all;
}

ErrorHistory Crowd::errors() const {
  ErrorHistory all;
  for (int client = 0; client < plan_.clients; ++client) {
    const ErrorLog& log = *members_.at(index(client)).errors;
    const ErrorCounts counts = log.counts();
    for (std::size_t errc = 0; errc < kErrcs; ++errc) all.counts.at(errc) += counts.at(errc);
    for (Trouble& trouble : log.read(client)) all.troubles.push_back(std::move(trouble));
  }
  std::stable_sort(all.troubles.begin(), all.troubles.end(),
                   [](const Trouble& a, const Trouble& b) { return a.at < b.at; });
  return all;
}

bool Crowd::is_overfull() const {
  for (const Member& member : members_) {
    for (const Notebook& notebook : member.notebooks) {
      if (notebook.is_full()) return true;
    }
  }
  return false;
}

}  // namespace simba::torture
