#pragma once

#include "torture/outcome.h"

namespace simba::torture {

inline constexpr std::array kAllErrcs{Errc::kUnreachable,   Errc::kTimeout, Errc::kDenied,
                                      Errc::kMisconfigured, Errc::kMisuse,  Errc::kCorrupt,
                                      Errc::kReplaced};
std::string_view word_of(Errc errc);  // "corrupt"

// Adds to `verdict` what errors the clients met: "error" for each kind that no attack explains,
// with the text of the first.
void judge_errors(const Outcome& outcome, Verdict& verdict);

// For people.
std::string describe(const Trouble& trouble);
std::string errors_text(const Verdict& verdict);

}  // namespace simba::torture
