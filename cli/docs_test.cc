// The examples in the documentation are run, and print what the page shows.
//
//   ```console   lines that begin with "$ " are typed into a shell, in an empty directory for each
//                page; the others are what it prints. What differs each time matches whatever is of
//                its kind: numbers, spans of time, owners' ids, widths of columns.
//   ```sh        what nobody can run here; commands and options have to be there
//
//   <!-- file: NAME -->      above a block: it is the content of that file from then on
//   <!-- to the letter -->   above a console block: numbers are these numbers
//   <!-- not run: WHY -->    above a console block: it is treated as one of sh
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <regex>
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
  becomes("[0-9]+ (ms|s|min|h|d)( [0-9]+ (s|min|h))?", "\x03");
  becomes("[0-9]+", "[0-9]+");
  becomes("  +", " +");
  becomes("\x01", "[0-9]+:[0-9]+@[A-Za-z0-9.-]+");
  becomes("\x02", "~[0-9a-v]{13}");
  becomes("\x03", "[0-9]+ (ms|s|min|h|d)( [0-9]+ (s|min|h))?");
  return text;
}

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
    chmod(file(name).c_str(), text.starts_with("#!") ? 0755 : 0644);
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

  // Commands and options of lines that begin with simba.
  void check_words(const std::string& where, const Block& block) const {
    for (std::string line : block.lines) {
      if (line.starts_with("$ ")) line.erase(0, 2);
      if (!line.starts_with("simba ")) continue;
      std::istringstream words(line.substr(0, std::min(line.find(" -- "), line.find(" #"))));
      std::string word, command;
      words >> word >> command;
      if (command == "help") continue;
      const Result help = simba({command, "--help"});
      EXPECT_EQ(help.code, 0) << where << ": " << line;
      while (words >> word && word != "|") {
        if (!word.starts_with('-')) continue;
        EXPECT_THAT(help.out, HasSubstr(word)) << where << ": " << line;
      }
    }
  }

  void run_page(const std::string& page) const {
    int commands = 0;
    for (const Block& block : blocks_of(page)) {
      const std::string where = page + ":" + std::to_string(block.line);
      if (block.mark.starts_with("file: ")) {
        std::string text;
        for (const std::string& line : block.lines) text += line + '\n';
        put(block.mark.substr(6), text);
      } else if (block.language == "console" && !block.mark.starts_with("not run: ")) {
        run_console(where, block);
        ++commands;
      } else if (block.language == "console" || block.language == "sh") {
        check_words(where, block);
      }
    }
    EXPECT_GT(commands, 0) << page << " shows nothing that was run";
  }
};

TEST_F(DocsTest, TheReadmeShowsWhatTheToolPrints) { run_page("README.md"); }

TEST_F(DocsTest, ThePageOfTheToolShowsWhatItPrints) { run_page("docs/tool.md"); }

TEST_F(DocsTest, ThePageForOperatorsShowsWhatTheToolPrints) { run_page("docs/operating.md"); }

TEST_F(DocsTest, ThePageOfTheConfigurationShowsWhatTheToolPrints) {
  run_page("docs/configuration.md");
}

TEST_F(DocsTest, TheCookbookShowsWhatItsRecipesPrint) { run_page("docs/cookbook.md"); }

}  // namespace
}  // namespace simba::cli
