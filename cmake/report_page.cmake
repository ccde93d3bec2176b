# The page that write_report fills, from src/report/page as one C++ file of the library.

set(_page_folder ${PROJECT_SOURCE_DIR}/src/report/page)
set(_page_scripts format.js data.js chart.js loops.js curve.js tables.js page.js)  # in this order: one script in the page
set(page_js "")
foreach(_script IN LISTS _page_scripts)
  file(READ ${_page_folder}/${_script} _text)
  string(APPEND page_js "${_text}")
endforeach()
file(READ ${_page_folder}/page.html page_html)
file(READ ${_page_folder}/page.css page_css)
configure_file(${_page_folder}/page_files.cpp.in ${PROJECT_BINARY_DIR}/report_page_files.cpp @ONLY)
target_sources(reprise_objects PRIVATE ${PROJECT_BINARY_DIR}/report_page_files.cpp)
foreach(_file page.html page.css ${_page_scripts})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_page_folder}/${_file})
endforeach()
