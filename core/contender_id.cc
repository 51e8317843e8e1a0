#include "simba/contender_id.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

#include "core/random.h"

namespace simba::inline v0 {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuv";
constexpr std::size_t kRandomLength = 13;
constexpr std::size_t kUuidLength = 32;

void append_hex(std::string& out, std::uint64_t bits) {
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(bits >> shift) & 0xf];
}

std::string make_uuid(std::uint64_t high, std::uint64_t low) {
  std::string uuid;
  uuid.reserve(kUuidLength);
  append_hex(uuid, (high & ~0xf000ULL) | 0x4000ULL);       // version 4
  append_hex(uuid, (low & ~(3ULL << 62)) | (2ULL << 62));  // RFC 4122 variant
  return uuid;
}

std::string short_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  return host.substr(0, host.find('.'));
}

class HostIds : public ContenderIdGenerator {
 public:
  std::string generate() override {
    std::string id = std::to_string(next_.fetch_add(1, std::memory_order_relaxed)) + ':' +
                     std::to_string(getpid()) + '@';
    id += host_;
    return id.substr(0, kMaxPortableLabel);
  }

 private:
  std::atomic<std::uint64_t> next_{0};
  const std::string host_ = short_host();
};

class UuidIds : public ContenderIdGenerator {
 public:
  std::string generate() override { return make_uuid(core::random64(), core::random64()); }
};

class CustomIds : public ContenderIdGenerator {
 public:
  explicit CustomIds(std::function<std::string()> generate) : generate_(std::move(generate)) {}
  std::string generate() override { return generate_(); }

 private:
  std::function<std::string()> generate_;
};

}  // namespace

ContenderIdGenerator& ContenderIdGenerator::host() {
  static HostIds ids;
  return ids;
}

ContenderIdGenerator& ContenderIdGenerator::uuid() {
  static UuidIds ids;
  return ids;
}

std::unique_ptr<ContenderIdGenerator> ContenderIdGenerator::custom(
    std::function<std::string()> generate) {
  return std::make_unique<CustomIds>(std::move(generate));
}

bool is_uuid_label(std::string_view label) {
  return label.size() == kUuidLength &&
         label.find_first_not_of(kDigits.substr(0, 16)) == label.npos;
}

std::string make_wire_id(std::string_view label, std::uint64_t random, std::uint64_t more_random) {
  if (is_uuid_label(label)) return make_uuid(random, more_random);
  std::array<char, 1 + kRandomLength> end{'~'};
  for (std::size_t i = kRandomLength; i > 0; --i, random >>= 5) end[i] = kDigits[random & 0x1f];
  std::string id;
  id.reserve(label.size() + end.size());
  id.append(label).append(end.data(), end.size());
  return id;
}

std::string_view label_of(std::string_view wire_id) {
  const std::size_t tilde = wire_id.rfind('~');
  const bool ours = tilde != wire_id.npos && wire_id.size() - tilde - 1 == kRandomLength;
  return ours ? wire_id.substr(0, tilde) : wire_id;
}

}  // namespace simba::inline v0
