// Errors of a MongoDB server and its greetings: a number, any text, and a document with any fields.
#include <bson/bson.h>

#include <cstring>
#include <string>

#include "fuzz/failure.h"
#include "stores/mongodb/document.h"
#include "stores/mongodb/failure.h"

using simba::Errc;
using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

namespace mongodb = simba::mongodb;

const std::string kWhere = "db.example:27017/simba_db.simba_mutex";

void check(const simba::Error& error) { simba::fuzz::check(error, "mongodb at " + kWhere + ": "); }

void check_failures(const bson_error_t& error, const bson_t* reply) {
  const mongodb::Failure failure = mongodb::failure(error, reply, kWhere);
  check(failure);
  if (reply == nullptr || !mongodb::number_in(reply, "code")) {
    require(failure.errc() != Errc::kCorrupt, "who did not speak said nothing wrong");
  }
  if (failure.errc() == Errc::kUnreachable || failure.errc() == Errc::kDenied) {
    require(mongodb::breaks_connection(failure), "a connection to nobody is not used again");
  }
}

void check_greetings(const bson_t* hello) {
  const bool is_new = accepts<simba::Error>([&] { mongodb::check_version(hello, kWhere); });
  const bool is_good = accepts<simba::Error>([&] { mongodb::check_greeting(hello, kWhere); });
  if (!is_good) return;
  require(is_new, "who decides by its own clock is new enough");
  require(mongodb::text_in(hello, "msg") != "isdbgrid", "and no router");
  bson_iter_t at;
  require(bson_iter_init_find(&at, hello, "ismaster") && bson_iter_as_bool(&at), "and leads");
}

// Fields of these names: raw bytes alone hardly ever spell them.
mongodb::Document make_document(simba::fuzz::Input& input) {
  mongodb::Document made;
  for (const char* name : {"code", "ismaster", "maxWireVersion"}) {
    if (input.flip()) made.number(name, input.number<std::int64_t>());
  }
  if (input.flip()) made.number("maxWireVersion", input.in_range<std::int64_t>(6, 30));
  if (input.flip()) made.number("code", input.in_range<std::int64_t>(0, 14'100));
  if (input.flip()) made.text("msg", input.flip() ? std::string("isdbgrid") : input.text(20));
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const mongodb::Document made = make_document(input);
  bson_error_t error{};
  error.domain = input.in_range(0U, 24U);
  error.code = input.flip() ? input.in_range(0U, 20U) : input.number<std::uint32_t>();
  const std::string text = input.text(sizeof error.message - 1);
  std::memcpy(error.message, text.data(), text.size());

  check(mongodb::server_failure(input.number<int>(), text, kWhere));
  check_failures(error, made.get());
  check_failures(error, nullptr);
  check_greetings(made.get());
  const std::string bytes = input.rest();
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  bson_t raw;
  if (bytes.empty() || !bson_init_static(&raw, first, bytes.size())) return 0;
  check_failures(error, &raw);
  check_greetings(&raw);
  return 0;
}
