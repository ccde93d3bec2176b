// Runs the code of one page: `run_snippets remat`. tools/check_snippets.py makes a file of each
// page, which adds itself here, and compares what is printed.
#include <exception>
#include <iostream>
#include <map>
#include <string>

std::map<std::string, void (*)()>& pages() {
  static std::map<std::string, void (*)()> by_stem;
  return by_stem;
}

int main(int argc, char** argv) {
  const auto page = pages().find(argc == 2 ? argv[1] : "");
  if (page == pages().end()) {
    std::cerr << "usage: run_snippets PAGE, where PAGE is one of:";
    for (const auto& [stem, run] : pages()) std::cerr << " " << stem;
    std::cerr << "\n";
    return 2;
  }
  std::cout << std::unitbuf;  // warnings go to the error stream and must keep their place
  try {
    page->second();
  } catch (const std::exception& error) {
    std::cout << "uncaught: " << error.what() << "\n";
    return 1;
  }
}
