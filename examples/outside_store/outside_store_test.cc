#include "outside_store.h"

#include <simba/testing/contract.h>

namespace {

class OutsideContract : public simba::testing::StoreContract {
 public:
  std::shared_ptr<simba::Store> connect() override { return store_; }

 private:
  const std::shared_ptr<OutsideStore> store_ = std::make_shared<OutsideStore>();
};

SIMBA_CONTRACT(Outside, [] { return std::make_unique<OutsideContract>(); })

}  // namespace
