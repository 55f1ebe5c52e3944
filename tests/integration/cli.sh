#!/usr/bin/env bash
# The command line as its users see it: cli.sh FOLDER-OF-PROGRAMS
# Each case runs firn, compares its exit status and looks at what it said on stdout and stderr.
set -u
export LC_ALL=C
unset NO_COLOR CLICOLOR_FORCE

case ${1:-} in
'') echo "usage: $0 FOLDER-OF-PROGRAMS" >&2 && exit 2 ;;
/*) firn=$1/firn ;;
*) firn=$PWD/$1/firn ;;
esac
[[ -x $firn ]] || { echo "$0: $firn: not a program" >&2; exit 2; }
tree=$(cd "$(dirname "$0")/../.." && pwd)

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export XDG_STATE_HOME=$work/state # the notes of firn gen on worker numbers
: >in

passed=0 failed=0 ran=

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAIL firn $ran: $1"
    sed 's/^/    out: /' out | head -n 8
    sed 's/^/    err: /' err | head -n 4
}
check() { # check WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then pass; else fail "$what"; fi
}

# run STATUS ARGS...: the file `in` is standard input; output in `out`, talk in `err`.
run() {
    local want=$1 got
    shift
    ran="$*"
    "$firn" "$@" <in >out 2>err
    got=$?
    check "exit status $got instead of $want" test "$got" = "$want"
    if ((want == 2)); then # an error is one line of talk, no data
        check "says something on stdout" test ! -s out
        check "says nothing on stderr" test -s err
    fi
}
is() { check "stdout is not '$1'" test "$(cat out)" = "$1"; }
has() { check "stdout has no '$1'" grep -qF -- "$1" out; }
lacks() { check "stdout has '$1'" test -z "$(grep -F -- "$1" out)"; }
matches() { check "stdout does not match '$1'" grep -qxE -- "$1" out; }
says() { check "stderr has no '$1'" grep -qF -- "$1" err; }
quiet() { check "talks on stderr" test ! -s err; }
lines() { check "not $1 lines on stdout" test "$(wc -l <out)" = "$1"; }
# json EXPRESSION: every line of stdout is JSON; the expression holds for the first, as d.
json() {
    check "JSON: not $1" python3 -c '
import json, sys
docs = [json.loads(line) for line in open("out")]
d = docs[0]
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}

# ---- help, version, the table of commands

run 0; has 'Commands:'; quiet
run 0 help; has 'firn gen ulid -n 10'
run 0 --help; has 'Commands:'
run 0 version; is "firn $(sed -n 's/^project(firn VERSION \([0-9.]*\) .*/\1/p' "$tree/CMakeLists.txt")"
run 0 --version; matches 'firn [0-9.]+'
run 0 version --json; json 'd["version"][0] in "0123456789"'
run 2 version x; says 'takes --json only'
for c in gen inspect convert layout verify audit seal unseal choose compare bench doctor top up nodes elect lock config lab completion help version; do
    run 0 help; has "  $c "
    run 0 $c --help; check "examples do not come first" test "$(head -n 1 out)" = Examples:; has 'Usage: firn '; quiet
    cp out direct; run 0 help $c; check "help differs from --help" cmp -s out direct
    run 2 $c --no-such-option; says "firn $c: unknown option --no-such-option"
    run 2 $c -Z; says 'unknown option -Z'
done
run 2 gne; says "did you mean gen?"
run 2 inspct; says 'did you mean inspect?'
run 2 qqqqqqqq; says 'firn help lists them'
run 2 $'\e[31mred'; says '\x1b[31mred'
run 2 help gne; says 'did you mean gen?'
run 2 help qqqqqqqq; says 'unknown command'

# ---- gen

run 0 gen; has 'snowflake'; has 'ulid'; lacks stamp17; quiet
run 0 gen --json; json '[k for k in d if k["kind"] == "ulid" and k["bits"] == 128 and k["sorts"]]'
run 0 gen ulid; matches '[0-7][0-9A-HJKMNP-TV-Z]{25}'; lines 1; quiet
run 0 gen uuid; matches '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
for v in 1 4 6 7 8; do
    run 0 gen uuidv$v -n 3; matches "[0-9a-f]{8}-[0-9a-f]{4}-${v}[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"; lines 3
