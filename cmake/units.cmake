# Each folder of src/ is compiled as one unit: its headers are read once, and what its files share is compiled once.
# A cold build of the library takes about 60 % of the time. With REPRISE_UNITS off each file is compiled by
# itself: quicker after the change of one file, and a missing #include shows (preset `asan`).

option(REPRISE_UNITS "Compile each folder of src/ as one unit" ON)

# Files that name something in their anonymous namespace as a neighbour does. These stand alone.
set(_files_alone
  codegen/emit_ops codegen/equation_code codegen/index_scatter codegen/sort_ir
  control/custom_jvp control/custom_vjp control/scan control/shard_map
  functions/collectives functions/math functions/products functions/random functions/random_choice functions/shape functions/take
  ops/collective ops/collective_data ops/communicator ops/join ops/name ops/reduce ops/scatter ops/shape ops/special ops/unary
  plan/epilogue plan/expand_window plan/hoist plan/keep plan/keep_loops plan/roots plan/stages plan/storage plan/transfers
  products/conv_geometry products/conv_products products/dnnl_engine products/matmul products/widened_dot
  runtime/timeline)

# reprise_join_units(<target> <sources below src/>...)
function(reprise_join_units target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REPRISE_UNITS} UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${source})
    string(REGEX MATCH "^[^/]+" folder ${path})
    string(REGEX REPLACE "\\.cpp$" "" name ${path})
    if(NOT name IN_LIST _files_alone)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
endfunction()
