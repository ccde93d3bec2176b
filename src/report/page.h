// The page of a report: page/page.html with its style and its scripts, put together at build
// time, and data.
#pragma once

#include <string>

namespace reprise {

// `data` is JSON in which no '<' occurs. The page refers to nothing outside of itself.
std::string page_with(const std::string& title, const std::string& data);

}  // namespace reprise
