#include "reprise/report.h"

#include "io/file.h"

namespace reprise {

void write_report(const std::vector<NamedCompiled>& programs, const std::string& path) {
  const std::string page = detail::report_page(programs);
  io::OutputFile file("write_report", path);
  file.write(page);
  file.commit();
}

}  // namespace reprise
