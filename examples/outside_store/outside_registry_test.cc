// The store by its URL, as a program uses it after the call that makes it known.
#include <gtest/gtest.h>
#include <simba/simba.h>

#include <mutex>

#include "outside_entry.h"

namespace {

TEST(OutsideRegistry, AfterTheCallItsUrlsOpenIt) {
  EXPECT_THROW(simba::connect("outside:orders"), simba::Error);
  outside::add_to_registry();
  const simba::Client first = simba::connect("outside:orders?zone=eu");
  const simba::Client second = simba::connect("outside:orders?zone=eu");
  simba::SimbaLocker held(first, "job"), refused(second, "job");
  const std::unique_lock lock(held, std::try_to_lock);
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_FALSE(refused.try_lock());
  EXPECT_EQ(simba::inspect_store("outside:orders?zone=eu&x=1").findings.at(0).text,
            "a map of this process, in eu");
}

}  // namespace
