#include "stores/zookeeper/places.h"

#include <algorithm>
#include <functional>

namespace simba::zookeeper {
namespace {

constexpr LocalTime kNever = LocalTime::max();
constexpr milliseconds kFresh{100};

std::string join(std::string_view mutex, std::string_view name) {
  std::string both;
  both.reserve(mutex.size() + 1 + name.size());
  return both.append(mutex).append(1, '/').append(name);
}

// No mutex has a '/' in its name.
std::size_t end_of_mutex(const Places::Key& key) { return key.find('/'); }

}  // namespace

std::string_view Places::Entry::mutex() const {
  return std::string_view(*key).substr(0, end_of_mutex(*key));
}

Place Places::Entry::place() const {
  return {std::string(mutex()), key->substr(end_of_mutex(*key) + 1), name, token, session};
}

std::size_t Places::NodeHash::operator()(const Node& node) const {
  const std::hash<std::string_view> hash;
  return hash(node.name) * 31 + hash(node.mutex);
}

std::size_t Places::NodeHash::operator()(const Entry* entry) const {
  return (*this)(Node{entry->mutex(), entry->name});
}

bool Places::NodeEqual::operator()(const Node& node, const Entry* entry) const {
  return node.name == entry->name && node.mutex == entry->mutex();
}

Places::Key Places::key(std::string_view mutex, std::string_view wire_id) {
  return join(mutex, wire_id);
}

Places::Entry* Places::get(std::string_view mutex, std::string_view wire_id) {
  const auto it = entries_.find(key(mutex, wire_id));
  return it == entries_.end() ? nullptr : &it->second;
}

const Places::Entry* Places::get(std::string_view mutex, std::string_view wire_id) const {
  const auto it = entries_.find(key(mutex, wire_id));
  return it == entries_.end() ? nullptr : &it->second;
}

Places::Entry* Places::at_node(std::string_view mutex, std::string_view node) const {
  const auto it = nodes_.find(Node{mutex, node});
  return it == nodes_.end() ? nullptr : *it;
}

bool Places::runs(const Entry* entry, Token token, LocalTime now) const {
  return entry && entry->granted && !entry->evicted && !entry->leaving &&
         entry->term.expires >= now && (token == 0 || entry->token == token);
}

// --- when they end
// --------------------------------------------------------------------------------

void Places::move_end(Entry& entry, LocalTime ends) {
  if (entry.ends == ends) return;
  if (entry.ends != kNever) by_end_.erase({entry.ends, &entry});
  entry.ends = ends;
  if (ends != kNever) by_end_.emplace(ends, &entry);
}

// An owner has until its term ends. A waiter has a lease after it last asked, or for ever while it
// is cared for.
void Places::set_end(Entry& entry) {
  if (entry.granted || entry.leaving) {
    move_end(entry, entry.term.expires);
  } else if (entry.evicted) {
    move_end(entry, LocalTime{});
  } else {
    move_end(entry, entry.watches > 0 ? kNever : entry.asked + entry.lease);
  }
}

std::vector<Place> Places::take_expired(LocalTime now, LocalTime again) {
  const std::lock_guard lock(guard_);
  std::vector<Place> over;
  while (!by_end_.empty() && by_end_.begin()->first < now) {
    Entry& entry = *by_end_.begin()->second;
    if (entry.renewals == 0) {
      entry.leaving = true;
      over.push_back(entry.place());
      move_end(entry, again);
    } else {
      // Its answer comes within a call's deadline, and then this is looked at again.
      move_end(entry, now + milliseconds{5});
    }
  }
  return over;
}

LocalTime Places::next_due() const {
  const std::lock_guard lock(guard_);
  return by_end_.empty() ? next_lost_ : std::min(next_lost_, by_end_.begin()->first);
}

// --- coming and going
// -----------------------------------------------------------------------------

Places::Doubt Places::begin_join(std::string_view mutex, std::string_view wire_id,
                                 LocalTime until) {
  const std::lock_guard lock(guard_);
  const auto [it, is_new] =
      doubts_.try_emplace(key(mutex, wire_id), Doubtful{Doubt::kUnderWay, until});
  if (is_new) return Doubt::kNone;
  if (it->second.doubt == Doubt::kAmbiguous) it->second.until = until;
  return it->second.doubt;
}

bool Places::set_doubt(std::string_view mutex, std::string_view wire_id, Doubt doubt,
                       LocalTime until) {
  const std::lock_guard lock(guard_);
  const auto [it, is_new] = doubts_.try_emplace(key(mutex, wire_id));
  if (it->second.doubt == Doubt::kGivenUp) return false;
  it->second = {doubt, until};
  if (doubt == Doubt::kNone) doubts_.erase(it);
  if (doubt == Doubt::kAmbiguous) next_lost_ = std::min(next_lost_, until);
  return true;
}

void Places::end_ambiguity(std::string_view mutex, std::string_view wire_id) {
  const std::lock_guard lock(guard_);
  const auto it = doubts_.find(key(mutex, wire_id));
  // One that is under way by now was not looked for.
  if (it != doubts_.end() && it->second.doubt != Doubt::kUnderWay) doubts_.erase(it);
}

std::vector<Lost> Places::take_lost(LocalTime now) {
  const std::lock_guard lock(guard_);
  std::vector<Lost> lost;
  if (now < next_lost_) return lost;
  next_lost_ = kNever;
  for (auto& [id, doubtful] : doubts_) {
    if (doubtful.doubt == Doubt::kUnderWay) continue;
    if (doubtful.until <= now) {
      doubtful = {Doubt::kGivenUp, kNever};
      const std::size_t slash = end_of_mutex(id);
      lost.push_back({id.substr(0, slash), id.substr(slash + 1)});
    }
    next_lost_ = std::min(next_lost_, doubtful.until);
  }
  return lost;
}

void Places::not_found_out(const Lost& lost, LocalTime again) {
  const std::lock_guard lock(guard_);
  const auto it = doubts_.find(key(lost.mutex, lost.wire_id));
  if (it == doubts_.end() || it->second.doubt != Doubt::kGivenUp) return;
  it->second.until = again;
  next_lost_ = std::min(next_lost_, again);
}

void Places::add(const Place& place, milliseconds lease, LocalTime now) {
  const std::lock_guard lock(guard_);
  const auto [it, is_new] = entries_.try_emplace(key(place.mutex, place.wire_id));
  Entry& entry = it->second;
  const auto doubt = doubts_.extract(it->first);
  unsigned watches = entry.watches;
  if (is_new) {
    const auto early = early_.extract(it->first);
    if (!early.empty()) watches = early.mapped();
  } else {
    unwatch(entry);
    move_end(entry, kNever);
    nodes_.erase(&entry);
    entry = {};
  }
  entry.key = &it->first;
  entry.name = place.name;
  entry.token = place.token;
  entry.session = place.session;
  entry.lease = lease;
  entry.asked = now;
  entry.watches = watches;
  // Found by a take while somebody is about to delete it.
  entry.leaving = !doubt.empty() && doubt.mapped().doubt == Doubt::kGivenUp;
  if (entry.leaving) entry.term.expires = now + lease;
  nodes_.insert(&entry);
  set_end(entry);
}

void Places::erase(std::string_view mutex, std::string_view wire_id) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(key(mutex, wire_id));
  doubts_.erase(key(mutex, wire_id));
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  unwatch(entry);
  move_end(entry, kNever);
  nodes_.erase(&entry);
  if (entry.watches > 0) early_[it->first] = entry.watches;
  entries_.erase(it);
}

