# The GPU kernels: nvcc compiles each src/engine/kernels/kernels_NAME.cu to an image, and the library carries the images as bytes.
# Nothing links to CUDA, so the same library serves machines without a GPU.

set(SETO_KERNELS AUTO CACHE STRING "GPU kernels: AUTO (with them if nvcc 13.0 or later is found), ON or OFF")
set_property(CACHE SETO_KERNELS PROPERTY STRINGS AUTO ON OFF)

# Machine code for the GPUs that the library is made for, and PTX from which the driver compiles for others. The kernels ask for nothing
# that came after compute_80, so a second PTX, for compute_90, would be the same text and a third of the time (decision 51). Sums in the
# switch begin with compute_90: they alone have both.
set(SETO_KERNEL_TARGETS "-gencode=arch=compute_80,code=[sm_80,sm_90,sm_100,compute_80]")
set(SETO_MULTICAST_TARGETS "-gencode=arch=compute_80,code=[sm_80,compute_80]" "-gencode=arch=compute_90,code=[sm_90,sm_100,compute_90]")
set(SETO_KERNEL_ARCHITECTURES "sm_80 sm_90 sm_100, PTX of compute_80")

# -fmad=false: see -ffp-contract=off of the host's code. --compress-mode=size: machine code takes a tenth of its size, PTX a seventh.
# -Xptxas -v: the log, from which a test reads registers and spills.
set(SETO_KERNEL_FLAGS -std=c++20 -O3 -fmad=false --compress-mode=size -Xptxas -v)

# The order is that of tests/software_gpu/nvcc.cc.
function(seto_find_nvcc result)
  set(nvcc "$ENV{CUDACXX}")
  if(NOT nvcc)
    file(GLOB installed "${PROJECT_SOURCE_DIR}/build-nvcc/lib/python*/site-packages/nvidia/cu13/bin/nvcc")
    list(APPEND installed nvcc)
    list(GET installed 0 nvcc)
  endif()
  find_program(found NAMES "${nvcc}" NO_CACHE)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Sets SETO_NVCC and its release and version, or SETO_NO_KERNELS_BECAUSE to the reason why this build has no kernels.
