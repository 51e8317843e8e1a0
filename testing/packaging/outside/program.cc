#include <simba/simba.h>

#include <iostream>
#include <mutex>
#include <string>

// program FILE: locks on two stores, and catches what the library throws.
int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "locks.db";
  for (const std::string& url : {std::string("memory:"), "sqlite:" + file}) {
    const simba::Client client = simba::connect(url);
    simba::SimbaLocker locker{client, "outside"};
    const std::lock_guard lock{locker};
    if (!locker.is_in_ttl()) return 1;
    std::cout << "locked " << url << ", token " << locker.token() << '\n';
  }
  try {
    simba::connect("nowhere:");
  } catch (const simba::Error& error) {
    return error.errc() == simba::Errc::kMisconfigured ? 0 : 1;
  }
  return 1;
}
