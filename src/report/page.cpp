#include "report/page.h"

#include "base/error.h"

#include <string_view>

namespace reprise {

extern const char* const report_html;  // made from page/ by cmake/report_page.cmake
extern const char* const report_style;
extern const char* const report_script;

namespace {

void replace(std::string& page, std::string_view mark, std::string_view by) {
  const std::size_t at = page.find(mark);
  REPRISE_INVARIANT(at != std::string::npos);
  page.replace(at, mark.size(), by);
}

std::string html_escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string page_with(const std::string& title, const std::string& data) {
  std::string page = report_html;
  // From the end to the beginning: what is filled in is not searched.
  replace(page, "{{script}}", report_script);
  replace(page, "{{data}}", data);
  replace(page, "{{style}}", report_style);
  replace(page, "{{title}}", html_escaped(title));
  return page;
}

}  // namespace reprise
