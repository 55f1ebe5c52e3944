// Takes IDs and tickets from firnd with Go's standard library, over the Redis protocol or over HTTP.
//
//	go run firn_ids.go 127.0.0.1:9012,127.0.0.1:9022,127.0.0.1:9032 10
//	go run firn_ids.go http://127.0.0.1:9012,http://127.0.0.1:9022 10
//
// It stays with one server while that answers, and goes on to the next when it does not. Asking again is safe: a
// Snowflake ID that was lost on its way is simply never used, and a ticket is asked for with a key, to which every server
// gives the same number again, so that a gapless sequence has no hole.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	timeout = 2 * time.Second // to connect, and for an answer
	rounds  = 4               // over all addresses, pause apart
	pause   = time.Second
)

// Refused is an error that another server would answer, too: the request is wrong, or not allowed.
type Refused string

func (r Refused) Error() string { return string(r) }

// One server. The key of a ticket is empty for a Snowflake ID.
type server interface {
	ask(key string) (uint64, error)
	close()
}

// --- the Redis protocol ---

type resp struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(address string) (server, error) {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	return &resp{conn, bufio.NewReader(conn)}, nil
}

func (r *resp) close() { r.conn.Close() }

func (r *resp) line() (string, error) {
	text, err := r.in.ReadString('\n')
	return strings.TrimSuffix(text, "\r\n"), err
}

func (r *resp) ask(key string) (uint64, error) {
	words := []string{"FIRN.NEXT", "snowflake"}
	if key != "" {
		words = []string{"FIRN.NEXT", "ticket", "KEY", key}
	}
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	r.conn.SetDeadline(time.Now().Add(timeout))
	if _, err := r.conn.Write([]byte(request)); err != nil {
		return 0, err
	}
	text, err := r.line()
	if err == nil && strings.HasPrefix(text, "$") {
		text, err = r.line()
	}
	switch {
	case err != nil:
		return 0, err
	case strings.HasPrefix(text, "-TRYAGAIN"): // its store is away; nothing was handed out
		return 0, errors.New(text)
	case strings.HasPrefix(text, "-"):
		return 0, Refused(text[1:])
	}
	return strconv.ParseUint(strings.TrimPrefix(text, ":"), 10, 64)
}

// --- HTTP ---

type web string

var client = &http.Client{Timeout: timeout}

func (w web) close() {}

func (w web) ask(key string) (uint64, error) {
	request, err := http.NewRequest("GET", string(w)+"/v1/ids/snowflake", nil)
	if key != "" {
		request, err = http.NewRequest("POST", string(w)+"/v1/sequences/default/next", nil)
	}
	if err != nil {
		return 0, Refused(err.Error())
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var body struct {
		ID     uint64 `json:"id,string"` // a string in JSON, because many parsers round numbers above 2^53
		Detail string `json:"detail"`
	}
	err = json.NewDecoder(answer.Body).Decode(&body)
	switch {
	case answer.StatusCode == http.StatusServiceUnavailable, answer.StatusCode == http.StatusTooManyRequests:
		return 0, fmt.Errorf("%s: %s", answer.Status, body.Detail)
	case answer.StatusCode != http.StatusOK:
		return 0, Refused(answer.Status + ": " + body.Detail)
	}
	return body.ID, err
}

// --- several servers ---

// Firn asks one server after another. It is for one goroutine at a time.
type Firn struct {
	addresses []string
	server    server
}

func (f *Firn) connected() (server, error) {
	if f.server == nil {
		address := f.addresses[0]
		if strings.Contains(address, "://") {
			f.server = web(address)
		} else if s, err := dial(address); err != nil {
			return nil, err
		} else {
			f.server = s
		}
	}
	return f.server, nil
}

func (f *Firn) ask(key string) (uint64, error) {
	var tried []string
	for attempt := 0; attempt < rounds*len(f.addresses); attempt++ {
		if attempt > 0 && attempt%len(f.addresses) == 0 {
			time.Sleep(pause)
		}
		s, err := f.connected()
		if err == nil {
			var id uint64
			if id, err = s.ask(key); err == nil {
				return id, nil
			}
		}
		var refused Refused
		if errors.As(err, &refused) {
			return 0, err
		}
		tried = append(tried, f.addresses[0]+": "+err.Error())
		f.Close()
		f.addresses = append(f.addresses[1:], f.addresses[0])
	}
	return 0, fmt.Errorf("no server answered: %s", strings.Join(tried, "; "))
}

// Snowflake gives a Snowflake ID.
func (f *Firn) Snowflake() (uint64, error) { return f.ask("") }

// Ticket gives the next number of the sequence "default"; every attempt has the same key.
func (f *Firn) Ticket() (uint64, error) {
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		return 0, err
	}
	return f.ask(fmt.Sprintf("%x", key))
}

// Close ends the connection.
func (f *Firn) Close() {
	if f.server != nil {
		f.server.close()
	}
	f.server = nil
}

func main() {
	count := -1
	if len(os.Args) == 3 {
		if n, err := strconv.Atoi(os.Args[2]); err == nil {
			count = n
		}
	}
	if count < 0 {
		fmt.Fprintln(os.Stderr, "usage: firn_ids ADDRESS[,ADDRESS...] COUNT; an address is HOST:PORT or http://HOST:PORT")
		os.Exit(2)
	}
	firn := &Firn{addresses: strings.Split(os.Args[1], ",")}
	defer firn.Close()
	for ; count > 0; count-- {
		id, err := firn.Snowflake()
		var ticket uint64
		if err == nil {
			ticket, err = firn.Ticket()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("Snowflake ID: %d, Ticket ID: %d\n", id, ticket)
	}
}
