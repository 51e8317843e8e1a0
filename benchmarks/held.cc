#include "benchmarks/held.h"

#include <utility>

#include "benchmarks/board.h"
#include "benchmarks/pair.h"
#include "simba/connect.h"

namespace simba::bench {
namespace {

constexpr int kAtOnce = 5'000;  // more would not be answered within a call's deadline
constexpr double kSmallestBatch = 100;

struct Counts {
  std::atomic<std::uint64_t> calls{0}, renewed{0};
  std::atomic<int> failed{0}, lost{0};

  void note(const Event& event) {
    if (event.kind == Event::Kind::kCalled) ++calls;
    if (event.kind == Event::Kind::kRenewed) ++renewed;
    if (event.kind == Event::Kind::kRenewalFailed) ++failed;
    if (event.kind == Event::Kind::kRevoked) ++lost;
  }
};

}  // namespace

std::string order_name(int i) { return "order-" + std::to_string(1'000'000 + i); }

Held::Held(const Client& client, int count) {
  for (int i = 0; i < count; ++i) {
    wait_until([&] { return i - acquired_ < kAtOnce; });
    acquire_async(client, order_name(i), {}, [this](Acquired got) {
      if (!got.held) expect(false, got.error ? got.error->what() : "a mutex was not granted");
      const std::lock_guard lock(guard_);
      all_.push_back(std::move(got.held));
      ++acquired_;
    });
  }
  wait_until([&] { return acquired_ == count; });
  const std::lock_guard lock(guard_);  // the last callback has returned
}

std::string Renewals::text() const {
  return std::to_string(renewed) + " renewals in " + fixed(seconds, 0) + " s, " +
         std::to_string(failed) + " failed, " + std::to_string(lost) + " lost, " +
         std::to_string(threads()) + " threads";
}

Renewals watch_renewals(const RenewalRun& run) {
  Counts counts;
  ClientOptions options;
  options.contend.ttl = run.ttl;
  options.on_event = [&](const Event& event) { counts.note(event); };
  const Client client = connect(run.url, options);
  const Held held(client, run.count);
  nap_ms(run.settle_ms);
  const auto server = [&] { return run.server_cpu ? run.server_cpu() : 0; };
  counts.calls = counts.renewed = 0;
  counts.failed = counts.lost = 0;
  const double before = cpu_seconds(), server_before = server();
  nap_ms(run.seconds * 1e3);
  Renewals seen;
  seen.seconds = run.seconds;
  seen.cpu_seconds = cpu_seconds() - before;
  seen.server_seconds = server() - server_before;
  seen.renewed = counts.renewed;
  seen.calls = counts.calls;
  seen.failed = counts.failed;
  seen.lost = counts.lost;
  return seen;
}

void add_renewal_rows(const std::string& store, const std::string& url, Report& report, int count) {
  const Renewals seen = watch_renewals({.url = url, .count = count});
  const std::string what = store + " renewal of " + std::to_string(count / 1'000) + ",000, ";
  Row row = cpu_row(what + "CPU", seen.percent(), 10, seen.all_well());
  row.note = seen.text();
  report.add(row);
  report.add(batch_row(what + "claims per call", seen.per_call()));
}

Row cpu_row(std::string name, double percent, double most, bool all_well) {
  Row row;
  row.name = std::move(name);
  row.unit = "%";
  row.ours = percent;
  row.target = "<= " + fixed(most, 0) + " % core";
  row.verdict = percent <= most && all_well ? Verdict::kMet : Verdict::kMissed;
  return row;
}

Row batch_row(std::string name, double per_call) {
  Row row;
  row.name = std::move(name);
  row.unit = "";
  row.ours = per_call;
  row.target = ">= 100";
  row.verdict = per_call >= kSmallestBatch ? Verdict::kMet : Verdict::kMissed;
  return row;
}

}  // namespace simba::bench
