package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const longestStart = time.Minute

// A server at a free port of this machine, with its files in a directory.
type server struct {
	kind      string
	directory string
	port      int
	process   *exec.Cmd
}

// Both kinds: a real redis-server shows where a test itself is wrong. Set by TestMain.
var servers []*server

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	directory, err := os.MkdirTemp("", "aiodb-clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(directory)
	for _, kind := range []string{"aiodb", "redis-server"} {
		server, err := newServer(kind, filepath.Join(directory, kind))
		if err != nil {
			return 0, err
		}
		defer server.stop()
		servers = append(servers, server)
	}
	return m.Run(), nil
}

// onEach runs a test with each server, which is empty.
func onEach(t *testing.T, test func(t *testing.T, server *server)) {
	for _, server := range servers {
		t.Run(server.kind, func(t *testing.T) {
			client := server.client(t, redis.Options{})
			must(t, client.FlushAll(context.Background()).Err())
			test(t, server)
		})
	}
}

func newServer(kind, directory string) (*server, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer taken.Close()
	server := &server{kind: kind, directory: directory, port: taken.Addr().(*net.TCPAddr).Port}
	taken.Close()
	return server, server.start()
}

// Starts it, at first or again, and waits until it answers.
func (s *server) start() error {
	port := strconv.Itoa(s.port)
	s.process = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "yes")
	if s.kind == "aiodb" {
		s.process = exec.Command(os.Getenv("AIODB"), "serve", "data", "--port", port)
	}
	log, err := os.OpenFile(filepath.Join(s.directory, "server.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process.Dir, s.process.Stdout, s.process.Stderr = s.directory, log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.address(), MaxRetries: -1})
	defer client.Close()
	for began := time.Now(); client.Ping(context.Background()).Err() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > longestStart {
			s.stop()
			return errors.New(s.kind + " does not start")
		}
	}
	return nil
}

// Ends it and waits until it is gone.
func (s *server) stop() {
	_ = s.process.Process.Signal(os.Interrupt)
	_ = s.process.Wait()
}

func (s *server) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// A client of its own, which is closed at the test's end.
func (s *server) client(t *testing.T, options redis.Options) *redis.Client {
	options.Addr = s.address()
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[V comparable](t *testing.T, found, expected V) {
	t.Helper()
	if found != expected {
		t.Fatalf("%v instead of %v", found, expected)
	}
}

// An error that stands for something: a key that is not there, a lock that is taken.
func means(t *testing.T, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Fatalf("%v instead of %v", err, expected)
	}
}
