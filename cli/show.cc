#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/owner_view.h"

namespace simba::cli {
namespace {

std::string line(const char* name, const std::string& value) {
  return "  " +
         styled(Style::kDim,
                std::string(name) + std::string(12 - std::string_view(name).size(), ' ')) +
         value + '\n';
}

std::string text_of(const OwnerView& view) {
  std::string text = styled(Style::kBold, printable(view.mutex)) + " is " + view.state() + '\n';
  if (!view.owner.empty()) text += line("owner", printable(view.owner));
  if (view.held_for) text += line("held for", print_duration(*view.held_for));
  if (!view.free) text += line("lease left", print_duration(view.lease_left));
  if (view.token != 0) text += line(view.free ? "last token" : "token", std::to_string(view.token));
  return text;
}

}  // namespace

int show(const ShowCommand& command) {
  Client client = open_to_look(command.store);
  const OwnerView view(command.mutex, client.observe(command.mutex));
  const bool written = print(command.format == Format::kJson ? view.json() + '\n' : text_of(view));
  if (!written) return exit_code::kUnavailable;
  if (view.free && view.token == 0) {
    const std::string meant = suggest_mutex(client, command.mutex);
    if (!meant.empty()) say("nobody ever held '" + printable(command.mutex) + "'" + meant);
  }
  return view.free ? exit_code::kFree : exit_code::kOk;
}

}  // namespace simba::cli
