package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/scs/redisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/go-redis/cache/v9"
	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/gomodule/redigo/redis"
	"github.com/hibiken/asynq"
	goredislib "github.com/redis/go-redis/v9"
)

// A queue of tasks: asynq.
func TestTasksOfAsynq(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		place := asynq.RedisClientOpt{Addr: server.address(), DB: 1}
		client := asynq.NewClient(place)
		defer client.Close()
		inspector := asynq.NewInspector(place)
		defer inspector.Close()
		for number := 0; number < 20; number++ {
			_, err := client.Enqueue(asynq.NewTask("add", []byte{byte(number)}), asynq.Retention(time.Hour))
			must(t, err)
		}
		_, err := client.Enqueue(asynq.NewTask("add", nil), asynq.TaskID("once"), asynq.ProcessIn(time.Hour))
		must(t, err)
		_, err = client.Enqueue(asynq.NewTask("add", nil), asynq.TaskID("once"))
		means(t, err, asynq.ErrTaskIDConflict)
		_, err = client.Enqueue(asynq.NewTask("fails", nil), asynq.MaxRetry(0))
		must(t, err)

		var sum atomic.Int64
		done := make(chan struct{}, 21)
		worker := asynq.NewServer(place, asynq.Config{Concurrency: 4, LogLevel: asynq.FatalLevel})
		must(t, worker.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			defer func() { done <- struct{}{} }()
			if task.Type() == "fails" {
				return errors.New("never")
			}
			sum.Add(int64(task.Payload()[0]))
			_, err := task.ResultWriter().Write([]byte("done"))
			return err
		})))
		for number := 0; number < 21; number++ {
			<-done
		}
		worker.Shutdown()
		equal(t, sum.Load(), 190)
		info, err := inspector.GetQueueInfo("default")
		must(t, err)
		counts := []int{info.Completed, info.Scheduled, info.Archived, info.Pending, info.Active}
		equal(t, fmt.Sprint(counts), "[20 1 1 0 0]")
		tasks, err := inspector.ListCompletedTasks("default")
		must(t, err)
		equal(t, string(tasks[0].Result), "done")
		must(t, inspector.DeleteTask("default", "once"))
		must(t, inspector.DeleteQueue("default", true))
	})
}

// Sessions: scs, by the client redigo.
func TestSessionsOfScs(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", server.address()) }}
		defer pool.Close()
		sessions := scs.New()
		sessions.Store = redisstore.New(pool)
		sessions.Lifetime = time.Minute
		site := httptest.NewServer(sessions.LoadAndSave(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			sessions.Put(in.Context(), "visits", sessions.GetInt(in.Context(), "visits")+1)
			if in.URL.Path == "/leave" {
				must(t, sessions.Destroy(in.Context()))
			}
			fmt.Fprint(out, sessions.GetInt(in.Context(), "visits"))
		})))
		defer site.Close()
		jar, err := cookiejar.New(nil)
		must(t, err)
		browser := http.Client{Jar: jar}
		for round, path := range []string{"/", "/", "/leave", "/"} {
			answer, err := browser.Get(site.URL + path)
			must(t, err)
			var visits int
			_, err = fmt.Fscan(answer.Body, &visits)
			must(t, err)
			must(t, answer.Body.Close())
			equal(t, visits, []int{1, 2, 0, 1}[round])
		}
		kept, err := sessions.Store.(*redisstore.RedisStore).All()
		must(t, err)
		equal(t, len(kept), 1)
	})
}

// A cache: go-redis/cache.
func TestCache(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		kept := cache.New(&cache.Options{Redis: server.client(t, goredislib.Options{})})
		ctx, calls := context.Background(), 0
		for range [2]int{} {
			var value map[string]int
			must(t, kept.Once(&cache.Item{Key: "slow", Value: &value, TTL: time.Minute, Do: func(*cache.Item) (interface{}, error) {
				calls++
				return map[string]int{"calls": calls}, nil
			}}))
			equal(t, value["calls"], 1)
		}
		must(t, kept.Delete(ctx, "slow"))
		means(t, kept.Get(ctx, "slow", nil), cache.ErrCacheMiss)
	})
}

// Locks: redsync.
func TestLocksOfRedsync(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		locks := redsync.New(goredis.NewPool(server.client(t, goredislib.Options{})))
		door, other := locks.NewMutex("door"), locks.NewMutex("door", redsync.WithTries(1))
		must(t, door.Lock())
		equal(t, other.Lock() != nil, true)
		extended, err := door.Extend()
		must(t, err)
		equal(t, extended, true)
		unlocked, err := door.Unlock()
		must(t, err)
		equal(t, unlocked, true)
		must(t, other.Lock())
	})
}

// Limits: redis_rate, a script with times and floating-point numbers.
func TestLimitsOfRedisRate(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		ctx := context.Background()
		limiter := redis_rate.NewLimiter(server.client(t, goredislib.Options{}))
		for round := 0; round < 4; round++ {
			result, err := limiter.Allow(ctx, "alice", redis_rate.PerHour(3))
			must(t, err)
			equal(t, result.Remaining, []int{2, 1, 0, 0}[round])
			equal(t, result.Allowed == 1, round < 3)
		}
		must(t, limiter.Reset(ctx, "alice"))
		result, err := limiter.AllowN(ctx, "alice", redis_rate.PerHour(3), 3)
		must(t, err)
		equal(t, result.Allowed, 3)
	})
}
