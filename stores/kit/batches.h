#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "simba/store.h"

// What becomes of the claims of a call before they are a statement, and of its answers after it.
namespace simba::kit {

// Sends on what `check` lets pass, and puts the answers where they belong: the others are answered
// with the Error that `check` threw.
template <class Item, class Check, class Send>
Answers send_checked(std::span<const Item> items, Check check, Send send) {
  const auto is_good = [&](const Item& item) {
    try {
      check(item);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (items.empty()) return {};
  if (std::all_of(items.begin(), items.end(), is_good)) return send(items);  // without copies
  std::vector<Item> good;
  std::vector<std::size_t> places;
  Answers answers(items.size(), Blocked{});
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      check(items[i]);
      good.push_back(items[i]);
      places.push_back(i);
    } catch (const Error& error) {
      answers[i] = error;
    }
  }
  if (good.empty()) return answers;
  Answers sent = send(std::span<const Item>(good));
  for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(sent[i]);
  return answers;
}

// Takes and renewals are different statements; the engine never mixes them. Whoever does gets two
// calls of `send`.
template <class Send>
Answers send_alike(std::span<const Claim> claims, Send send) {
  const bool renews = claims.front().renews();
  const bool alike = std::all_of(claims.begin(), claims.end(),
                                 [&](const Claim& each) { return each.renews() == renews; });
  if (alike) return send(claims);
  Answers answers(claims.size(), Blocked{});
  for (const bool renewals : {true, false}) {
    std::vector<Claim> part;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (claims[i].renews() != renewals) continue;
      part.push_back(claims[i]);
      places.push_back(i);
    }
    Answers sent = send(std::span<const Claim>(part));
    for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(sent[i]);
  }
  return answers;
}

}  // namespace simba::kit
