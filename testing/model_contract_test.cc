#include "testing/contract.h"
#include "testing/model_store.h"

// The servers of the simulation, on the real clock: what they do is what the simulation believes
// in.
namespace simba::testing {
namespace {

StoreTime boot_time() {
  return StoreTime{std::chrono::duration_cast<milliseconds>(BootClock::now().time_since_epoch())};
}

class ModelContract : public StoreContract {
 public:
  explicit ModelContract(ModelKind kind)
      : server_(std::make_shared<ModelServer>(kind, boot_time)) {}
  std::shared_ptr<Store> connect() override { return connect_model(server_); }
  std::shared_ptr<void> block_row(std::string_view mutex) override {
    server_->block(mutex);
    return {server_.get(),
            [server = server_, name = std::string(mutex)](void*) { server->unblock(name); }};
  }

 private:
  const std::shared_ptr<ModelServer> server_;
};

SIMBA_CONTRACT(ModelLease, [] { return std::make_unique<ModelContract>(ModelKind::kLease); })
SIMBA_CONTRACT(ModelPush, [] { return std::make_unique<ModelContract>(ModelKind::kPush); })
SIMBA_CONTRACT(ModelSession, [] { return std::make_unique<ModelContract>(ModelKind::kSession); })
SIMBA_CONTRACT(ModelForgetful,
               [] { return std::make_unique<ModelContract>(ModelKind::kForgetful); })

}  // namespace
}  // namespace simba::testing