done
# The names and results of RFC 9562, appendices A.2 and A.4.
run 0 gen uuidv3 --namespace dns --name www.example.com; is 5df41881-3aed-3515-88a7-2f4a814cf09e
run 0 gen uuidv5 --namespace dns --name www.example.com; is 2ed6657d-e927-568b-95e1-2665a8aea6a2
run 0 gen uuidv5 --namespace 6ba7b810-9dad-11d1-80b4-00c04fd430c8 --name www.example.com; is 2ed6657d-e927-568b-95e1-2665a8aea6a2
run 2 gen uuidv5; says 'give --namespace'
run 2 gen uuidv5 --namespace dns; says '--name NAME'
run 2 gen uuidv5 --namespace nope --name x; says 'dns, url, oid, x500 or a UUID'
run 2 gen uuidv5 --namespace dns --name x -n 2; says 'a name has exactly one uuidv5'
run 0 gen ksuid; matches '[0-9A-Za-z]{27}'
run 0 gen xid; matches '[0-9a-v]{20}'
run 0 gen objectid; matches '[0-9a-f]{24}'
run 0 gen tsid --worker 5; matches '[0-9A-HJKMNP-TV-Z]{13}'
run 0 gen typeid --prefix user; matches 'user_[0-7][0-9a-hjkmnp-tv-z]{25}'
run 2 gen typeid --prefix User; says 'a type has'
run 0 gen nanoid; matches '[0-9A-Za-z_-]{21}'
run 0 gen nanoid --length 12 --alphabet 01; matches '[01]{12}'
run 2 gen nanoid --alphabet a; says 'alphabet'
run 2 gen nanoid --length 0; says 'from 1 to 255'
run 2 gen nanoid --length 300; says 'from 1 to 255'
run 0 gen cuid2; matches '[a-z][0-9a-z]{23}'
run 2 gen cuid2 --length 200; says 'length must be'
run 0 gen ticket -n 3 --first 41; is $'41\n42\n43'
run 0 gen ticket --first 9 --prefix inv; is inv_9
run 2 gen ticket --first 0; says "--first '0'"
run 0 gen ticket -n 2 --first 9223372036854775807 -e hex --first 255; is $'00000000000000ff\n0000000000000100'
run 2 gen ticket --first 9223372036854775808; says '--first'
run 0 gen dated --first 42; matches '[0-9]{8}-000042'
run 0 gen dated --reset month --length 3; matches '[0-9]{6}-001'
run 0 gen dated --reset year; matches '[0-9]{4}-000001'
run 2 gen dated --reset week; says 'give day, month or year'
run 2 gen stamp17; says 'can be read but not generated'
run 2 gen ulidd; says 'did you mean ulid?'
run 2 gen zzzzzzzz; says 'firn gen lists them'
run 2 gen ulid 10; says 'firn gen ulid -n 10'
run 2 gen -n 10; says 'missing kind'
run 2 gen ulid -n; says 'needs a value'
run 2 gen ulid -n 0; says 'give a whole number from 1'
for n in -1 x 1.5 '' 99999999999999999999 5MM; do
    run 2 gen ulid --count "$n"; says 'give a whole number'
done
run 0 gen ulid -n 1k; lines 1000
run 0 gen ulid -n5; lines 5
run 0 gen ulid --count=5; lines 5
run 0 gen -n 5 -- ulid; lines 5
run 2 gen ulid --worker 3; says '--worker works with snowflake sonyflake tsid, not with ulid'
run 2 gen ulid --layout twitter; says '--layout works with snowflake'
run 2 gen ulid --alphabet abc; says '--alphabet works with nanoid'
run 2 gen ulid --first 3; says '--first works with ticket dated'
run 2 gen ulid --encoding hex; says 'a fixed text form'
run 2 gen ulid --prefix ORD; says 'ulid: '
run 2 gen ulid --json=yes; says 'takes no value'
run 2 gen ulid --cuont 3; says 'did you mean --count?'

run 0 gen snowflake -n 10000 --worker 1023; lines 10000
cp out in; run 0 verify --sorted; has 'sorted     ok'; : >in
run 0 gen snowflake --worker 7 -e base62 -p ord; matches 'ord_[0-9A-Za-z]{11}'
run 0 gen snowflake -e hex; matches '[0-9a-f]{16}'
run 2 gen snowflake -e bas62; says 'did you mean base62?'
run 2 gen snowflake -e uuid; says 'needs 128 bits'
run 2 gen snowflake --worker 1024; says 'give 0 to 1023'
run 2 gen snowflake --worker -1; says "--worker '-1'"
run 2 gen snowflake --dc 1; says 'no dc field'
run 2 gen snowflake --shard 1; says 'no shard field'
run 2 gen snowflake --policy maybe; says 'give wait, error or borrow'
run 2 gen snowflake --layout twiter; says 'did you mean twitter?'
run 2 gen snowflake --layout 'time:41,node:70'; says 'above 64'
run 2 gen snowflake --layout mastodon; says 'decode-only'
run 2 gen uid-generator; says 'run out'
run 2 gen twitter --layout leaf; says 'is a layout already'
run 2 gen twitter --worker 32; says 'give 0 to 31'
run 2 gen twitter --dc 32; says 'give 0 to 31'
run 2 gen instagram --worker 3; says 'give --shard'
run 2 gen instagram --shard 8192; says 'give 0 to 8191'
run 0 gen twitter --dc 3 --worker 4
id=$(cat out); run 0 inspect --layout twitter --json "$id"
json '[f["value"] for f in d["readings"][0]["fields"]][1:3] == ["3", "4"]'
run 0 gen instagram --shard 1341
id=$(cat out); run 0 inspect --layout instagram --json "$id"; json '"1341" in [f["value"] for f in d["readings"][0]["fields"]]'
run 0 gen audit --shard 9 --worker 4
id=$(cat out); run 0 inspect --kind audit --json "$id"; json '[f["value"] for f in d["readings"][0]["fields"]][1:3] == ["9", "4"]'
run 0 gen sonyflake --worker 77
id=$(cat out); run 0 inspect --kind sonyflake --json "$id"; json '"77" in [f["value"] for f in d["readings"][0]["fields"]]'
run 0 gen snowflake -n 30000 --policy borrow; lines 30000
run 0 gen --layout 'unused:1,time:41@1ms,node:6,seq:16;epoch=2021-01-01T00:00:00Z' -n 1M; lines 1000000
# Worker numbers: side by side, one after the other, ahead of the clock, and where nothing can be noted.
none_twice() { check "IDs came twice: $(sort "$@" | uniq -d | wc -l)" test -z "$(sort "$@" | uniq -d)"; }
for kind in snowflake sonyflake tsid twitter instagram; do
    ran="gen $kind, 40 at once"
    for i in {1..40}; do "$firn" gen $kind -n 50 >"ids.$i" 2>>err & done; wait
    none_twice ids.*; check 'IDs are missing' test "$(cat ids.* | wc -l)" = 2000
