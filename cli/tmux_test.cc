// `simba` in tmux, as somebody works on a host far away.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "cli/exit_codes.h"
#include "cli/tool_fixture.h"

namespace simba::cli {
namespace {

// One session with a shell in it, on a server of its own.
class TmuxTest : public ToolTest {
 protected:
  void SetUp() override {
    if (access("/usr/bin/tmux", X_OK) != 0) GTEST_SKIP() << "tmux is not installed";
    tmux({"-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50",
          "exec bash --norc --noprofile --noediting -i"});
  }
  void TearDown() override {
    Process(command({"kill-server"}), setting()).wait();  // fails where its last session has ended
  }

  std::string tmux(const Words& words) const {
    Process client(command(words), setting());
    EXPECT_EQ(client.wait(), 0) << client.err();
    return client.out();
  }
  void press(const std::string& key) const { tmux({"send-keys", key}); }
  // What a command prints is written 'a''b' in it, so that it is not taken for what was typed.
  void type(const std::string& line) const {
    tmux({"send-keys", "-l", line});
    press("Enter");
  }
  std::string screen() const { return tmux({"capture-pane", "-p", "-J"}); }
  bool shows(const std::string& text) const {
    return eventually([&] { return screen().find(text) != std::string::npos; });
  }
  void expect_code(const std::string& code) const {
    type("echo co''de=$?");
    EXPECT_TRUE(shows("code=" + code + "\n")) << screen();
  }
  void expect_end_with_session(const std::string& command, const std::string& script) const {
    type(command + "sh -c '" + script + "'");
    const pid_t program = pid_in("pid");
    ASSERT_GT(program, 0) << screen();
    tmux({"kill-session"});
    EXPECT_TRUE(eventually([&] { return !is_alive(program); }));
    EXPECT_TRUE(eventually([&] { return is_free(); }));
  }
  bool is_free() const { return simba({"show", "x"}).code == exit_code::kFree; }

  // A lease that does not run out meanwhile: what is free was released.
  const std::string run = tool() + " run --ttl 60s --transition 60s --kill-after 300ms x -- ";

 private:
  Words command(const Words& words) const {
    Words all{"/usr/bin/tmux", "-S", file("tmux").string()};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  Process::Setting setting() const {
    return {file(""), "", {"SIMBA_STORE=" + url(), "PS1=> ", "TERM=xterm"}};
  }
};

TEST_F(TmuxTest, CtrlZStopsItAndFgContinuesIt) {
  type(run + "sh -c 'echo rea''dy; read line; echo read:$line'");
  ASSERT_TRUE(shows("ready\n")) << screen();
  press("C-z");
  ASSERT_TRUE(shows("Stopped")) << screen();
  type("fg");
  type("hello");
  EXPECT_TRUE(shows("read:hello")) << screen();
  expect_code("0");
  EXPECT_TRUE(is_free());
}

TEST_F(TmuxTest, CtrlCEndsIt) {
  type(run + "sh -c 'echo $$ > pid; exec sleep 100'");
  const pid_t program = pid_in("pid");
  ASSERT_GT(program, 0) << screen();
  press("C-c");
  expect_code("130");
  EXPECT_FALSE(is_alive(program));
  EXPECT_TRUE(is_free());
}

TEST_F(TmuxTest, ASessionThatIsKilledEndsIt) {
  expect_end_with_session(run, "echo $$ > pid; exec sleep 100");
}

// Under `run` the program decides what a signal means to it.
TEST_F(TmuxTest, ASessionThatIsKilledEndsALeaderWhoseProgramIgnoresIt) {
  expect_end_with_session(tool() + " lead --ttl 60s --transition 60s --kill-after 300ms x -- ",
                          "trap : TERM HUP INT; echo $$ > pid; while :; do sleep 0.05; done");
}

TEST_F(TmuxTest, ASessionThatIsKilledEndsADaemonOfTheProgram) {
  std::ofstream(file("daemon.sh")) << "echo $$ > pid; exec sleep 100\n";
  expect_end_with_session(run, "(setsid sh daemon.sh &) & exec sleep 100");
}

TEST_F(TmuxTest, LeadScheduleAndWatchEndByCtrlC) {
  for (const char* command : {"lead", "schedule --every 1h"}) {
    std::filesystem::remove(file("pid"));
    type(tool() + ' ' + command + " x -- sh -c 'echo $$ > pid; exec sleep 100'");
    const pid_t program = pid_in("pid");
    ASSERT_GT(program, 0) << screen();
    press("C-c");
    EXPECT_TRUE(eventually([&] { return !is_alive(program) && is_free(); })) << screen();
  }
  type("clear; " + tool() + " watch x");
  ASSERT_TRUE(shows("x is free")) << screen();
  press("C-c");
  expect_code("130");
}

// Each in a window of its own, with a name of its own: as far as processes can tell, two hosts.
TEST_F(TmuxTest, OfTwoHostsOneLeadsAndTheOtherTakesOver) {
  if (Process({"/usr/bin/unshare", "--uts", "true"}, {.directory = file("")}).wait() != 0) {
    GTEST_SKIP() << "this user cannot make a host name of its own";
  }
  const auto lead_on = [&](const std::string& host) {
    type("exec unshare --uts sh -c 'hostname " + host + "; exec " + tool() +
         " lead --ttl 2s --transition 2s x -- sh -c \"echo \\$SIMBA_OWNER > leader; " +
         "exec sleep 100\"'");
  };
  const auto is_led_from = [&](const std::string& host) {
    return eventually(
        [&] { return read_file(file("leader")).find('@' + host + '~') != std::string::npos; });
  };
  lead_on("web-1");
  ASSERT_TRUE(is_led_from("web-1")) << screen();
  tmux({"split-window", "exec bash --norc --noprofile --noediting -i"});
  lead_on("web-2");
  ASSERT_TRUE(shows("waiting for x: held by ")) << screen();
  EXPECT_TRUE(shows("@web-1 for ")) << screen();
  tmux({"kill-pane", "-t", "0"});
  EXPECT_TRUE(is_led_from("web-2")) << screen();
}

}  // namespace
}  // namespace simba::cli
