// The examples in the documentation are run, and print what the page shows.
//
//   ```console   lines that begin with "$ " are typed into a shell, in an empty directory for each
//                page; the others are what it prints. What differs each time matches whatever is of
//                its kind: numbers, spans of time, owners' ids, widths of columns.
//   ```sh        what nobody can run here; commands and options have to be there
//   ```yaml      settings are taken by the tool as they are
//   ```json      can be read
//
// Others are looked at elsewhere: see kElsewhere.
//
//   <!-- file: NAME -->      above a block: it is the content of that file from then on
//   <!-- to the letter -->   above a console block: numbers are these numbers
//   <!-- not run: WHY -->    above a console block: it is treated as one of sh; above one of yaml:
//   it
//                            holds no settings
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

struct Block {
  int line = 0;
  std::string language, mark;
  Words lines;
};

std::vector<Block> blocks_of(const std::string& page) {
  std::ifstream file(std::string(SIMBA_SOURCE) + "/" + page);
  EXPECT_TRUE(file) << page;
  std::vector<Block> blocks;
  std::string mark;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({number, line.substr(3), mark, {}});
      mark.clear();
    } else if (inside) {
      blocks.back().lines.push_back(line);
    } else if (!line.empty()) {
      mark = line.starts_with("<!-- ") ? line.substr(5, line.rfind(" -->") - 5) : "";
    }
  }
  return blocks;
}

// A pattern of this text and no other.
std::string letters_of(const std::string& line) {
  static const std::regex special(R"([.^$|()\[\]{}*+?\\/])");
  return std::regex_replace(line, special, R"(\$&)");
}

// A pattern of whatever is of the same kind.
std::string kinds_of(const std::string& line) {
  std::string text = letters_of(line);
  const auto becomes = [&](const char* what, const char* pattern) {
    text = std::regex_replace(text, std::regex(what), pattern);
  };
  becomes("[0-9]+:[0-9]+@[A-Za-z0-9-]+", "\x01");
  becomes("~[0-9a-v]{13}", "\x02");
  becomes(R"([0-9]+(\\\.[0-9]+)? (ms|s|min|h|d)( [0-9]+ (s|min|h))?)", "\x03");  // 6\.6 s
  becomes("[0-9]+", "[0-9]+");
  becomes("  +", " +");
  becomes("\x01", "[0-9]+:[0-9]+@[A-Za-z0-9.-]+");
  becomes("\x02", "~[0-9a-v]{13}");
  becomes("\x03", "[0-9.]+ (ms|s|min|h|d)( [0-9]+ (s|min|h))?");
  return text;
}

// Whose console blocks are run, below.
const std::set<std::string> kRun{"README.md", "docs/tool.md", "docs/operating.md",
                                 "docs/configuration.md", "docs/cookbook.md"};

// What looks at blocks of other languages.
const std::set<std::string> kElsewhere{
    "cpp",    // script/check-docs: it is quoted from examples/, which are compiled
    "cmake",  // testing/packaging: programs from outside, each way to get the library
    "sql",    // below, and the tests of MySQL and PostgreSQL run with the statements of their pages
    "js",     // below
};