std::vector<Places::Key> Places::clear() {
  const std::lock_guard lock(guard_);
  std::vector<Key> all;
  all.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) {
    all.push_back(id);
    if (entry.watches > 0) early_[id] = entry.watches;
  }
  nodes_.clear();
  by_end_.clear();
  watched_.clear();
  watched_bytes_ = 0;
  doubts_.clear();
  next_lost_ = kNever;
  entries_.clear();
  return all;
}

void Places::leave(std::string_view mutex, std::string_view wire_id) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (!entry || entry->leaving) return;
  entry->leaving = true;
  // Should the deletion fail and nobody repeat it, it is repeated when its time is over.
  if (!entry->granted) entry->term.expires = entry->asked + entry->lease;
  set_end(*entry);
}

// --- what is known of them
// ------------------------------------------------------------------------

std::optional<Place> Places::find(std::string_view mutex, std::string_view wire_id) const {
  const std::lock_guard lock(guard_);
  const Entry* entry = get(mutex, wire_id);
  return entry ? std::optional(entry->place()) : std::nullopt;
}

bool Places::is_empty() const {
  const std::lock_guard lock(guard_);
  return entries_.empty();
}

std::optional<std::string> Places::any_node() const {
  const std::lock_guard lock(guard_);
  if (nodes_.empty()) return std::nullopt;
  const Entry& entry = **nodes_.begin();
  return join(entry.mutex(), entry.name);
}

