# Plays all labs with all faults, for the page that firnd serves: cmake -DLAB=firn-lab -DTO=lab.json.gz -P lab_traces.cmake
execute_process(COMMAND ${LAB} all --json OUTPUT_FILE ${TO}.json COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND gzip -9nc ${TO}.json OUTPUT_FILE ${TO} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${TO}.json)