done
rm ids.*
ran='gen --worker 9, 8 at once'
for i in {1..8}; do "$firn" gen snowflake --worker 9 -n 1000 >"ids.$i" 2>>err & done; wait
none_twice ids.*; check 'IDs are missing' test "$(cat ids.* | wc -l)" = 8000
for args in '--worker 7' '--layout unused:1,time:41@1ms,node:1,seq:12;epoch=2021-01-01T00:00:00Z'; do
    ran="gen snowflake --policy borrow $args, again and again"
    for i in {1..4}; do "$firn" gen snowflake --policy borrow -n 500k $args >"ids.$i" 2>err || fail 'failed'; done
    none_twice ids.{1..4}
done
"$firn" gen snowflake --worker 5 --policy borrow -n 3M >ids.1 2>err & # ahead of the clock, then killed
while [[ ! -s ids.1 ]]; do sleep 0.01; done
kill -9 $!; wait 2>/dev/null
run 0 gen snowflake --worker 5 -n 5000 --policy borrow; lines 5000
none_twice <(head -n -1 ids.1) out
rm ids.*
XDG_STATE_HOME=$work/in run 2 gen snowflake; says 'set XDG_STATE_HOME'
XDG_STATE_HOME=$work/in run 0 gen snowflake --worker 3; lines 1
run 0 gen twitter --dc 3
id=$(cat out); run 0 inspect --layout twitter --json "$id"; json 'd["readings"][0]["fields"][1]["value"] == "3"'
run 0 gen uuidv7 -n 3 --json; json 'd["kind"] == "uuidv7" and len(d["ids"]) == 3'
run 0 gen snowflake -n 2 --json; json 'isinstance(d["ids"][0], str) and "time:41" in d["layout"]'
run 0 gen nanoid --alphabet '"\' --json; json 'len(d["ids"][0]) == 21'
# A tick of one ID and policy error: the second has to wait, so it stops with what it has.
ran='gen --policy error'
"$firn" gen --layout 'unused:1,time:32@1s,node:8;epoch=2021-01-01T00:00:00Z' --policy error -n 3 >out 2>err
check 'status' test $? = 2; says 'leave out --policy error'

# ---- what gen makes, inspect reads

for kind in uuidv1 uuidv4 uuidv6 uuidv7 uuidv8 ulid ksuid xid objectid tsid typeid nanoid cuid2 ticket dated snowflake sonyflake; do
    run 0 gen $kind; id=$(cat out)
    run 0 inspect --kind $kind --json -- "$id"; json "d['input'] == '$id' and d['readings'][0]['text'] == '$id'"
    case $kind in
    uuidv1 | uuidv6 | uuidv7 | ulid | ksuid | xid | objectid | tsid | typeid | snowflake | sonyflake)
        json 'abs(d["readings"][0]["unix_ms"] / 1000 - __import__("time").time()) < 100' ;;
    esac
    run 0 inspect -- "$id"; has "$id"; quiet # a NanoID may begin with a dash
done

# ---- inspect

