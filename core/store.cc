#include "simba/store.h"

#include "core/names.h"

namespace simba::inline v0 {

bool Watch::listen(int, LocalTime) { return false; }
void Watch::need_reader(bool) {}

void Store::check_mutex(std::string_view mutex) const {
  core::check_name("the mutex name", mutex, traits().max_mutex_length, "this store");
}

void Store::check_label(std::string_view label) const {
  core::check_label(label, traits().max_wire_id_length, "this store");
}

}  // namespace simba::inline v0
