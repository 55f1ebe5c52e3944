#!/bin/sh
# Takes IDs and tickets from firnd with redis-cli (7.0 or later: -e).
#
#     firn-ids.sh 127.0.0.1:9012,127.0.0.1:9022,127.0.0.1:9032 10
#
# It stays with one server while that answers, and goes on to the next when it does not. Asking again is safe: a
# Snowflake ID that was lost on its way is simply never used, and a ticket is asked for with a key, to which every
# server gives the same number again, so that a gapless sequence has no hole.
set -u

[ $# -eq 2 ] || { echo "usage: $0 HOST:PORT[,HOST:PORT...] COUNT" >&2; exit 2; }
addresses=$(echo "$1" | tr ',' ' ')
count=$2
rounds=4 # over all addresses, 1 s apart

# ask WORD...: one command; its answer on standard output.
ask() {
    round=0
    while [ $round -lt $rounds ]; do
        [ $round -gt 0 ] && sleep 1
        # The server that answered last is the first to be asked.
        for address in ${current:-} $addresses; do
            if answer=$(timeout 2 redis-cli -e -h "${address%:*}" -p "${address##*:}" --raw "$@" 2>&1); then
                current=$address
                return 0
            fi
            case $answer in
                ERR* | NOAUTH* | NOPERM*) # another server would say the same
                    echo "$address: $answer" >&2
                    return 1 ;;
            esac
        done
        round=$((round + 1))
    done
    echo "no server answered: $addresses: $answer" >&2
    return 1
}

i=0
while [ $i -lt "$count" ]; do
    i=$((i + 1))
    ask FIRN.NEXT snowflake || exit 1
    id=$answer
    ask FIRN.NEXT ticket KEY "$$-$i-$(date +%s%N)" || exit 1
    echo "Snowflake ID: $id, Ticket ID: $answer"
done
