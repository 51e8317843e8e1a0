#include "torture/torture.h"

#include "testing/servers/directory.h"

namespace simba::torture {

Report torture(const Target& target, Plan plan, const std::string& command,
               const std::string& until_broken) {
  static_cast<void>(Timing::of(plan.options()));  // says what is wrong with it
  const servers::Directory directory;
  plan.directory = directory.path();
  const Outcome outcome = Attack(plan, target).run(until_broken);
  const Verdict verdict = judge(plan, outcome);
  const Title title{target.name, command, target.spared};
  std::set<std::string> broken;
  for (const Violation& violation : verdict.violations) broken.insert(violation.promise);
  return {verdict.holds(), std::move(broken), as_text(title, plan, outcome, verdict),
          as_json(title, plan, outcome, verdict), as_picture(title, plan, outcome, verdict)};
}

}  // namespace simba::torture