run 0 inspect --layout twitter 1541815603606036480
has '2022-06-28T16:07:40.105Z'; has 'ago'
has '00010101 01100101 10100001 00011111 01100010 00010111 10100000 00000000'
has '.ttttttt tttttttt tttttttt tttttttt tttttttt ttdddddn nnnnssss ssssssss'
lacks $'\e'
run 0 inspect 1541815603606036480; has twitter; has discord; has SCORE
run 0 inspect --json 1541815603606036480; json 'len(d["readings"]) > 3 and all(0 <= r["score"] <= 100 for r in d["readings"])'
json '[r["score"] for r in d["readings"]] == sorted([r["score"] for r in d["readings"]], reverse=True)'
CLICOLOR_FORCE=1 run 0 inspect 1541815603606036480; has $'\e['; lacks ttttt
CLICOLOR_FORCE=1 NO_COLOR=1 run 0 inspect 1541815603606036480; lacks $'\e'
run 0 inspect --encoding base62 --layout twitter 1ptWyK4WgZU; has 1541815603606036480
run 0 inspect --encoding hex 017f22e279b07cc398c4dc0c0c07398f; has 017f22e2-79b0-7cc3-98c4-dc0c0c07398f
run 1 inspect --encoding base58 0OIl; says 'not in the alphabet of base58'
run 0 inspect --kind stamp17 20260102030405678; has unsafe
run 1 inspect '@@@'; says "'@@@': "; check data test ! -s out
run 1 inspect ''; says 'firn inspect'
run 1 inspect --kind ulid 8ZZZZZZZZZZZZZZZZZZZZZZZZZ; says '8ZZZ'
run 1 inspect --json '@@@' 017f22e2-79b0-7cc3-98c4-dc0c0c07398f; lines 2; json 'd["error"] and d["readings"] == [] and docs[1]["readings"]'
run 1 inspect "$(printf 'x%.0s' {1..200})"; says 'more than 128'
printf '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n\n  @@@ \r\n01FWHE4YDGFK1SHH6W1G60EECF' >in
run 1 inspect; has 017f22e2; has 01FWHE4YDGFK1SHH6W1G60EECF; says "line 3: '@@@'"
run 1 inspect --json -; lines 3; json '[len(x["readings"]) > 0 for x in docs] == [True, False, True]'
: >in
run 0 inspect; check data test ! -s out
run 2 inspect --kind ulidx 1; says 'did you mean ulid?'
run 2 inspect --layout twiter 1; says 'did you mean twitter?'
run 2 inspect --layout 'time:0' 1; says '--layout'
run 2 inspect --kind ulid --layout twitter 1; says 'leave one of them out'
run 2 inspect --kind leaf --layout twitter 1; says 'leave one of them out'
run 2 inspect --encoding base99 1; says '--encoding'
run 1 inspect $'\e[2J'; says '\x1b[2J'
run 1 inspect --json $'\xff"\\\n'; json '"error" in d'

# ---- convert

run 0 convert --list; has base62; has kept
run 0 convert --list --json; json '[e for e in d if e["encoding"] == "hex" and e["ordered"]]'
run 0 convert --from uuid --to ulid 017f22e2-79b0-7cc3-98c4-dc0c0c07398f; is 01FWHE4YDGFK1SHH6W1G60EECF
run 0 convert --from ulid --to uuid 01FWHE4YDGFK1SHH6W1G60EECF; is 017f22e2-79b0-7cc3-98c4-dc0c0c07398f
run 0 convert --from uuid --to hex 017f22e2-79b0-7cc3-98c4-dc0c0c07398f; is 017f22e279b07cc398c4dc0c0c07398f
run 0 convert --from hex --to uuid 017f22e279b07cc398c4dc0c0c07398f; is 017f22e2-79b0-7cc3-98c4-dc0c0c07398f
run 0 convert -f decimal -t hex 255 18446744073709551615; is $'00000000000000ff\nffffffffffffffff'
run 0 convert -f decimal -t hex 18446744073709551616; is 00000000000000010000000000000000
run 0 convert -f decimal -t hex --bits 128 1; is 00000000000000000000000000000001
run 0 convert -f decimal -t uuid 1; is 00000000-0000-0000-0000-000000000001
for e in decimal hex crockford crockford-check base32hex base36 base58 base62 base64url; do
    for v in 0 1 1541815603606036480 18446744073709551615; do
        run 0 convert --from decimal --to $e $v; text=$(cat out)
        run 0 convert --from $e --to decimal -- "$text"; is $v
    done
    for v in 18446744073709551616 340282366920938463463374607431768211455; do
        run 0 convert --bits 128 --from decimal --to $e $v; text=$(cat out)
        run 0 convert --bits 128 --from $e --to decimal -- "$text"; is $v
    done
