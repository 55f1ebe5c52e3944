/* Whatever the parser of an acceptor's record takes is what the encoder writes, and any message can
 * follow. */
#include "coord/paxos.h"
#include "store/quorum_acceptor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    char text[PAXOS_TEXT_MAX], member[MEMBER_TEXT_MAX];
    struct paxos_acceptor a;
    struct quorum_member m;
    struct firn_diag d;
    if (paxos_parse(p, size, &a, &d) == 0) {
        size_t len = paxos_encode(&a, text);
        if (len != size || memcmp(text, data, len) != 0)
            abort();
        struct paxos_message message = { .ask = PAXOS_PREPARE, .ballot = a.promised };
        struct paxos_answer answer;
        message.ballot.round++;
        if (!paxos_acceptor_step(&a, &message, &answer) || !answer.ok)
            abort();
        message.ask = PAXOS_ACCEPT;
        message.value = a.value;
        if (!paxos_acceptor_step(&a, &message, &answer) || !answer.ok ||
            paxos_encode(&a, text) > PAXOS_TEXT_MAX)
            abort();
    }
    if (quorum_member_parse(p, size, &m, &d) == 0) {
        size_t len = quorum_member_encode(&m, member);
        if (len != size || memcmp(member, data, len) != 0)
            abort();
    }
    return 0;
}
