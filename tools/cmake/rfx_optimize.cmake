# How far a release build optimises each source of librfexec. The rule: by how often its code runs.
#
#   -O3  in every step of a run: the kernels and the rest of the folder layers.
#   -O2  once for a network, in layers, tiler and rf_analysis; and whatever no row below names.
#   -Os  once for a model, an image file, a shard or a run; also loops over a file's bytes, most of
#        whose time is spent in another library, such as libtiff, OpenSlide or zlib.
#
# With a higher level than its own such code becomes larger, and no run becomes faster. Programs and
# tests are compiled with -O2 (rfx_set_flags).
#
# A row: a regular expression of paths from the top of the tree, and the level of the sources that it
# matches. If several rows match a source, the last one counts.
set(RFX_LEVELS
    "^layers/" -O3
    "^layers/fuse/" -O2
    "^layers/graph/(graph|group|infer|op)\\.c$" -O2
    "^rfexec/(api|builtin|onnx|shards)/" -Os
    "^rfexec/image/(geo|slides|tiff|zarr)/" -Os
    "^rfexec/output/(ome|tiff)/" -Os
    "^rfexec/run/(evaluate|model.*)\\.c$" -Os)

# Gives the sources their levels. A source's options come after those of its target, so the level here
# replaces that of rfx_set_flags.
function(rfx_optimize)
  foreach(source IN LISTS ARGN)
    set(level "")
    set(rows ${RFX_LEVELS})
    while(rows)
      list(POP_FRONT rows regex row_level)
      if(source MATCHES ${regex})
        set(level ${row_level})
      endif()
    endwhile()
    if(level)
      set_property(SOURCE ${source} PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:${level}>)
    endif()
  endforeach()
endfunction()