done
printf '1\n2\nx\n3\n' >in
run 1 convert -f decimal -t decimal; is $'1\n2\n3'; says "line 3: 'x' is not valid decimal"
: >in
run 0 convert -f decimal -t hex --json 255; json 'd["output"] == "00000000000000ff" and d["bits"] == 64'
run 1 convert -f decimal -t hex 340282366920938463463374607431768211456; says 'more than 128 bits'
run 1 convert -f decimal -t hex --bits 64 18446744073709551616; says 'give --bits 128'
run 1 convert -f decimal -t hex 007; says 'a leading zero'
run 1 convert -f hex -t decimal 12g4; says "'g' at column 3"
run 1 convert -f base58 -t decimal 10; says "'0' at column 2"
run 1 convert -f base64url -t decimal abc; says '11 for 64 bits and 22 for 128'
run 1 convert -f crockford-check -t decimal 1ASD13XH1F8001; says 'check symbol'
run 1 convert -f uuid -t ulid nope; says '8-4-4-4-12'
run 1 convert -f ulid -t uuid 8ZZZZZZZZZZZZZZZZZZZZZZZZZ; says '26 characters'
run 1 convert -f decimal -t hex ''; says 'the text is empty'
run 2 convert 1; says '--from and --to are required'
run 2 convert --from hex 1; says '--from and --to are required'
run 2 convert --from hx --to decimal 1; says 'did you mean hex?'
run 2 convert --from hex --to base65 1; says '--to'
run 2 convert --from hex --to decimal --bits 96 1; says 'give 64 or 128'
run 2 convert --from hex --to uuid --bits 64 1; says 'leave out --bits 64'

# ---- layout

run 0 layout; cp out direct; run 0 layout list; check 'not the same as layout' cmp -s out direct
for l in firn twitter discord instagram mastodon sonyflake uid-generator leaf tsid cockroach mission-8192 audit js53; do
    run 0 layout list; has "$l"
    run 0 layout explain $l; has 'runs out'; has 'fits int64'; quiet
    run 0 layout explain $l --json; json "d['name'] == '$l' and sum(f['bits'] for f in d['fields']) <= 64"
    text=$(python3 -c 'import json; print(json.load(open("out"))["layout"])')
    run 0 layout check "$text"; is "ok  $text"
done
run 0 layout list --json; json 'len(d) >= 13'
run 0 layout explain twitter; has '2080-07-10T17:30:30.209Z'; has '4,096,000 per second'; has '1,024'
has 'fits int64     yes'; has 'fits 2^53      no'; has 'sorts by time  yes'
run 0 layout explain js53; has 'fits 2^53      yes'
run 0 layout explain uid-generator; has 'it ran out on 2024-11-20'
run 0 layout explain mastodon; has 'read, not generated'
run 0 layout explain mission-8192; has 'become negative on'
run 0 layout check uid-generator; says 'run out'
run 1 layout check 'time:41,node:70'; check data test ! -s out
check 'no caret below the column' test "$(sed -n 3p err)" = '               ^'
for bad in 'time:0,node:5' 'node:5,seq:5' 'time:41@1h,node:5' 'time:60,node:10' 'time:41,node:10,seq:12;epoch=2999-01-01T00:00:00Z' 'time:41,node:10;epoch=x' 'time:41,time:2,node:1' ':' 'bogus:4'; do
    run 1 layout check "$bad"; check data test ! -s out; says "  $bad"
done
run 2 layout explain twiter; says 'did you mean twitter?'
run 1 layout check twitter leaf; has 'They can collide'; has 'dc 0, node 0, seq 0'
run 1 layout check twitter leaf --json; json 'd["collide"] and len(d["stamped_by"]) == 2'
run 0 layout check twitter js53; has 'ok'
run 0 layout check twitter js53 --json; json 'd["collide"] is False'
run 2 layout explain; says 'takes one layout'
run 2 layout explain a b; says 'takes one layout'
run 2 layout check; says 'one layout or two'
run 2 layout check a b c; says 'one layout or two'
run 2 layout list x; says 'takes no layout'
run 2 layout twitter; says "missing subcommand before 'twitter'"
run 2 layout frobnicate; says 'choose list, explain or check'

# ---- seal, unseal

run 0 seal --new-key; matches '1:[0-9a-f]{32}'; (umask 077; cp out keys); chmod 600 keys
run 0 seal --new-key 57; matches '57:[0-9a-f]{32}'
run 0 seal --new-key --json 3; json 'd["key_id"] == 3 and len(d["key"]) == 32'
run 2 seal --new-key 58; says 'from 0 to 57'
run 2 seal --new-key x; says 'from 0 to 57'
run 2 seal --new-key 1 2; says 'one key id'
run 2 seal --new-key --key-file keys; says 'changes no file'
run 0 seal --key-file keys 0 1541815603606036480 18446744073709551615; lines 3; quiet; cp out in
run 0 unseal --key-file keys; is $'0\n1541815603606036480\n18446744073709551615'; quiet
run 0 unseal --key-file keys --json; json 'd["id"] == "0" and len(d["sealed"]) == 23'
text=$(head -n 1 in); : >in
run 0 seal --key-file keys --json 5; json 'd["id"] == "5"'
run 1 unseal --key-file keys "${text%?}$([[ ${text: -1} == 2 ]] && echo 3 || echo 2)"; says 'changed since'
run 1 unseal --key-file keys "z${text:1}"; says 'is not here'
run 1 unseal --key-file keys short; says '23 characters'
run 1 seal --key-file keys x 7; lines 1; says "'x' is not a decimal number"
"$firn" seal --new-key 2 >>keys
run 0 unseal --key-file keys "$text"; is 0
chmod 644 keys; run 0 seal --key-file keys 1; says 'can be read by other users (mode 644)'; chmod 600 keys
"$firn" seal --new-key 2 >>keys
run 2 seal --key-file keys 1; says '--key-file keys'
run 2 seal 1; says '--key-file is required'
run 2 unseal 1; says '--key-file is required'
run 2 seal --key-file /nonexistent 1; says 'No such file'
run 2 seal --key-file . 1; says '--key-file'
echo 'not a key' >bad; chmod 600 bad; run 2 seal --key-file bad 1; says 'line 1'
head -c 100000 /dev/zero >bad; run 2 seal --key-file bad 1; says 'not a key file'