class DocsTest : public ToolTest {
 protected:
  DocsTest() {
    // Programs that examples name.
    for (const char* name : {"backup.sh", "server", "report"}) put(name, "#!/bin/sh\nsleep 100\n");
    std::filesystem::create_directory(file("bin"));
    std::filesystem::create_symlink(tool(), file("bin/simba"));
  }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    chmod(file(name).c_str(), text.starts_with("#!") ? 0755 : 0600);
  }

  // What the commands of a block print, a text for each.
  Words type(const Words& commands) const {
    std::string script = "exec 2>&1\nexport PATH=" + file("bin").string() +
                         ":$PATH XDG_CONFIG_HOME=" + file("config").string() + '\n';
    // A store of its own, where the page does not choose one.
    if (!std::filesystem::exists(file("simba.yaml"))) {
      script += "export SIMBA_STORE=" + url() + '\n';
    }
    for (const std::string& command : commands) {
      script += "printf '\\001'\n" + command + '\n';
      // What runs in the background is to have begun.
      if (command.ends_with('&')) {
        script +=
            "for i in $(seq 300); do simba ls 2> /dev/null | grep -q . && break; "
            "sleep 0.1; done\n";
      }
    }
    put("script", script + "printf '\\001'\nkill $(jobs -p) 2> /dev/null; wait\n");
    Process::Setting setting;
    setting.directory = file(".");
    Process bash({"/bin/bash", file("script")}, setting);
    EXPECT_NE(bash.wait(), -1) << "it does not end";
    Words outputs;
    std::istringstream all(bash.out());
    std::string one;
    std::getline(all, one, '\001');
    while (std::getline(all, one, '\001')) outputs.push_back(one);
    return outputs;
  }

  void run_console(const std::string& where, const Block& block) const {
    Words commands, expected;
    const auto pattern_of = block.mark == "to the letter" ? letters_of : kinds_of;
    for (const std::string& line : block.lines) {
      if (line.starts_with("$ ")) {
        commands.push_back(line.substr(2));
        expected.emplace_back();
      } else if (!expected.empty()) {
        expected.back() += pattern_of(line) + '\n';
      }
    }
    const Words printed = type(commands);
    for (std::size_t i = 0; i < commands.size(); ++i) {
      ASSERT_LT(i, printed.size()) << where;
      EXPECT_TRUE(std::regex_match(printed[i], std::regex(expected[i])))
          << where << ": $ " << commands[i] << "\nprints\n"
          << printed[i] << "which is not\n"
          << expected[i];
    }
  }

  std::string help_of(const std::string& command) {
    const auto [known, is_new] = help_.try_emplace(command);
    if (is_new) known->second = simba({command, "--help"}).out;
    return known->second;
  }

  // Commands and options of each simba in a block; a line may have something before it.
  void check_words(const std::string& where, const Block& block) {
    static const std::regex call("(^|[^-/.A-Za-z])simba +([a-z]+)");
    for (const std::string& line : block.lines) {
      std::string text = std::regex_replace(line, std::regex("[\\[\\],\"]"), " ");
      if (text.starts_with("$ ")) text.erase(0, 2);
      text = text.substr(0, std::min(text.find(" -- "), text.find(" #")));
      std::smatch found;
      if (!std::regex_search(text, found, call)) continue;
      const std::string command = found[2];
      // Pictures and what is printed have the word too.
      const bool is_typed = text.starts_with("simba ") && !block.language.empty();
      if (command == "help" || (!is_typed && help_of(command).empty())) continue;
      EXPECT_NE(help_of(command), "") << where << ": " << line;
      std::istringstream words(found.suffix().str());
      for (std::string word; words >> word && word != "|";) {
        if (!word.starts_with('-')) continue;
        EXPECT_THAT(help_of(command), HasSubstr(word)) << where << ": " << line;
      }
    }
  }

  static std::string text_of(const Block& block) {
    std::string text;
    for (const std::string& line : block.lines) text += line + '\n';
    return text;
  }

  // As somebody would have it who copies it.
  void check_settings(const std::string& where, const Block& block) const {
    put("copied.yaml", text_of(block));
    Process::Setting setting;
    setting.directory = file(".");
    // It has the store of docs/extending.md too.
    Process process({SIMBA_OUTSIDE_TOOL, "config", "--config", "copied.yaml"}, setting);
    EXPECT_EQ(process.wait(), 0) << where << ": " << process.err();
  }

  void check_block(const std::string& page, const Block& block) {
    const std::string where = page + ":" + std::to_string(block.line);
    const bool is_excused = block.mark.starts_with("not run: ");
    EXPECT_TRUE(!is_excused || block.mark.size() > 15) << where << ": why?";
    if (block.language == "console") {
      EXPECT_TRUE(is_excused || kRun.contains(page)) << where << ": nothing runs it";
    } else if (block.language == "yaml" && !is_excused) {
      check_settings(where, block);
    } else if (block.language == "json") {
      const bool is_each =
          std::all_of(block.lines.begin(), block.lines.end(),
                      [](const auto& line) { return nlohmann::json::accept(line); });
      EXPECT_TRUE(is_each || nlohmann::json::accept(text_of(block))) << where;
    } else if (block.language != "sh" && block.language != "yaml" && !block.language.empty()) {
      EXPECT_TRUE(kElsewhere.contains(block.language)) << where << ": nothing looks at it";
    }
    if (!kElsewhere.contains(block.language) && block.language != "json") check_words(where, block);
  }

  void run_page(const std::string& page) {
    int commands = 0;
    for (const Block& block : blocks_of(page)) {
      const std::string where = page + ":" + std::to_string(block.line);
      if (block.mark.starts_with("file: ")) {
        put(block.mark.substr(6), text_of(block));
      } else if (block.language == "console" && !block.mark.starts_with("not run: ")) {
        run_console(where, block);
        ++commands;
      } else if (block.language == "console" || block.language == "sh") {
        check_words(where, block);
      }
    }
    EXPECT_GT(commands, 0) << page << " shows nothing that was run";
    EXPECT_TRUE(kRun.contains(page));
  }

 private:
  std::map<std::string, std::string> help_;  // by command; empty: there is none
};

TEST_F(DocsTest, TheReadmeShowsWhatTheToolPrints) { run_page("README.md"); }

TEST_F(DocsTest, ThePageOfTheToolShowsWhatItPrints) { run_page("docs/tool.md"); }

TEST_F(DocsTest, ThePageForOperatorsShowsWhatTheToolPrints) { run_page("docs/operating.md"); }

TEST_F(DocsTest, ThePageOfTheConfigurationShowsWhatTheToolPrints) {
  run_page("docs/configuration.md");
}

TEST_F(DocsTest, TheCookbookShowsWhatItsRecipesPrint) { run_page("docs/cookbook.md"); }

TEST_F(DocsTest, EveryBlockOfEveryPageIsLookedAtOrSaysWhyNot) {
  Words pages{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(SIMBA_SOURCE "/docs")) {
    if (entry.path().extension() == ".md")
      pages.push_back("docs/" + entry.path().filename().string());
  }
  ASSERT_GT(pages.size(), 10U);
  for (const std::string& page : pages) {
    for (const Block& block : blocks_of(page)) check_block(page, block);
  }
}

// Blanks and the marks of comments left out.
std::string bare(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s|//|--|IF NOT EXISTS"), "");
}

TEST_F(DocsTest, PagesOfStoresShowTheStatementsThatInitPrints) {
  struct Row {
    const char *page, *language, *url;
  };
  for (const Row& row : {Row{"docs/sqlite.md", "sql", "sqlite:x.db"},
                         Row{"docs/mongodb.md", "js", "mongodb://127.0.0.1"}}) {
    const std::string printed = bare(simba({"init", "--print", "--store", row.url}).out);
    int count = 0;
    for (const Block& block : blocks_of(row.page)) {
      if (block.language != row.language) continue;
      EXPECT_THAT(printed, HasSubstr(bare(text_of(block)))) << row.page << ':' << block.line;
      ++count;
    }
    EXPECT_GT(count, 0) << row.page;
  }
}

}  // namespace
}  // namespace simba::cli
