#include "simba/memory.h"
#include "testing/contract.h"

namespace simba::testing {
namespace {

// Every "connection" is the one store object: all of its users are in this process.
class MemoryContract : public StoreContract {
 public:
  std::shared_ptr<Store> connect() override { return store_; }

 private:
  const std::shared_ptr<Store> store_ = make_memory();
};

SIMBA_CONTRACT(Memory, [] { return std::make_unique<MemoryContract>(); })

}  // namespace
}  // namespace simba::testing