# ---- verify is tested in verify.sh; here only that it is hooked in

printf '1\n2\n1\n' >in
run 1 verify; has FAILED; run 1 verify --json; json 'd["ok"] is False'; : >in
run 2 verify --memory x; says '--memory x'
run 2 verify --max -1; says '--max'
run 2 verify /nonexistent; says '/nonexistent'

# ---- stores: what needs more than one process is in coordination.py

unset FIRN_STORE
for args in 'nodes' 'elect x -- true' 'lock x -- true' 'config get x'; do
    # shellcheck disable=SC2086
    run 2 $args; says '--store is required'
    # shellcheck disable=SC2086
    FIRN_STORE=etc://x run 2 $args; says "'etc://x' is no store"
    # shellcheck disable=SC2086
    FIRN_STORE=memory: run 2 $args; says 'lives in one process'
done
export FIRN_STORE=sqlite:coord.db
run 2 nodes; says 'firn admin init'
run 0 lock first -- true # which makes the store
run 0 nodes; lines 1; has 'NUMBER  NAME'
run 0 nodes --json; is '[]'
run 2 nodes x; says 'unexpected operand'
run 2 elect; says 'firn elect NAME -- COMMAND'
run 2 lock x; says 'firn lock NAME -- COMMAND'
run 2 lock 'a b' -- true; says 'NAME must be 1 to 64 characters of'
run 2 lock x --name 'a/b' -- true; says "--name 'a/b'"
run 2 lock x --ttl 10d -- true; says "--ttl '10d': give a time such as"
run 2 lock x --ttl 1ms -- true; says "--ttl '1ms'"
run 2 lock x --ttl 8s --grace 3s -- true; says '--grace 3000 ms is too long: at most a quarter of --ttl'
run 0 lock x --name me -- sh -c 'echo "$FIRN_FENCING_TOKEN $FIRN_LEADER_NAME $FIRN_ELECTION"'; is '1 me x'; quiet
run 3 elect x --name me -- sh -c 'echo "$FIRN_FENCING_TOKEN"; exit 3'; is 2; quiet
run 127 lock x -- ./nowhere; says "cannot run './nowhere'"
run 126 lock x -- ./in; says "cannot run './in'"
echo text from stdin >in
run 0 lock x -- cat; is 'text from stdin'
run 0 lock x -- sh -c 'sleep 1000 & echo $! >left'
ended() { # ended PID: gone, or waiting to be reaped by its new parent
    local i
    for ((i = 0; i < 1000; i++)); do
        grep -qs '^State:.[^ZX]' "/proc/$1/status" || return 0
        sleep 0.01
    done
    return 1
}
check 'what was left behind runs on' ended "$(cat left)"
run 0 nodes --all --json; json 'd[0]["state"] == "left" and d[0]["kind"] == "lock" and len(d) == 1'
run 0 config list; is ''
run 1 config get x; says 'was never set'
run 0 config set x -; quiet
run 0 config get x; is 'text from stdin'
run 0 config get x --json; json 'd["revision"] == 1 and d["value"] == "text from stdin"'
run 1 config set x y --if-revision 7; says "'x' has revision 1, not 7"
run 0 config set x y --if-revision 1 --json; json 'd["revision"] == 2'
run 0 config watch x --once; is y
run 0 config watch x --once -- sh -c 'echo "$FIRN_CONFIG_NAME=$FIRN_CONFIG_VALUE/$FIRN_CONFIG_REVISION"'; is 'x=y/2'
run 4 config watch x --once -- sh -c 'exit 4'; says 'status 4 for revision 2'
run 2 config set x "$(printf '%0769d' 0)"; says 'at most 768 bytes'
run 2 config; says 'get, set, watch or list'
run 2 config put x; says "unknown subcommand 'put'"
: >in
unset FIRN_STORE

# ---- lab

