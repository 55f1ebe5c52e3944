/* member_clock.h - what is included before src/store/raft.c and raft_link.c: the world's clock in
 * place of the machine's. */
#ifndef SIM_MEMBER_CLOCK_H
#define SIM_MEMBER_CLOCK_H

#include "platform/mono.h"
#include "store/check.h"

int64_t k_client_ms(void);
void k_client_sleep(int64_t ms);

#define mono_now_ms    k_client_ms
#define store_sleep_ms k_client_sleep

#endif
