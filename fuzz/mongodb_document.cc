// Documents of a MongoDB server: what libbson takes for one, and all that it does not look at.
#include <bson/bson.h>

#include <string>

#include "fuzz/answer.h"
#include "fuzz/target.h"
#include "simba/error.h"
#include "stores/mongodb/answers.h"
#include "stores/mongodb/document.h"

using simba::fuzz::accepts;
using simba::fuzz::require;

namespace {

namespace mongodb = simba::mongodb;

// What we have left in the document of another owner, a Java one, says nothing of it.
void check_owner(const bson_t* document, const simba::Observation& seen) {
  simba::fuzz::check(seen);
  if (mongodb::text_in(document, "wireId") == mongodb::text_in(document, "ownerId")) return;
  require(seen.owner.token == 0 || seen.owner.id.empty(),
          "a token is of the owner it was given to");
  const auto expires = mongodb::number_in(document, "expiresAt");
  require(expires && seen.owner.transition_at.time_since_epoch() == simba::milliseconds{*expires},
          "and so is the end of a lease");
}

void read(const bson_t* document, const simba::Claim& claim) {
  accepts<simba::Error>([&] { check_owner(document, mongodb::read_document(document, "now")); });
  accepts<simba::Error>([&] { simba::fuzz::check(mongodb::read_document(document, "renewedAt")); });
  simba::fuzz::check(mongodb::answer_to_take(mongodb::read_answer(document), claim));
  mongodb::text_in(document, "_id");
}

// Our fields with values of any kind: raw bytes alone hardly ever spell their names.
mongodb::Document make_document(simba::fuzz::Input& input) {
  mongodb::Document made;
  for (const char* name : {"ownerId", "expiresAt", "renewedAt", "ttlMs", "now", "token", "wireId",
                           "ttlAt", "acquiredAt"}) {
    switch (input.in_range(0, 4)) {
      case 0:
        made.text(name, simba::fuzz::id(input));
        break;
      case 1:
      case 2:
        made.number(name, input.number<std::int64_t>());
        break;
      case 3: {
        bson_t copy;
        bson_copy_to(made.get(), &copy);
        bson_append_double(&copy, name, -1, input.real());
        made = mongodb::Document(bson_copy(&copy));
        bson_destroy(&copy);
        break;
      }
      default:
        break;
    }
  }
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  simba::fuzz::Input input(data, size);
  const simba::Claim claim = simba::fuzz::claim_of(input);
  const mongodb::Document made = make_document(input);
  read(made.get(), claim);

  const std::string bytes = input.rest();
  bson_t raw;
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.empty() || !bson_init_static(&raw, first, bytes.size())) return 0;
  read(&raw, claim);
  const auto read_each = [&](const bson_t* each) { read(each, claim); };
  mongodb::each_document(&raw, "cursor.firstBatch", read_each);
  mongodb::each_document(&raw, "writeErrors", read_each);
  return 0;
}