run 0 lab paxos; has 'Prepare(n=1)'; has 'Promise(n=1, accepted: none)'; has 'Accept(n=1, v=value_x, next=2)'; has 'Accepted(n=1)'; has 'agreed on value_x'; lacks $'\033'; quiet
check "not plain ASCII in the C locale" test -z "$(LC_ALL=C grep -n '[^ -~]' out)"
run 0 lab paxos --all --no-color; cp out direct
ran='lab paxos in colour'; CLICOLOR_FORCE=1 "$firn" lab paxos >out; check 'no colour' grep -q $'\033' out
ran='lab paxos --no-color'; CLICOLOR_FORCE=1 "$firn" lab paxos --no-color >out; check 'colour in spite of --no-color' cmp -s out direct
ran='lab paxos, NO_COLOR'; CLICOLOR_FORCE=1 NO_COLOR=1 "$firn" lab paxos >out; check 'colour in spite of NO_COLOR' cmp -s out direct
ran='lab paxos, UTF-8'; LC_ALL=C.UTF-8 "$firn" lab paxos >out; check 'no fine lines' grep -q '▶' out
run 0 lab paxos --json; json 'd["lab"] == "paxos" and d["faults"] == [] and d["cut"] is None and d["steps"][-1]["ms"] > 0'
run 0 lab paxos --json --duel --cut P1-A2 --seed 7; json 'd["faults"] == ["duel"] and d["cut"] == "P1-A2" and d["seed"] == "7"'
cp out direct; run 0 lab paxos --json --duel --cut P1-A2 --seed 7; check 'a seed is not a run' cmp -s out direct
for fault in --duel --kill-proposer --lose '--cut P1-A1' '--cut P1-A3'; do
    # shellcheck disable=SC2086
    run 0 lab paxos $fault; has 'learns: value_'; quiet
done
run 0 lab paxos --html page.html; quiet
check 'the page is not whole' grep -q '</html>' page.html
check 'the page refers to elsewhere' test -z "$(grep -oE '(src|href)="[^"d#][^"]*"|https?://[^ "<]*' page.html | grep -v 'http://www.w3.org/2000/svg')"
run 0 lab paxos --html -; check 'differs from the file' cmp -s out page.html
run 2 lab; says 'write firn lab raft, paxos, multi-paxos, election, queue or all'
ran='lab without firn-lab'; mkdir alone; cp "$firn" alone/firn
alone/firn lab paxos >out 2>err; check 'no exit status 2' test $? = 2; says 'firn-lab is missing: install it'
mkdir -p libexec/firn; cp "$(dirname "$firn")/firn-lab" libexec/firn; alone/firn lab paxos >out 2>err; has 'Prepare(n=1)'; rm -r alone libexec
ran='ldd'; ldd "$firn" >out 2>err; lacks libraft; ldd "$(dirname "$firn")/firn-lab" >out 2>err; has libraft
run 2 lab zab; says "no lab 'zab': choose raft, paxos, multi-paxos, election, queue or all"
run 2 lab paxos --kill-leader; says 'no --kill-leader: that is an option of firn lab raft'
run 2 lab raft --duel; says 'no --duel: that is an option of firn lab paxos'
run 2 lab paxos --herd; says 'an option of firn lab election'
run 2 lab election --cut A-B; says 'no links to cut'
run 2 lab all; says '--html FILE or --json'
run 2 lab all --json --duel; says 'every combination'
run 0 lab multi-paxos; has 'Prepare(n=1, slots from 1 on)'; has 'Accept(n=2, slot 1: x=1, 2: y=2, 3: z=3, 4: w=4)'; has 'Multi-Paxos: 36 messages, 6 round trips'; has 'plain Paxos: 60 messages, 10 round trips'; quiet
check "not plain ASCII in the C locale" test -z "$(LC_ALL=C grep -n '[^ -~]' out)"
for fault in --duel --lose --plain '--cut P1-A1' '--duel --lose --seed 7'; do
    # shellcheck disable=SC2086
    run 0 lab multi-paxos $fault; has 'this run:'; quiet
done
run 0 lab multi-paxos --lose --json; json 'd["lab"] == "multi-paxos" and d["faults"] == ["lose"] and any(s.get("state", {}).get("P2", {}).get("slot 3") == "no-op" for s in d["steps"])'
run 0 lab election; has '/election/0000000001'; has 'leader: /election/0000000002 is the lowest'; has 'all watch the leader: 4 + 0 + 2 notifications, 4 + 0 + 2 reads'; has 'watch the one before: 1 + 1 + 1 notifications, 1 + 1 + 1 reads'; quiet
check "not plain ASCII in the C locale" test -z "$(LC_ALL=C grep -n '[^ -~]' out)"
run 0 lab election --herd --json; json 'd["faults"] == ["herd"] and sum(s["event"] == "notified" for s in d["steps"]) == 6'
run 0 lab queue; has 'member/00000: mine'; has 'leader, fencing token 3'; has 'queue/lab: 2 3 4 5 becomes 2 3 5'; has 'its lease is over: leads no more'; has 'writes, by 1 process'; quiet
run 2 lab queue --herd; says 'no --herd: that is an option of firn lab election'
run 0 lab all --json; json 'd["open"] is None and [l["lab"] for l in d["labs"]] == ["raft", "paxos", "multi-paxos", "election", "queue"] and [len(l["traces"]) for l in d["labs"]] == [32, 32, 32, 2, 1]'
run 2 lab paxos --cut A-B; says 'P1-A1, P1-A2 and P1-A3'
run 2 lab paxos --html no/such/page; says 'no/such/page: No such file'
run 2 lab paxos --html /dev/full; says '/dev/full: No space left'
run 2 lab paxos --json --html x; says 'choose one'
run 0 lab raft; has 'set x = 5'; has 'new entry: term 3, index 10, set x = 5'; has 'success(term 3, index 10)'; has 'A and B have it, 2 of 3: commits 10'; has 'RequestVote(term 4'; has 'leader of term 4'; quiet
for fault in --kill-leader --no-pre-vote --lose '--cut A-B' '--cut A-C' '--kill-leader --cut B-C'; do
    # shellcheck disable=SC2086
    run 0 lab raft $fault; has 'commits 10'; has 'leader of term'; quiet
