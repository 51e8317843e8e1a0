#include "torture/notebook.h"

#include <algorithm>

namespace simba::torture {

Notebook::Notebook(const std::filesystem::path& file)
    : file_(file, kHead + kCapacity * sizeof(Record)) {}

void Notebook::add(const Record& record) {
  const std::uint64_t count = page().count.load(std::memory_order_relaxed);
  if (count >= kCapacity) return;
  records()[count] = record;
  page().count.store(count + 1, std::memory_order_release);
}

std::vector<Record> Notebook::read(std::size_t most) const {
  const std::uint64_t count = page().count.load(std::memory_order_acquire);
  return {records() + (count - std::min<std::uint64_t>(count, most)), records() + count};
}

Registers::Registers(const std::filesystem::path& file) : file_(file, sizeof(Page)) {}

Token Registers::write_fenced(Token token) {
  Token found = page().fenced.load();
  while (found <= token && !page().fenced.compare_exchange_weak(found, token)) continue;
  return found;
}

}  // namespace simba::torture
