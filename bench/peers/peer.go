// Times google/uuid and oklog/ulid. Prints KEY, what, median and best ns a call, separated by tabs.
package main

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand"
	"sort"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid"
)

const (
	rounds = 9
	runNs  = 20 * time.Millisecond
)

// What a call made stays reachable, so that no call is dropped as useless.
var (
	lastUUID uuid.UUID
	lastULID ulid.ULID
	lastText string
)

type row struct {
	key, what string
	call      func()
}

func nsPerCall(call func()) float64 {
	n, start := 0, time.Now()
	for {
		for i := 0; i < 64; i++ {
			call()
		}
		n += 64
		if d := time.Since(start); d >= runNs {
			return float64(d.Nanoseconds()) / float64(n)
		}
	}
}

func report(rows []row) {
	for _, r := range rows {
		nsPerCall(r.call)
		got := make([]float64, rounds)
		for i := range got {
			got[i] = nsPerCall(r.call)
		}
		sort.Float64s(got)
		fmt.Printf("%s\t%s\t%.3f\t%.3f\n", r.key, r.what, got[rounds/2], got[0])
	}
}

func main() {
	monotonic := ulid.Monotonic(mathrand.New(mathrand.NewSource(time.Now().UnixNano())), 0)
	report([]row{
		{"uuid4", "google/uuid New", func() { lastUUID = uuid.New() }},
		{"uuid4.text", "google/uuid New().String", func() { lastText = uuid.New().String() }},
		{"uuid1", "google/uuid NewUUID (v1)", func() { lastUUID, _ = uuid.NewUUID() }},
		{"uuid.parse", "google/uuid Parse", func() {
			lastUUID, _ = uuid.Parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
		}},
		{"ulid", "oklog/ulid New, crypto/rand", func() { lastULID = ulid.MustNew(ulid.Now(), rand.Reader) }},
		{"ulid.mono", "oklog/ulid Monotonic, math/rand", func() { lastULID = ulid.MustNew(ulid.Now(), monotonic) }},
		{"ulid.mono.text", "oklog/ulid Monotonic, math/rand, String", func() {
			lastText = ulid.MustNew(ulid.Now(), monotonic).String()
		}},
		{"ulid.parse", "oklog/ulid ParseStrict", func() { lastULID, _ = ulid.ParseStrict("01ARZ3NDEKTSV4RRFFQ69G5FAV") }},
	})
	uuid.EnableRandPool()
	report([]row{
		{"uuid4", "google/uuid New, rand pool", func() { lastUUID = uuid.New() }},
		{"uuid4.text", "google/uuid New().String, rand pool", func() { lastText = uuid.New().String() }},
	})
}
