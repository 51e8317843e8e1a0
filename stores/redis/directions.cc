#include "stores/redis/directions.h"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <set>

#include "simba/error.h"
#include "stores/redis/names.h"

namespace simba::redis {
namespace {

using Kind = Reply::Kind;

// Names of hosts have 253 characters at most.
constexpr std::size_t kLongestHost = 255;

bool is_host(std::string_view host) {
  const auto is_fit = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  return !host.empty() && host.size() <= kLongestHost &&
         std::all_of(host.begin(), host.end(), is_fit);
}

std::optional<std::uint16_t> port_of(std::int64_t number) {
  if (number < 1 || number > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

std::optional<std::uint16_t> port_of(std::string_view digits) {
  std::int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc{} && at == end ? port_of(number) : std::nullopt;
}

// {host, port, ...}; a host that is nil, or empty in older versions, is the one that was asked.
std::optional<Address> master_of(const Reply& node, const Address& asked) {
  const auto& items = node.items;
  if (items.size() < 2 || items[1].kind != Kind::kNumber) return std::nullopt;
  const auto port = port_of(items[1].number);
  if (!port || (items[0].kind != Kind::kText && items[0].kind != Kind::kNil)) return std::nullopt;
  if (items[0].text.empty()) return Address{asked.host, *port};
  if (!is_host(items[0].text)) return std::nullopt;
  return Address{items[0].text, *port};
}

// {from, to, master, replicas...}
std::optional<SlotRange> range_of(const Reply& range, const Address& asked) {
  const auto& items = range.items;
  if (items.size() < 3) return std::nullopt;
  if (items[0].kind != Kind::kNumber || items[1].kind != Kind::kNumber) return std::nullopt;
  const std::int64_t from = items[0].number, to = items[1].number;
  if (from < 0 || to < from || to >= kSlots) return std::nullopt;
  const auto master = master_of(items[2], asked);
  if (!master) return std::nullopt;
  return SlotRange{static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to), *master};
}

}  // namespace

std::vector<SlotRange> read_slots(const Reply& reply, const Address& asked,
                                  const std::string& where) {
  const auto refuse = [&](const char* why) {
    throw Error(Errc::kCorrupt, where + ": the map of the cluster makes no sense: " + why);
  };
  if (reply.kind != Kind::kArray) refuse("it is no list");
  std::vector<SlotRange> ranges;
  std::bitset<kSlots> seen;
  std::set<Address> masters;
  for (const Reply& each : reply.items) {
    const auto range = range_of(each, asked);
    if (!range) refuse("a part of it is not from, to, host and port");
    for (std::size_t slot = range->from; slot <= range->to; ++slot) {
      if (seen[slot]) refuse("a slot has two masters");
      seen.set(slot);
    }
    masters.insert(range->master);
    if (masters.size() > kMostMasters) refuse("it names more than a thousand masters");
    ranges.push_back(*range);
  }
  return ranges;
}

std::optional<Address> read_master(const Reply& reply, const std::string& where) {
  if (reply.kind == Kind::kNil) return std::nullopt;
  const auto& items = reply.items;
  const bool fits = items.size() == 2 && is_host(items[0].text);
  const auto port = fits ? port_of(items[1].text) : std::nullopt;
  if (!port) throw Error(Errc::kCorrupt, where + " gave no address of a master");
  return Address{items[0].text, *port};
}

std::optional<Address> read_redirect(const Reply& error, const std::optional<Address>& asked) {
  const std::string_view target = std::string_view(error.text).substr(error.text.rfind(' ') + 1);
  const std::size_t colon = target.rfind(':');
  if (colon == target.npos) return std::nullopt;
  const std::string_view host = target.substr(0, colon);
  const auto port = port_of(target.substr(colon + 1));
  if (!port) return std::nullopt;
  if (host.empty() && asked) return Address{asked->host, *port};  // "where you just asked"
  if (!is_host(host)) return std::nullopt;
  return Address{std::string(host), *port};
}

}  // namespace simba::redis
