#pragma once

#include <bson/bson.h>

#include "simba/store.h"

// What documents of an answer say, read with suspicion. Errors: kCorrupt.
namespace simba::mongodb {

[[noreturn]] void refuse(const char* what);
// `clock` is the field with the server's time.
Observation read_document(const bson_t* document, const char* clock);
// What is wrong with one document is its answer.
Answer read_answer(const bson_t* document);
// What a look after a take that changed nothing means for that take.
Answer answer_to_take(Answer answer, const Claim& claim);

}  // namespace simba::mongodb
