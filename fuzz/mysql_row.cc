// Rows of a MySQL server: texts or nulls in any number of columns.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/mysql/answers.h"
#include "stores/mysql/result.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

// What the driver would have read from a connection: one row.
struct Row {
  std::vector<std::optional<std::string>> values;
  std::vector<char*> texts;
  std::vector<unsigned long> lengths;
  bool is_read = false;
};
Row row;

std::optional<std::string> value(simba::fuzz::Input& input) {
  switch (input.in_range(0, 4)) {
    case 0:
      return std::nullopt;
    case 1:
      return simba::fuzz::id(input);
    case 2:
      return std::string(simba::fuzz::kMutex);
    case 3:
      return std::to_string(input.number<std::uint64_t>());
    default:
      return input.text(30);
  }
}

}  // namespace

// In place of the driver's, so that what reads its rows is the store's own.
extern "C" {
MYSQL_ROW mysql_fetch_row(MYSQL_RES*) {
  return std::exchange(row.is_read, true) ? nullptr : row.texts.data();
}
unsigned long* mysql_fetch_lengths(MYSQL_RES*) { return row.lengths.data(); }
unsigned int mysql_num_fields(MYSQL_RES*) { return static_cast<unsigned>(row.values.size()); }
void mysql_free_result(MYSQL_RES*) {}
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const simba::Claim claim = simba::fuzz::claim_of(input);
  simba::mysql::Shape shape;
  shape.has_token = input.flip();
  row = {};
  row.values.resize(input.in_range<std::size_t>(1, 10));
  for (auto& each : row.values) {
    each = value(input);
    row.texts.push_back(each ? each->data() : nullptr);
    row.lengths.push_back(each ? each->size() : 0);
  }
  MYSQL_RES rows{};  // nobody looks into it
  simba::mysql::Result result(&rows, 0, 0, "a server");
  if (input.flip()) result.next();

  for (const simba::Claim* asked : {&claim, static_cast<const simba::Claim*>(nullptr)}) {
    const simba::Answer answer =
        simba::mysql::read_answer(result, simba::fuzz::kMutex, asked, shape);
    simba::fuzz::check(answer);
    const auto* seen = std::get_if<simba::Observation>(&answer);
    if (seen == nullptr || seen->owner.id.empty()) continue;
    require(row.values.at(simba::mysql::Column::kMutex) == simba::fuzz::kMutex,
            "a row is of the mutex that was asked about");
  }
  accepts<simba::Error>([&] {
    require(simba::mysql::place_in(result, 0, 3) < 3, "a place is one of those asked about");
  });
  return 0;
}
