#include <simba/locker.h>
#include <simba/sqlite.h>

#include <iostream>
#include <mutex>

// one_store FILE: locks on a store that it names itself, without connect() and the other stores.
int main(int argc, char** argv) {
  simba::SqliteOptions options;
  options.file = argc > 1 ? argv[1] : "locks.db";
  const simba::Client client(simba::open_sqlite(options));
  simba::SimbaLocker locker{client, "outside"};
  const std::lock_guard lock{locker};
  if (!locker.is_in_ttl()) return 1;
  std::cout << "locked, token " << locker.token() << '\n';
}