std::optional<std::pair<Place, Term>> Places::at(std::string_view mutex,
                                                 std::string_view node) const {
  const std::lock_guard lock(guard_);
  const Entry* entry = at_node(mutex, node);
  if (!entry) return std::nullopt;
  Term term = entry->term;
  if (!entry->granted) {
    term.acquired = entry->asked;
    term.expires = term.ttl_end = entry->asked + entry->lease;
  }
  return std::pair(entry->place(), term);
}

// --- terms
// ----------------------------------------------------------------------------------------

bool Places::keep(std::string_view mutex, std::string_view wire_id, milliseconds lease,
                  LocalTime now) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  const bool is_over = entry && entry->granted && entry->term.expires < now;
  if (!entry || is_over || entry->leaving || entry->evicted) return false;
  entry->lease = lease;
  entry->asked = now;
  set_end(*entry);
  return true;
}

bool Places::grant(std::string_view mutex, std::string_view wire_id, const Term& term) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (!entry || entry->leaving || entry->evicted) return false;
  const LocalTime acquired = entry->granted ? entry->term.acquired : term.acquired;
  entry->term = term;
  entry->term.acquired = acquired;
  entry->granted = true;
  unwatch(*entry);
  set_end(*entry);
  return true;
}

std::optional<Term> Places::term(std::string_view mutex, std::string_view wire_id, Token token,
                                 LocalTime now) const {
  const std::lock_guard lock(guard_);
  const Entry* entry = get(mutex, wire_id);
  return runs(entry, token, now) ? std::optional(entry->term) : std::nullopt;
}

bool Places::begin_renewal(std::string_view mutex, std::string_view wire_id, Token token,
                           LocalTime now) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (!runs(entry, token, now)) return false;
  ++entry->renewals;
  return true;
}

void Places::end_renewal(std::string_view mutex, std::string_view wire_id) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (entry && entry->renewals > 0) --entry->renewals;
}

void Places::update_container(std::string_view mutex, std::string_view wire_id, int version) {
  const std::lock_guard lock(guard_);
  if (Entry* entry = get(mutex, wire_id)) entry->term.container_version = version;
}

void Places::evict(std::string_view mutex, std::string_view node) {
  const std::lock_guard lock(guard_);
  Entry* entry = at_node(mutex, node);
  if (!entry || entry->evicted) return;
  entry->evicted = true;
  if (!entry->leaving) set_end(*entry);
}

// --- hints
// ----------------------------------------------------------------------------------------

void Places::add_watch(const Key& id) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) {
    ++early_[id];
    return;
  }
  ++it->second.watches;
  set_end(it->second);
}

