#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/chosen_store.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/mistyped.h"
#include "cli/output.h"
#include "cli/owner_view.h"

namespace simba::cli {
namespace {

// At once. A Redis server passes by all its keys for each: few pages, then.
constexpr std::size_t kPage = 10'000;

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

std::string lines_of(const std::vector<OwnerView>& views, bool names_only) {
  std::string lines;
  for (const OwnerView& view : views) {
    lines += (names_only ? printable(view.mutex) : view.json()) + '\n';
  }
  return lines;
}

// For a person only: a script knows what it asks for.
std::string meant(Client& client, const std::string& prefix) {
  const bool asked_by_a_person = isatty(STDERR_FILENO) != 0;
  return asked_by_a_person && !prefix.empty() ? suggest_prefix(client, prefix) : "";
}

}  // namespace

int ls(const LsCommand& command) {
  Client client = open_to_look(command.store);
  const bool as_lines = command.format == Format::kJson || command.names_only;
  std::vector<OwnerView> views;
  std::size_t looked_at = 0;
  bool written = true;
  std::string last;
  for (bool more = true; more && written;) {
    std::vector<Listed> page = client.list_after(last, command.prefix, kPage);
    more = page.size() == kPage;
    looked_at += page.size();
    if (more) last = page.back().mutex;
    for (Listed& each : page) {
      OwnerView view(std::move(each.mutex), each.observation);
      if (command.free_too || !view.free) views.push_back(std::move(view));
    }
    if (!as_lines) continue;  // the widest name may be the last
    written = print(lines_of(views, command.names_only));
    views.clear();
  }
  if (as_lines) return written ? exit_code::kOk : exit_code::kUnavailable;
  if (!views.empty()) {
    written = print(table(views));
  } else {
    say("no mutex is held" +
        (command.prefix.empty() ? "" : " under '" + printable(command.prefix) + '\'') +
        (looked_at == 0 ? meant(client, command.prefix)
                        : "; " + std::to_string(looked_at) + (looked_at == 1 ? " is" : " are") +
                              " free (--all shows them)"));
  }
  return written ? exit_code::kOk : exit_code::kUnavailable;
}

}  // namespace simba::cli
