// Rows of a MySQL server: texts or nulls in any number of columns.
#include <optional>
#include <string>
#include <vector>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/mysql/answers.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

// As simba::mysql::Result is, without a connection: the same checks, the same parser of numbers.
class Row {
 public:
  explicit Row(std::vector<std::optional<std::string>> values) : values_(std::move(values)) {}

  static std::string_view where() { return "a server"; }
  bool is_null(unsigned column) const {
    if (column >= values_.size())
      simba::mysql::refuse_answer(where(), "has fewer columns than it should");
    return !values_[column];
  }
  std::string_view text(unsigned column) const {
    if (is_null(column)) simba::mysql::refuse_answer(where(), "holds no text");
    return *values_[column];
  }
  std::uint64_t number(unsigned column) const {
    return simba::mysql::parse_number(text(column), where());
  }

 private:
  std::vector<std::optional<std::string>> values_;
};

std::optional<std::string> value(FuzzedDataProvider& input) {
  switch (input.ConsumeIntegralInRange(0, 4)) {
    case 0:
      return std::nullopt;
    case 1:
      return simba::fuzz::id(input);
    case 2:
      return std::string(simba::fuzz::kMutex);
    case 3:
      return std::to_string(input.ConsumeIntegral<std::uint64_t>());
    default:
      return input.ConsumeRandomLengthString(30);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const simba::Claim claim = simba::fuzz::claim_of(input);
  simba::mysql::Shape shape;
  shape.has_token = input.ConsumeBool();
  std::vector<std::optional<std::string>> values(input.ConsumeIntegralInRange<std::size_t>(0, 10));
  for (auto& each : values) each = value(input);
  const Row row(std::move(values));

  simba::fuzz::check(simba::mysql::read_answer(row, simba::fuzz::kMutex, &claim, shape));
  simba::fuzz::check(simba::mysql::read_answer(row, simba::fuzz::kMutex, nullptr, shape));
  accepts<simba::Error>([&] {
    require(simba::mysql::place_in(row, 0, 3) < 3, "a place is one of those asked about");
  });
  return 0;
}
