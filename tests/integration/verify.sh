#!/bin/sh
# firn verify as its users see it: verify.sh FOLDER-OF-PROGRAMS
# Every case gives input, options, the exit status, and lines that the output must have.
# shellcheck disable=SC2015 # pass and fail always succeed, so `a && pass || fail` is an if
set -u
LC_ALL=C
export LC_ALL

case ${1:-} in
'') echo "usage: $0 FOLDER-OF-PROGRAMS" >&2 && exit 2 ;;
/*) firn=$1/firn ;;
*) firn=$PWD/$1/firn ;;
esac
[ -x "$firn" ] || { echo "$0: $firn: not a program" >&2; exit 2; }

work=$(mktemp -d) || exit 2
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 2
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR

passed=0
failed=0
name=

# verify STATUS ARGS...: run on the file `in` as standard input; output in `out`, complaints in `err`.
verify()
{
    want=$1
    shift
    "$firn" verify "$@" <in >out 2>err
    got=$?
    [ "$got" = "$want" ] && pass || fail "exit status $got instead of $want: firn verify $*"
}

pass()
{
    passed=$((passed + 1))
}

fail()
{
    failed=$((failed + 1))
    echo "FAIL $name: $1"
    sed 's/^/    out: /' out | head -n 20
    sed 's/^/    err: /' err | head -n 5
    true
}

# The output has this very line (runs of blanks count as one).
has()
{
    tr -s ' ' <out | sed 's/^ //' | grep -qxF -- "$1" && pass || fail "no line '$1'"
}

lacks()
{
    grep -qF -- "$1" out && fail "a line with '$1'" || pass
}

complains()
{
    grep -qF -- "$1" err && pass || fail "does not complain of '$1'"
}

silent()
{
    [ -s err ] && fail "talks on stderr" || pass
}

test_case()
{
    name=$1
    : >in
    : >out
    : >err
}

# ---- small inputs

test_case 'unique is the default'
printf '3\n1\n2\n' >in
verify 0
has 'lines 3'
has 'IDs 3'
has 'distinct 3'
has 'smallest 1'
has 'largest 3'
has 'unique ok'
lacks 'sorted'
lacks 'gapless'
silent

test_case 'holes do not matter to unique'
printf '1\n100\n' >in
verify 0
has 'unique ok'

test_case 'a repeated number'
printf '5\n6\n5\n5\n' >in
verify 1 --unique
has 'distinct 2'
has 'unique FAILED: 2 repeated IDs'
has '(stdin):3 5 first at (stdin):1'
has '(stdin):4 5 first at (stdin):1'

test_case 'offenders are shown in the order of lines, the first --max of them'
{ seq 50 -1 1; seq 1 50; } >in
verify 1 --max 3
has 'unique FAILED: 50 repeated IDs'
has '(stdin):51 1 first at (stdin):50'
has '(stdin):52 2 first at (stdin):49'
has '(stdin):53 3 first at (stdin):48'
lacks '(stdin):54'
has '... and 47 more'
[ "$(grep -c 'first at' out)" = 3 ] && pass || fail 'not three offenders'
{ seq 1 50; seq 50 -1 1; } >in
verify 1
[ "$(awk '/first at/ { print $1 }' out | tr '\n' ' ')" = \
    "$(seq -f '(stdin):%g' 51 60 | tr '\n' ' ')" ] && pass || fail 'not the first ten lines'
verify 1 --max 0
lacks 'first at'
has '... and 50 more'

test_case 'several files are one input'
printf '1\n2\n' >a
printf '\n' >b
: >c
printf '3\n2\n' >d
verify 1 a b c d
has 'lines 5'
has 'empty 1'
has 'd:2 2 first at a:2'
printf '9\n1\n' >in
verify 1 a - d
has '(stdin):2 1 first at a:1'
has 'd:2 2 first at a:2'

test_case 'sorted'
printf '1\n2\n10\n18446744073709551615\n' >in
verify 0 --sorted
has 'sorted ok'
has 'distinct 4'
lacks 'unique'
printf '1\n10\n2\n2\n3\n' >in
verify 1 --sorted
has 'sorted FAILED: 2 lines not above the ID before'
has '(stdin):3 2 after 10 at (stdin):2'
has '(stdin):4 2 after 2 at (stdin):3'
has 'distinct unknown (add --unique)'
verify 1 --sorted --unique
has 'distinct 4'
has 'unique FAILED: 1 repeated ID'
verify 1 -su
has 'distinct 4'

test_case 'sorted across files'
printf '1\n2\n' >a
printf '2\n3\n' >b
verify 1 --sorted a b
has 'b:1 2 after 2 at a:2'
verify 1 --sorted b a
has 'a:1 1 after 3 at b:2'

test_case 'sorted texts go by bytes'
printf 'B\na\naa\nb\n' >in
verify 0 --sorted
printf 'a\nB\n' >in
verify 1 --sorted
has '(stdin):2 B after a at (stdin):1'

test_case 'gapless'
printf '12\n10\n11\n13\n' >in
verify 0 --gapless
has 'gapless ok'
printf '10\n12\n11\n14\n20\n10\n' >in
verify 1 --gapless
has 'gapless FAILED: 2 holes, 6 numbers missing'
has '13'
has '15-19 (5)'
lacks 'unique'
verify 1 --gapless --unique
has 'unique FAILED: 1 repeated ID'

test_case 'gapless to the ends of 64 bits'
printf '18446744073709551615\n0\n' >in
verify 1 --gapless
has 'gapless FAILED: 1 hole, 18446744073709551614 numbers missing'
has '1-18446744073709551614 (18446744073709551614)'
printf '18446744073709551615\n18446744073709551614\n' >in
verify 0 --gapless

test_case 'gapless shows ten holes'
seq 1 2 101 >in
verify 1 --gapless
has 'gapless FAILED: 50 holes, 50 numbers missing'
has '20'
lacks '  22'
has '... and 40 more'

test_case 'gapless refuses texts'
printf '1\n2\nx\n' >in
verify 2 --gapless
complains '(stdin):3: not a decimal number'
complains 'numbers only'
printf '1\n02\n' >in
verify 2 --gapless

test_case 'what is a number and what is a text'
printf '7\n07\n+7\n-7\n 7\n18446744073709551615\n18446744073709551616\n99999999999999999999\n0\n00\n' >in
verify 0
has 'mixed 3 numbers and 7 texts'
has 'smallest 0'
has 'largest 99999999999999999999'
has 'unique ok'
printf '123456789012345678901\n1234567x\n12345678x\n1234567812345678x\n' >in
verify 0
lacks 'mixed'

test_case 'every length of number'
awk 'BEGIN { s = ""; for (i = 1; i <= 19; i++) { s = s (i % 10); print s } }' >in
verify 0 --sorted --unique
has 'smallest 1'
has 'largest 1234567890123456789'
lacks mixed

test_case 'bytes around the digits are no digits'
awk 'BEGIN { for (i = 0; i < 8; i++) { s = "11111111"; a = substr(s, 1, i); b = substr(s, i + 2)
    print a "/" b; print a ":" b; print a " " b; print a "?" b } }' >in
verify 0
has 'IDs 32'
lacks 'mixed'

test_case 'mixed kinds repeat within their kind only'
printf 'x\n1\n01\n1\nx\n' >in
verify 1
has 'mixed 2 numbers and 3 texts'
has 'unique FAILED: 2 repeated IDs'
has '(stdin):4 1 first at (stdin):2'
has '(stdin):5 x first at (stdin):1'

test_case 'numbers sort before texts'
printf '1\n2\na\nb\n' >in
verify 0 --sorted
printf '1\na\n2\n' >in
verify 1 --sorted
has '(stdin):3 2 after a at (stdin):2'

test_case 'CRLF, and a last line without its end'
printf '1\r\n2\r\n\r\n1' >in
verify 1
has 'lines 4'
has 'empty 1'
has 'IDs 3'
has '(stdin):4 1 first at (stdin):1'
printf 'a\r\r\na\r\n' >in
verify 0

test_case 'nothing at all'
verify 0
has 'lines 0'
has 'smallest -'
complains 'no IDs'
printf '\n\n\r\n' >in
verify 0 --unique --sorted --gapless
has 'lines 3'
has 'empty 3'

# ---- odd lines

x128=$(printf '%0128d' 0)
test_case 'a line of 128 bytes is an ID, one of 129 is malformed'
printf '%s\r\n%s1\n5\n%s1' "$x128" "$x128" "$x128" >in
verify 1
has 'lines 4'
has 'IDs 2'
has 'malformed 2 lines longer than 128 bytes'
has '(stdin):2'
has '(stdin):4'
has 'unique ok'

test_case 'lines longer than any buffer'
{ echo 1; head -c 3000000 /dev/zero | tr '\0' x; echo; echo 2; head -c 1048576 /dev/zero | tr '\0' 7
  printf '\n1\n'; head -c 2500000 /dev/zero; } >in
verify 1
has 'lines 6'
has 'IDs 3'
has 'malformed 3 lines longer than 128 bytes'
has '(stdin):6'
has '(stdin):5 1 first at (stdin):1'

test_case 'lines across every place of a block boundary'
for pad in 0 1 2 7 8 127 128 129 130; do
    head -c $((1048576 - pad)) /dev/zero | tr '\0' '\n' >in
    printf '12345678901234567890123456789\r\n42\n' >>in
    verify 0
    has 'IDs 2'
    has 'largest 12345678901234567890123456789'
done

test_case 'binary garbage'
awk 'BEGIN { srand(7); for (i = 0; i < 20000; i++) printf "%c", int(rand() * 256) }' >in
"$firn" verify <in >out 2>err
[ $? -le 1 ] && pass || fail 'exit status'
tr -cd '\000-\011\013-\037\177' <out >odd
[ -s odd ] && fail 'control characters reach the terminal' || pass
iconv -f UTF-8 -t UTF-8 <out >odd 2>&1 && pass || fail 'the report is not UTF-8'
printf '\302\233A\n\303\251\n' >in
verify 0
has 'smallest \xc2\x9bA'
has "largest $(printf '\303\251')"
printf 'a\000b\na\000c\n\033[31m\na\000b\n\377\n\033[31m\n' >in
verify 1
has '(stdin):4 a\x00b first at (stdin):1'
has '(stdin):6 \x1b[31m first at (stdin):3'
has 'largest \xff'
printf 'a\na\000\na\000\000\n' >in
verify 0 --unique --sorted

# ---- more than fits

test_case 'numbers that spill'
seq 1 300000 | awk '{ print ($1 * 7919) % 1000003 }' >in
verify 0 --memory 1M --unique
has 'distinct 300000'
verify 1 --memory 1M --sorted

cp in spilled

test_case 'repeats across runs'
{ cat spilled; sed -n '1p;150000p;300000p' spilled; } >in
one=$(sed -n 1p in)
mid=$(sed -n 150000p in)
end=$(sed -n 300000p in)
verify 1 --memory 1M
has 'unique FAILED: 3 repeated IDs'
has "(stdin):300001 $one first at (stdin):1"
has "(stdin):300002 $mid first at (stdin):150000"
has "(stdin):300003 $end first at (stdin):300000"
cp out out.spilled
verify 1 --memory 1G
cmp -s out out.spilled && pass || fail 'other than with more memory'

test_case 'repeats on both sides of a spill'
seq 1 32767 >in
printf '9\n9\n32767\n32768\n32768\n' >>in
verify 1 --memory 1M
has '(stdin):32768 9 first at (stdin):9'
has '(stdin):32769 9 first at (stdin):9'
has '(stdin):32770 32767 first at (stdin):32767'
has '(stdin):32772 32768 first at (stdin):32771'
has 'unique FAILED: 4 repeated IDs'

test_case 'everything the same, spilled'
yes 77 | head -n 200000 >in
verify 1 --memory 1M --max 2
has 'distinct 1'
has '(stdin):2 77 first at (stdin):1'
has '... and 199997 more'
yes abc | head -n 200000 >in
verify 1 --memory 1M --max 2
has 'distinct 1'
has '(stdin):2 abc first at (stdin):1'

test_case 'holes across runs'
seq 300000 -1 1 | sed '/^150000$/d;/^7[0-9]$/d' >in
verify 1 --memory 1M --gapless --unique
has 'unique ok'
has 'gapless FAILED: 2 holes, 11 numbers missing'
has '70-79 (10)'
has '150000'

test_case 'more runs than one merge takes'
# 1M gives runs of 32768 numbers and merges 32 of them at once: 1.2 million lines need a second pass.
seq 1 1200000 | awk '{ print ($1 * 104729) % 10000019 }' >in
sed -n 17p in >>in
verify 1 --memory 1M
has 'distinct 1200000'
has "(stdin):1200001 $(sed -n 17p in) first at (stdin):17"

test_case 'texts that spill'
seq 1 200000 | awk '{ printf "order-%s-%07d\n", $1 % 3 ? "eu" : "us", ($1 * 7919) % 1000003 }' >in
sed -n '3p;199999p' in >in2
cat in2 >>in
verify 1 --memory 1M
has 'distinct 200000'
has "(stdin):200001 $(sed -n 1p in2) first at (stdin):3"
has "(stdin):200002 $(sed -n 2p in2) first at (stdin):199999"
has "smallest $(sort in | head -n 1)"
has "largest $(sort in | tail -n 1)"

test_case 'texts of all lengths, more runs than one merge takes'
awk 'BEGIN { srand(3); for (i = 0; i < 250000; i++) { n = int(rand() * 60); s = i
    while (length(s) < n) s = s "z"; print "k" s } }' >in
cp in in2
verify 0 --memory 1M
cat in2 >>in
verify 1 --memory 1M --max 1
has 'distinct 250000'
has 'unique FAILED: 250000 repeated IDs'
has "(stdin):250001 $(sed -n 1p in) first at (stdin):1"

test_case 'both kinds spill'
seq 1 200000 | awk '{ print $1 % 2 ? $1 : "t" $1 }' >in
verify 0 --memory 1M
has 'mixed 100000 numbers and 100000 texts'
sed -n '5p;6p' in >>in
verify 1 --memory 1M
has '(stdin):200001 5 first at (stdin):5'
has '(stdin):200002 t6 first at (stdin):6'
{ seq 1 100000; echo x; seq 100001 150000; echo 3; echo x; } >in
verify 1 --memory 1M
has '(stdin):150002 3 first at (stdin):3'
has '(stdin):150003 x first at (stdin):100001'

test_case 'nothing is left in TMPDIR'
[ -z "$(ls -A tmp)" ] && pass || fail 'files remain'

# ---- trouble

test_case 'a file that is not there'
printf '1\n' >a
verify 2 a missing
complains 'missing: No such file'
[ -s out ] && fail 'reports all the same' || pass

test_case 'a folder'
verify 2 tmp
complains 'tmp: is a folder'

test_case 'a file without permission'
chmod 000 d
if [ "$(id -u)" != 0 ]; then
    verify 2 d
    complains 'd: Permission denied'
fi
chmod 600 d

test_case 'TMPDIR that does not exist'
seq 1 100000 >in
TMPDIR=$work/nowhere verify 2 --memory 1M
complains "$work/nowhere"
complains 'set TMPDIR'
complains '--memory'
TMPDIR=$work/nowhere verify 0
TMPDIR=$work/nowhere verify 0 --memory 1M --sorted

test_case 'no space for temporary files'
seq 1 100000 >in
# A limit on the size of files is the full disk that needs no root.
(trap '' XFSZ; ulimit -f 100; "$firn" verify --memory 1M <in >out 2>err)
[ $? = 2 ] && pass || fail 'exit status'
complains 'no space left'
complains 'set TMPDIR'

test_case 'wrong usage'
for args in --nonsense -x --memory '--memory 5' '--memory 12X' '--memory 99999999999G' --memory= \
    '--max -1' '--max x' '--max 10001' --json=1; do
    # shellcheck disable=SC2086 # the words are the arguments
    verify 2 $args
    complains 'firn verify: '
    [ -s out ] && fail "prints on stdout: $args" || pass
done
verify 2 --nonsense
complains 'unknown option --nonsense'
verify 2 --memory
complains '--memory needs a value'

test_case 'help begins with examples'
verify 0 --help
[ "$(head -n 1 out)" = Examples: ] && pass || fail 'no examples first'
silent

test_case 'sizes'
printf '1\n' >in
for size in 1M 1024K 1048576 2g 64m; do
    verify 0 --memory $size
done

test_case 'a reader that goes away'
yes 5 | head -n 30000 >in
{ "$firn" verify --max 10000 <in 2>err; echo $? >status; } | head -n 1 >out
silent
(trap '' PIPE; { "$firn" verify --max 10000 <in 2>err; echo $? >status; } | head -n 1 >out)
silent
[ "$(cat status)" = 1 ] && pass || fail "exit status $(cat status)"

test_case 'a report that cannot be written'
if [ -w /dev/full ]; then
    "$firn" verify <in >/dev/full 2>err
    [ $? = 2 ] && pass || fail 'exit status'
    complains 'cannot write: No space left on device'
fi

# ---- JSON

# The output is this one line.
is()
{
    [ "$(cat out)" = "$1" ] && pass || fail "not '$1'"
}

test_case 'JSON'
printf '1\n2\n2\n\n' >in
verify 1 --json
is '{"ok":false,"lines":4,"empty":1,"ids":3,"numbers":3,"texts":0,"distinct":2,"smallest":"1","largest":"2","malformed":{"ok":true,"count":0,"first":[]},"unique":{"ok":false,"count":1,"first":[{"file":"(stdin)","line":3,"id":"2","first_file":"(stdin)","first_line":2}]}}'
printf '1\n5\n4\n' >in
verify 1 --json --sorted
is '{"ok":false,"lines":3,"empty":0,"ids":3,"numbers":3,"texts":0,"distinct":null,"smallest":"1","largest":"5","malformed":{"ok":true,"count":0,"first":[]},"sorted":{"ok":false,"count":1,"first":[{"file":"(stdin)","line":3,"id":"4","after_id":"5","after_file":"(stdin)","after_line":2}]}}'
verify 1 --json --gapless
is '{"ok":false,"lines":3,"empty":0,"ids":3,"numbers":3,"texts":0,"distinct":3,"smallest":"1","largest":"5","malformed":{"ok":true,"count":0,"first":[]},"gapless":{"ok":false,"count":1,"missing":"2","first":[{"from":"2","to":"3"}]}}'
: >in
verify 0 --json
is '{"ok":true,"lines":0,"empty":0,"ids":0,"numbers":0,"texts":0,"distinct":0,"smallest":null,"largest":null,"malformed":{"ok":true,"count":0,"first":[]},"unique":{"ok":true,"count":0,"first":[]}}'

test_case 'a byte order mark is no part of an ID'
printf '\357\273\2771\n2\n3\n' >in
verify 0 --unique --gapless
has 'lines 3'
verify 0 --unique --sorted
cp in marked
printf '1\n' >in
verify 1 --unique marked in
test_case 'UTF-16 is refused with the cure'
printf '\377\3761\0\n\0' >in
verify 2
grep -qF iconv err && pass || fail 'no cure'

test_case 'a UUID in two letter cases is one ID'
printf '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n017F22E2-79B0-7CC3-98C4-DC0C0C07398F\n' >in
verify 1
verify 1 --follow --idle 200ms
printf 'V1StGXR8_Z5jdHi6B-myT\nv1StGXR8_Z5jdHi6B-myT\n' >in # other kinds have two
verify 0

if command -v gzip >/dev/null; then
    test_case 'gzip files are read as they are'
    seq 1 200000 | gzip >in
    verify 0 --unique --sorted --gapless
    has 'IDs 200000'
    cp in a.gz
    seq 200001 300000 | gzip >b.gz
    verify 0 --gapless a.gz b.gz
    cat a.gz b.gz >both.gz # two members in one file
    verify 0 --gapless both.gz
    has 'IDs 300000'
    seq 300000 300001 >plain
    verify 1 --unique both.gz plain
    test_case 'gzip data that is damaged or ends early'
    head -c 100000 both.gz >cut.gz
    verify 2 cut.gz
    grep -qF truncated err && pass || fail 'no reason'
    { head -c 5000 a.gz; printf '\1\2\3'; tail -c +5004 a.gz; } >bad.gz
    verify 2 bad.gz
    printf '\037\213' >in
    verify 2
fi

test_case 'JSON of any bytes is valid'
awk 'BEGIN { srand(9); for (i = 0; i < 20000; i++) printf "%c", int(rand() * 256)
    print ""; for (i = 1; i < 256; i++) printf "\"\\%c\n\"\\%c\n", i, i }' >in
verify 1 --json --unique --sorted --max 1000
if command -v jq >/dev/null; then
    jq -e .lines out >/dev/null 2>err && pass || fail 'jq does not take it'
fi
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.loads(sys.stdin.buffer.read().decode("utf-8"))' <out 2>err &&
        pass || fail 'python does not take it'
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