function(seto_choose_kernels)
  if(NOT SETO_KERNELS)
    set(SETO_NO_KERNELS_BECAUSE "built with SETO_KERNELS=OFF" PARENT_SCOPE)
    return()
  endif()
  seto_find_nvcc(nvcc)
  if(nvcc)
    execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE text ERROR_QUIET)
  endif()
  if("${text}" MATCHES "release ([0-9]+\\.[0-9]+), V([0-9.]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 13.0)
    set(SETO_NVCC "${nvcc}" PARENT_SCOPE)
    set(SETO_NVCC_RELEASE "${CMAKE_MATCH_1}" PARENT_SCOPE)
    set(SETO_NVCC_VERSION "${CMAKE_MATCH_2}" PARENT_SCOPE)
    return()
  endif()
  set(reason "built without nvcc")
  if(CMAKE_MATCH_1)
    set(reason "built with nvcc ${CMAKE_MATCH_1}, but the kernels need 13.0")
  endif()
  if(NOT SETO_KERNELS STREQUAL "AUTO")
    message(FATAL_ERROR "SETO_KERNELS is ${SETO_KERNELS}: ${reason}; ./dev setup installs nvcc 13.0, CUDACXX names another")
  endif()
  set(SETO_NO_KERNELS_BECAUSE "${reason}" PARENT_SCOPE)
endfunction()

seto_choose_kernels()
if(SETO_NVCC)
  enable_language(ASM)
endif()

# seto_embed_kernels(TARGET) compiles the kernels of this folder, and adds them and the list of them to a library.
#
# All trees have them, those with sanitizers too, because the tests run them on the stand-in for the driver. The device code has no
# instrumentation, so the compiler cache gives each further tree the images of the first one.
function(seto_embed_kernels target)
  set(into "${CMAKE_CURRENT_BINARY_DIR}")  # to which paths of a DEPFILE are relative
  target_include_directories(${target} PRIVATE "${into}")
  set(SETO_KERNEL_NAMES "")
  set(SETO_KERNEL_ASSEMBLY "")
  if(SETO_NVCC)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels_*.cu")
  endif()
  foreach(source ${sources})
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "^kernels_" "" name "${stem}")
    seto_compile_kernels("${source}" "${into}/${stem}")
    list(APPEND images "${into}/${stem}.fatbin")
    string(APPEND SETO_KERNEL_NAMES " DO(${name})")
    string(APPEND SETO_KERNEL_ASSEMBLY "IMAGE ${name} \"${into}/${stem}.fatbin\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${into}/kernel_list.h" CONTENT [[
// Made by cmake/SetoKernels.cmake.
#define SETO_KERNEL_IMAGES(DO) @SETO_KERNEL_NAMES@
#define SETO_KERNEL_ARCHITECTURES "@SETO_KERNEL_ARCHITECTURES@"
#define SETO_NVCC_RELEASE "@SETO_NVCC_RELEASE@"
#define SETO_NO_KERNELS_BECAUSE "@SETO_NO_KERNELS_BECAUSE@"
]] @ONLY)
  if(NOT images)
    return()
  endif()
  set(assembly "${into}/kernel_images.s")
  file(CONFIGURE OUTPUT "${assembly}" CONTENT [[
# Made by cmake/SetoKernels.cmake.
.section .note.GNU-stack,"",@progbits
.section .rodata.seto_kernels,"a",@progbits
.macro IMAGE name, file
.global seto_kernels_\name, seto_kernels_\name\()_end
.hidden seto_kernels_\name, seto_kernels_\name\()_end
.balign 16
seto_kernels_\name:
.incbin "\file"
seto_kernels_\name\()_end:
.byte 0
.endm
${SETO_KERNEL_ASSEMBLY}]])
  # clang warns of the options of the target that do not concern an assembler file.
  set_source_files_properties("${assembly}" PROPERTIES OBJECT_DEPENDS "${images}"
                                                       COMPILE_OPTIONS -Wno-unused-command-line-argument)
  target_sources(${target} PRIVATE "${assembly}")
endfunction()

# Makes RESULT.fatbin, and RESULT.log with the report of ptxas.
#
# ccache caches compilations to objects only, so the image is taken out of an object. The depend mode is needed: preprocessed text
# misses what depends on __CUDA_ARCH__. CUDA has the same compiler in all clones, but not with the same time of its file.
function(seto_compile_kernels source result)
  cmake_path(GET result FILENAME stem)
  set(compile "${SETO_NVCC}")
  if(SETO_CCACHE)
    set(compile env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
                    "CCACHE_COMPILERCHECK=string:nvcc ${SETO_NVCC_VERSION}" "${SETO_CCACHE}" "${SETO_NVCC}")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND compile -ccbin "${CMAKE_CXX_COMPILER}")
  endif()
  set(targets ${SETO_KERNEL_TARGETS})
  if(stem MATCHES "multicast")
    set(targets ${SETO_MULTICAST_TARGETS})
  endif()
  list(APPEND compile ${SETO_KERNEL_FLAGS} ${targets} "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/include")
  set(script "${PROJECT_SOURCE_DIR}/cmake/compile_kernels.cmake")
  add_custom_command(
    OUTPUT "${result}.fatbin" "${result}.log"
    COMMAND "${CMAKE_COMMAND}" "-DCOMPILE=${compile}" "-DSOURCE=${source}" "-DSTEM=${stem}" "-DOBJCOPY=${CMAKE_OBJCOPY}" -P "${script}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
    DEPENDS "${source}" "${script}" "${SETO_NVCC}"
    DEPFILE "${result}.d"
    COMMENT "Compiling the GPU kernels of ${stem}.cu"
    VERBATIM)
endfunction()