done
run 0 lab raft --json --kill-leader; json '[s for s in d["steps"] if s["event"] == "leader"][0]["term"] == 4'
# On a terminal: Enter, s, q.
ran='lab paxos on a terminal'
python3 - "$firn" >out 2>err <<'PY'
import os, pty, re, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "lab", "paxos"])
def until(text):
    got = b""
    while text not in got:
        if not select.select([fd], [], [], 60)[0]:
            sys.exit("no '%s' in a minute: %r" % (text, got))
        try:
            got += os.read(fd, 4096)
        except OSError:
            sys.exit("ended before '%s': %r" % (text, got))
    return got
until(b"[1 of 40]")
os.write(fd, b"\n")
second = until(b"[2 of 40]")
os.write(fd, b"s\n")
state = until(b"[2 of 40]")
os.write(fd, b"q\n")
_, status = os.waitpid(pid, 0)
ok = b"wants value_x" in second and b"promised" in state and b"\033[" in second and status == 0
print("well" if ok else "not well: %r %r %d" % (second, state, status))
PY
is well

# ---- completion

for shell in bash zsh fish; do
    run 0 completion $shell; has gen; has uuidv7; has mission-8192; has base64url; has key-file
    if command -v $shell >/dev/null; then check "$shell -n" $shell -n out; fi
done
run 2 completion; says 'missing shell'
run 2 completion tcsh; says 'bash, zsh or fish'
run 0 completion bash
completes() { # completes WANT WORDS...
    local want=$1
    shift
    ran="completion of $*"
    check "completes to something else than $want" test "$want" = "$(bash -c 'source ./out; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _firn; echo "${COMPREPLY[*]}"' - "$@")"
}
completes gen firn ge
completes 'ulid' firn gen ul
completes '--layout' firn gen --la
completes 'sonyflake' firn gen --layout so
completes 'twitter' firn layout explain tw
completes 'base58' firn convert --from base5
completes 'wait' firn gen snowflake --policy w
completes 'keys' firn seal --key-file key
completes '--ttl' firn elect --t
completes 'watch' firn config wa
completes 'paxos' firn lab pa
completes '--kill-leader' firn lab --kill-l
completes 'B-C' firn lab raft --cut B

# ---- ends that are not ours

for args in 'gen ulid -n 10' 'gen ulid -n 10M' 'gen ulid -n 100k --json' 'gen' 'inspect 17' 'convert --list' 'layout list' 'layout explain firn' 'help' 'gen --help' 'completion zsh' 'version' 'seal --new-key' 'lab raft' 'lab election' 'lab paxos --json' 'lab paxos --html -'; do
    ran="$args >/dev/full"; : >out
    # shellcheck disable=SC2086
    "$firn" $args >/dev/full 2>err
    check 'status' test $? = 2; says 'No space left on device'
done
for args in 'gen ulid -n 10M' 'gen snowflake -n 10M' 'gen nanoid -n 1M --json' 'completion zsh' 'layout list'; do
    ran="$args | head -1"
    # shellcheck disable=SC2086
    "$firn" $args 2>err | head -n 1 >out
    check "status ${PIPESTATUS[0]}" test "${PIPESTATUS[0]}" = 0; quiet
done
ran='inspect | true'; : >out
yes 017f22e2-79b0-7cc3-98c4-dc0c0c07398f | head -n 200000 | "$firn" inspect 2>err | true
quiet
ran='gen >&-'; "$firn" gen ulid >&- 2>err; check 'status' test $? = 2; says 'cannot write'
ran='inspect <&-'; "$firn" inspect <&- >out 2>err; check 'status' test $? = 2; says 'cannot read'
ran='inspect <.'; "$firn" inspect <. >out 2>err; check 'status' test $? = 2; says 'cannot read'

echo "$passed passed, $failed failed"
((failed == 0))
