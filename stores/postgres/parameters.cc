#include "stores/postgres/parameters.h"

#include "stores/postgres/wire.h"

namespace simba::postgres {
namespace {

void append_int32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}

// An array of one dimension that begins at 1 and holds no NULL.
std::string array_header(std::uint32_t element_type, std::size_t size) {
  std::string out;
  append_int32(out, size == 0 ? 0 : 1);
  append_int32(out, 0);
  append_int32(out, element_type);
  if (size == 0) return out;
  append_int32(out, static_cast<std::uint32_t>(size));
  append_int32(out, 1);
  return out;
}

}  // namespace

void Parameters::add(const char* value, std::size_t length) {
  values_.at(count_) = value;
  lengths_.at(count_) = static_cast<int>(length);
  ++count_;
}

Parameters& Parameters::text(std::string_view value) {
  // A null pointer would be NULL.
  add(value.data() == nullptr ? "" : value.data(), value.size());
  return *this;
}

Parameters& Parameters::number(std::int64_t value) {
  std::array<char, 8>& bytes = numbers_.at(count_);
  write_int64(bytes.data(), value);
  add(bytes.data(), bytes.size());
  return *this;
}

Parameters& Parameters::texts(std::span<const std::string_view> values) {
  std::string& out = arrays_.emplace_back(array_header(kText, values.size()));
  for (const std::string_view value : values) {
    append_int32(out, static_cast<std::uint32_t>(value.size()));
    out += value;
  }
  add(out.data(), out.size());
  return *this;
}

Parameters& Parameters::numbers(std::span<const std::int64_t> values) {
  std::string& out = arrays_.emplace_back(array_header(kBigint, values.size()));
  for (const std::int64_t value : values) {
    append_int32(out, 8);
    std::array<char, 8> bytes{};
    write_int64(bytes.data(), value);
    out.append(bytes.data(), bytes.size());
  }
  add(out.data(), out.size());
  return *this;
}

const int* Parameters::formats() const {
  static constexpr std::array<int, kMost> kBinary{1, 1, 1, 1, 1, 1};
  return kBinary.data();
}

}  // namespace simba::postgres