void Places::drop_watch(const Key& id, LocalTime now) {
  const std::lock_guard lock(guard_);
  const auto early = early_.find(id);
  if (early != early_.end() && --early->second == 0) early_.erase(early);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (entry.watches > 0) --entry.watches;
  if (entry.watches > 0 || entry.leaving) return;
  entry.asked = now;
  set_end(entry);
}

// The driver goes on watching the node until it changes.
void Places::unwatch(Entry& entry) {
  entry.deaf = false;
  if (Watched::value_type* watched = std::exchange(entry.watched, nullptr)) {
    watched->second = nullptr;
  }
}

bool Places::has_room(const std::string& node) {
  constexpr std::size_t kLength = 4;  // in front of each path, on the wire
  if (watched_.contains(node)) return true;
  const std::size_t bytes = overhead_ + node.size() + kLength;
  if (watched_bytes_ + bytes > most_watched_) return false;
  watched_bytes_ += bytes;
  return true;
}

Places::Hearing Places::watch_node(std::string_view mutex, std::string_view wire_id,
                                   std::string_view node) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  std::string path = join(mutex, node);
  if (!entry || (entry->watched && entry->watched->first == path)) return Hearing::kAlready;
  unwatch(*entry);
  entry->deaf = !has_room(path);
  if (entry->deaf) return Hearing::kFull;
  const auto [from, to] = watched_.equal_range(path);
  const auto given_up = std::find_if(from, to, [](const auto& each) { return !each.second; });
  if (given_up != to) {
    given_up->second = entry;
    entry->watched = &*given_up;
  } else {
    entry->watched = &*watched_.emplace(std::move(path), entry);
  }
  entry->missed = false;
  return Hearing::kNew;
}

Places::Hearing Places::watch_leader(std::string_view mutex, std::string_view node) {
  const std::lock_guard lock(guard_);
  std::string path = join(mutex, node);
  if (watched_.contains(path)) return Hearing::kAlready;
  if (!has_room(path)) return Hearing::kFull;
  watched_.emplace(std::move(path), nullptr);
  return Hearing::kNew;
}

void Places::forget_node(std::string_view mutex, std::string_view wire_id) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (!entry || !entry->watched) return;
  const std::string path = entry->watched->first;
  unwatch(*entry);
  const auto [from, to] = watched_.equal_range(path);
  if (std::any_of(from, to, [](const auto& each) { return each.second != nullptr; })) return;
  watched_.erase(from, to);
  watched_bytes_ -= overhead_ + path.size() + 4;
}

bool Places::hears(const Key& id) const {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(id);
  return it == entries_.end() || !it->second.deaf;
}

std::vector<Places::Key> Places::changed(std::string_view mutex, std::string_view node) {
  const std::lock_guard lock(guard_);
  const std::string path = join(mutex, node);
  std::vector<Key> waiters;
  const auto [from, to] = watched_.equal_range(path);
  if (from == to) return waiters;
  for (auto it = from; it != to; ++it) {
    if (!it->second) continue;
    Entry& entry = *it->second;
    entry.watched = nullptr;
    entry.missed = entry.watches == 0;
    waiters.push_back(*entry.key);
  }
  watched_.erase(from, to);
  watched_bytes_ -= overhead_ + path.size() + 4;
  return waiters;
}

bool Places::take_missed(const Key& id) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(id);
  return it != entries_.end() && std::exchange(it->second.missed, false);
}

void Places::put_line(const Key& id, Line line, LocalTime now) {
  const std::lock_guard lock(guard_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  it->second.line = std::make_unique<std::pair<LocalTime, Line>>(now, std::move(line));
}

std::optional<Line> Places::take_line(std::string_view mutex, std::string_view wire_id,
                                      LocalTime now) {
  const std::lock_guard lock(guard_);
  Entry* entry = get(mutex, wire_id);
  if (!entry || !entry->line) return std::nullopt;
  const auto known = std::exchange(entry->line, nullptr);
  return now - known->first <= kFresh ? std::optional(std::move(known->second)) : std::nullopt;
}

}  // namespace simba::zookeeper
