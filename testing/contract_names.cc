#include <set>

#include "simba/contender_id.h"
#include "testing/contract_case.h"

// Names and ids: bounded, and never taken for one another.
namespace simba::testing {

void link_name_cases() {}

namespace {

class NameContract : public ContractTest {
 protected:
  bool accepts_mutex(const std::string& mutex) const {
    try {
      store->check_mutex(mutex);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kMisconfigured) << error.what();
      return false;
    }
  }
  bool accepts_label(const std::string& label) const {
    try {
      store->check_label(label);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kMisconfigured) << error.what();
      return false;
    }
  }
};

const std::vector<std::string>& odd_texts() {
  static const std::vector<std::string> texts{"job",
                                              "JOB",
                                              "Job",
                                              "job ",
                                              "job  ",
                                              " job",
                                              "jo b",
                                              "j'ob",
                                              "j\"ob",
                                              "j`ob",
                                              "j\\ob",
                                              "j\\'ob",
                                              "j%ob",
                                              "j_ob",
                                              "j%%",
                                              "j*ob",
                                              "j?ob",
                                              "j[ob]",
                                              "{job}",
                                              "}job",
                                              "job}",
                                              "{}job",
                                              "job:token",
                                              "job:fence",
                                              "job:lease",
                                              "a@@b",
                                              "acquired@@job",
                                              "a@b",
                                              "/job",
                                              "job/",
                                              "jo/b",
                                              "jo//b",
                                              "..",
                                              ".",
                                              "./job",
                                              "job\xc3\xa9",
                                              "jobe\xcc\x81",
                                              "job\xc3\x89",
                                              "\xe2\x82\xac",
                                              "\xf0\x9f\x94\x92",
                                              "stra\xc3\x9f"
                                              "e",
                                              "strasse",
                                              "\xc4\xb1",
                                              "i",
                                              "I",
                                              "\xc4\xb0",
                                              "null",
                                              "NULL",
                                              "0",
                                              "00",
                                              "-1",
                                              "1e3",
                                              "1000",
                                              "true",
                                              "$where",
                                              "$$NOW",
                                              "job;drop table simba_mutex",
                                              "job--",
                                              "job#",
                                              "job\xc2\xa0",
                                              "job\xe2\x80\x8b",
                                              "~",
                                              "job~",
                                              "latch-0000000001",
                                              "_c_-latch-0000000001",
                                              "x'00'",
                                              "0x00",
                                              "&job",
                                              "job&a=b",
                                              "job?a=b",
                                              "job+a",
                                              "job%20a",
                                              "job a",
                                              "<job>"};
  return texts;
}

SIMBA_CASE(NameContract, OddNamesAreRefusedOrKeptApart) {
  std::vector<std::string> accepted;
  for (const std::string& text : odd_texts()) {
    for (const std::string& mutex : {prefix() + text, text + prefix()}) {
      if (accepts_mutex(mutex)) accepted.push_back(mutex);
    }
  }
  EXPECT_GE(accepted.size(), odd_texts().size()) << "hardly any name is good enough";
  std::vector<std::string> ids;
  for (const std::string& mutex : accepted) {
    ids.push_back(wire_id());
    const Observation answer = take(*store, mutex, ids.back());
    EXPECT_TRUE(owns(answer, ids.back())) << "'" << mutex << "' was taken for another name";
  }
  const auto other = connect();
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    EXPECT_TRUE(owns(observe(*other, accepted[i]), ids[i])) << "'" << accepted[i] << "'";
  }
  std::set<std::string> listed;
  std::vector<std::string> in_order;
  for (const Listed& each : store->list(prefix(), {}, 1000, soon())) {
    listed.insert(each.mutex);
    in_order.push_back(each.mutex);
  }
  EXPECT_EQ(in_order, (std::vector<std::string>(listed.begin(), listed.end()))) << "by their bytes";
  EXPECT_EQ(by_pages(*store, 7), in_order);
  for (const std::string& mutex : accepted) {
    if (mutex.starts_with(prefix())) {
      EXPECT_TRUE(listed.contains(mutex)) << "'" << mutex << "' is not listed";
    }
  }
  release(*store, accepted[0], ids[0]);
  for (std::size_t i = 1; i < accepted.size(); ++i) {
    EXPECT_TRUE(owns(observe(*other, accepted[i]), ids[i]))
        << "'" << accepted[i] << "' was released too";
  }
}

