#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_map>

#include "torture/linear.h"

namespace simba::torture {
namespace {

std::string milliseconds_of(nanoseconds span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count()) +
         " ms";
}

std::string at(LocalTime time, LocalTime began) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f",
                std::chrono::duration<double>(time - began).count());
  return text.data();
}

std::string did(const Call& call) {
  const std::string token = call.token == 0 ? "" : " token " + std::to_string(call.token);
  switch (call.kind) {
    case Call::Kind::kTake:
      return " took for " + milliseconds_of(call.lease);
    case Call::Kind::kRenew:
      return " renewed" + token + " for " + milliseconds_of(call.lease);
    case Call::Kind::kRelease:
      return " released" + token;
    case Call::Kind::kObserve:
      return " observed";
    case Call::Kind::kEvict:
    case Call::Kind::kEvictFree:
      return " evicted" + token;
  }
  return "";
}

}  // namespace

std::string describe(const std::vector<Call>& calls, const std::vector<Call>& all,
                     LocalTime began) {
  constexpr std::size_t kMost = 12;
  std::unordered_map<std::uint64_t, int> clients;
  for (const Call& call : all) {
    if (call.kind != Call::Kind::kObserve) clients.try_emplace(call.id, call.client);
  }
  const auto who = [&](std::uint64_t id) {
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "%04x", static_cast<unsigned>(id & 0xffffU));
    const auto client = clients.find(id);
    return (client == clients.end() ? "nobody known" : "client " + std::to_string(client->second)) +
           " as " + name.data();
  };
  std::string text;
  for (std::size_t i = 0; i < std::min(calls.size(), kMost); ++i) {
    const Call& call = calls[i];
    text += i == 0 ? "" : "; ";
    text +=
        call.kind == Call::Kind::kObserve ? "client " + std::to_string(call.client) : who(call.id);
    text += did(call) + " [" + at(call.before, began) + ", " + at(call.after, began) + "]: ";
    if (call.is_granted()) {
      text += "granted, token " + std::to_string(call.owner_token);
    } else if (call.answer == Call::Answer::kOwned) {
      text += "owned by " + who(call.owner) + ", token " + std::to_string(call.owner_token);
    } else if (call.answer == Call::Answer::kDone) {
      text += "done";
    } else {
      text += call.answer == Call::Answer::kFree ? "free" : "a lease runs, of nobody";
    }
  }
  if (calls.size() > kMost) text += "; and " + std::to_string(calls.size() - kMost) + " more";
  return text;
}

}  // namespace simba::torture
