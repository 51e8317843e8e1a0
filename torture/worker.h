#pragma once

namespace simba::torture {

// The processes that contend are copies of the program that attacks them: its main asks this first.
// Returns when this process is no such copy.
void work_if_asked(int argc, char** argv);

// What such a copy is told: its words after the program, and where the store is. In a variable,
// because it may hold a password.
inline constexpr const char* kWorkerWord = "--torture-worker";  // then the directory and the number
inline constexpr const char* kWorkerUrl = "SIMBA_TORTURE_URL";

}  // namespace simba::torture
