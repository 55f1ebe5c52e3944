# Makes a C file of any file: cmake -DFROM=web/index.html -DTO=out.c -DNAME=web_index_html
#     -DHEADER=server/web.h -P embed.cmake; the header declares NAME and NAME_len. -DGZIP=1: compressed.
if(GZIP)
  execute_process(COMMAND gzip -9nc ${FROM} OUTPUT_FILE ${TO}.gz COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${TO}.gz hex HEX)
  file(REMOVE ${TO}.gz)
else()
  file(READ ${FROM} hex HEX)
endif()
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${TO} "/* ${NAME}: made by cmake/embed.cmake */
#include \"${HEADER}\"

const unsigned char ${NAME}[] = {
${bytes} 0
};
const size_t ${NAME}_len = sizeof ${NAME} - 1;
")
