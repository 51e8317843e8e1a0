#pragma once

#include <string>
#include <vector>

// The tool is two programs where it can be. `simba` holds the stores that are files and memory, and
// is linked so that it starts in no time. The drivers of servers, and the libraries below them,
// take many times longer to load than a file takes to lock: they are in simba-servers, the same
// tool with all stores, which `simba` becomes when a URL asks for one of them.
namespace simba::cli {

// Returns when the store is one of this program's own, or when there is no other program. `words`:
// the command line, without the program.
void leave_to_servers_program(const std::string& url, const std::vector<std::string>& words);

// In any case. Returns when there is no other program.
void become_servers_program(const std::vector<std::string>& words);

// The environment in which the tool starts itself, ended by null: with what keeps the drivers quiet
// while they load, and without the variables of these names.
std::vector<char*> own_environment(const std::vector<std::string>& without = {});

// First of all: what own_environment() added is not for the programs that the tool starts.
void settle_in();

// Where there is no other program: throws Error that says where it is to be had, if the URL names a
// store that this one does not have.
void need_servers_program(const std::string& url);

// For messages.
inline constexpr const char* kWithoutServers =
    "the program libexec/simba/simba-servers, which is not there: install the package "
    "simba-servers";

}  // namespace simba::cli