SIMBA_CASE(NameContract, OddIdsAreRefusedOrKeptApart) {
  std::size_t accepted = 0;
  for (const std::string& text : odd_texts()) {
    if (!accepts_label(text)) continue;
    ++accepted;
    const std::string mutex = name(std::to_string(accepted));
    const std::string id = wire_id(text);
    const Observation held = take(*store, mutex, id);
    ASSERT_TRUE(owns(held, id)) << text;
    const Observation renewed = renew(*connect(), mutex, id, held.owner.token);
    EXPECT_TRUE(owns(renewed, id)) << text;
    release(*store, mutex, id, held.owner.token);
    EXPECT_TRUE(observe(*store, mutex).is_free()) << text;
  }
  EXPECT_GE(accepted, odd_texts().size() / 2) << "hardly any label is good enough";
}

SIMBA_CASE(NameContract, IdsThatLookAlikeAreNotTheSame) {
  const std::vector<std::string> alike{"Owner",   "owner",  "OWNER",  "Owner ",
                                       "Owner  ", " Owner", "Owner%", "Owne_"};
  for (const std::string& holder : alike) {
    const std::string mutex = name(std::to_string(&holder - alike.data()));
    const Observation held = take(*store, mutex, holder);
    ASSERT_TRUE(owns(held, holder));
    for (const std::string& stranger : alike) {
      if (stranger == holder) continue;
      EXPECT_FALSE(owns(renew(*store, mutex, stranger, held.owner.token), stranger));
      try_in_vain(*store, mutex, stranger);
      release(*store, mutex, stranger);
      release(*store, mutex, stranger, held.owner.token);
      store->evict(mutex, stranger, held.owner.token, Eviction::kFreeNow, soon());
      ASSERT_TRUE(owns(observe(*store, mutex), holder))
          << "'" << stranger << "' passed for '" << holder << "'";
    }
  }
}

SIMBA_CASE(NameContract, NamesAtTheLimitAreHeldWhole) {
  const std::size_t limit = store->traits().max_mutex_length;
  ASSERT_GE(limit, 64u);
  const std::string longest = prefix() + std::string(limit - prefix().size(), 'n');
  std::string neighbour = longest;
  neighbour.back() = 'm';
  std::string euros = prefix();
  while (euros.size() + 3 <= limit) euros += "\xe2\x82\xac";
  euros.append(limit - euros.size(), 'x');
  for (const std::string& mutex : {longest, neighbour, euros, longest.substr(0, limit - 1)}) {
    ASSERT_TRUE(accepts_mutex(mutex)) << mutex.size();
    const std::string id = wire_id();
    EXPECT_TRUE(owns(take(*store, mutex, id), id)) << mutex;
    EXPECT_TRUE(owns(observe(*connect(), mutex), id)) << mutex;
  }
}

SIMBA_CASE(NameContract, LabelsAtTheLimitAreHeldWhole) {
  const std::size_t suffix = make_wire_id("x", 0, 0).size() - 1;
  const std::string label(store->traits().max_wire_id_length - suffix, 'l');
  ASSERT_TRUE(accepts_label(label));
  EXPECT_GE(label.size(), kMaxPortableLabel);
  const std::string mutex = name();
  const std::string id = wire_id(label),
                    stranger = wire_id(label);  // differ in the last characters
  const Observation held = take(*store, mutex, id);
  EXPECT_TRUE(owns(held, id));
  EXPECT_FALSE(owns(renew(*store, mutex, stranger, held.owner.token), stranger));
  release(*store, mutex, stranger);
  EXPECT_TRUE(owns(observe(*store, mutex), id));
}

SIMBA_CASE(NameContract, WhatIsTooLongOrUnprintableIsRefusedWithTheLimit) {
  const StoreTraits& traits = store->traits();
  const auto refusal = [](const auto& check) -> std::string {
    try {
      check();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::kMisconfigured);
      return error.what();
    }
  };
  const std::string too_long(traits.max_mutex_length + 1, 'n');
  EXPECT_NE(
      refusal([&] { store->check_mutex(too_long); }).find(std::to_string(traits.max_mutex_length)),
      std::string::npos);
  EXPECT_NE(refusal([&] { store->check_label(std::string(traits.max_wire_id_length, 'l')); }), "");
  using namespace std::string_literals;
  for (const std::string& bad :
       {""s, " "s, "\t"s, "a\nb"s, "a\0b"s, "a\x7f"s, "a\xff"s, "\xc3"s, "\xed\xa0\x80"s}) {
    EXPECT_NE(refusal([&] { store->check_mutex(bad); }), "")
        << "mutex of " << bad.size() << " bytes";
    EXPECT_NE(refusal([&] { store->check_label(bad); }), "")
        << "label of " << bad.size() << " bytes";
  }
}

}  // namespace
}  // namespace simba::testing
