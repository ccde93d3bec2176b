#include "reprise/report.h"

#include "io/file.h"

namespace reprise {

void detail::write_report(const std::vector<NamedCompiled>& programs, const std::string& path,
                          const std::vector<CurveData>& curve) {
  const std::string page = report_page(programs, curve);
  io::OutputFile file("write_report", path);
  file.write(page);
  file.commit();
}
void write_report(const std::vector<NamedCompiled>& programs, const std::string& path) {
  detail::write_report(programs, path, {});
}

}  // namespace reprise
