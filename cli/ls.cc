#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/owner_view.h"
#include "simba/connect.h"

namespace simba::cli {
namespace {

// More than anybody reads; said when there are more.
constexpr std::size_t kMost = 100'000;

using Row = std::array<std::string, 5>;

Row row_of(const OwnerView& view) {
  const auto span = [](const auto& value) {
    return value ? print_duration(*value) : std::string("-");
  };
  return {printable(view.mutex),
          view.owner.empty() ? '(' + std::string(view.state()) + ')' : printable(view.label),
          span(view.held_for), view.free ? "-" : print_duration(view.lease_left),
          view.token == 0 ? "-" : std::to_string(view.token)};
}

std::string table(const std::vector<OwnerView>& views) {
  std::vector<Row> rows{{"MUTEX", "OWNER", "HELD FOR", "LEASE LEFT", "TOKEN"}};
  for (const OwnerView& view : views) rows.push_back(row_of(view));
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += styled(&row == rows.data() ? Style::kBold : Style::kPlain, line) + '\n';
  }
  return text;
}

// For a person only: a script knows what it asks for.
std::string meant(Client& client, const std::string& prefix) {
  const bool asked_by_a_person = isatty(STDERR_FILENO) != 0;
  return asked_by_a_person && !prefix.empty() ? suggest_prefix(client, prefix) : "";
}

}  // namespace

int ls(const LsCommand& command) {
  Client client = connect(command.store);
  std::vector<Listed> listed = client.list(command.prefix, kMost);
  std::vector<OwnerView> views;
  for (Listed& each : listed) {
    OwnerView view(std::move(each.mutex), each.observation);
    if (command.free_too || !view.free) views.push_back(std::move(view));
  }
  bool written = true;
  if (command.format == Format::kJson) {
    std::string lines;
    for (const OwnerView& view : views) lines += view.json() + '\n';
    written = print(lines);
  } else if (!views.empty()) {
    written = print(table(views));
  } else {
    say("no mutex is held" +
        (command.prefix.empty() ? "" : " under '" + printable(command.prefix) + '\'') +
        (listed.empty() ? meant(client, command.prefix)
                        : "; " + std::to_string(listed.size()) +
                              (listed.size() == 1 ? " is" : " are") + " free (--all shows them)"));
  }
  if (listed.size() >= kMost) {
    say("only the first " + std::to_string(kMost) +
        " mutexes were looked at: give a longer PREFIX");
  }
  return written ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
