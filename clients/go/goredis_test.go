// Package clients tests the server with clients of Redis for Go, and with what is built on them.
package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// onEachProtocol gives a test a client that speaks either version of the protocol.
func onEachProtocol(t *testing.T, test func(ctx context.Context, t *testing.T, client *redis.Client)) {
	onEach(t, func(t *testing.T, server *server) {
		for _, protocol := range []int{2, 3} {
			client := server.client(t, redis.Options{Protocol: protocol})
			must(t, client.FlushDB(context.Background()).Err())
			test(context.Background(), t, client)
		}
	})
}

func TestValuesOfAllTypes(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		must(t, client.Set(ctx, "apple", "red", time.Minute).Err())
		equal(t, client.SetNX(ctx, "apple", "green", 0).Val(), false)
		equal(t, client.TTL(ctx, "apple").Val() > 0, true)
		means(t, client.Get(ctx, "none").Err(), redis.Nil)
		must(t, client.HSet(ctx, "hash", struct {
			A int    `redis:"a"`
			B string `redis:"b"`
		}{1, "two"}).Err())
		var back struct {
			A int    `redis:"a"`
			B string `redis:"b"`
		}
		must(t, client.HGetAll(ctx, "hash").Scan(&back))
		equal(t, back.B, "two")
		must(t, client.ZAdd(ctx, "scores", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}).Err())
		pairs := client.ZRangeWithScores(ctx, "scores", 0, -1).Val()
		equal(t, fmt.Sprint(pairs), "[{1 a} {2.5 b}]")
		means(t, client.ZScore(ctx, "scores", "none").Err(), redis.Nil)
		key, popped, err := client.ZMPop(ctx, "max", 1, "scores").Result()
		must(t, err)
		equal(t, key+fmt.Sprint(popped), "scores[{2.5 b}]")
		must(t, client.SAdd(ctx, "set", "x", "y").Err())
		equal(t, len(client.SMembersMap(ctx, "set").Val()), 2)
		equal(t, fmt.Sprint(client.MGet(ctx, "apple", "none").Val()), "[red <nil>]")
		equal(t, redis.HasErrorPrefix(client.Incr(ctx, "hash").Err(), "WRONGTYPE"), true)
		equal(t, client.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"], "noeviction")
	})
}

func TestPipelinesAndTransactions(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		answers, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "text", "value", 0)
			pipe.Incr(ctx, "text")
			pipe.Get(ctx, "text")
			return nil
		})
		equal(t, err != nil && strings.Contains(err.Error(), "not an integer"), true)
		equal(t, answers[2].(*redis.StringCmd).Val(), "value")
		answers, err = client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "number", 1, 0)
			pipe.IncrBy(ctx, "number", 5)
			return nil
		})
		must(t, err)
		equal(t, answers[1].(*redis.IntCmd).Val(), 6)
	})
}

func TestWatchedKeysThatChangeEndTransactions(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		addOne := func(tx *redis.Tx) error {
			value, err := tx.Get(ctx, "counter").Int()
			if err != nil && err != redis.Nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				return pipe.Set(ctx, "counter", value+1, 0).Err()
			})
			return err
		}
		var group sync.WaitGroup
		for worker := 0; worker < 4; worker++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for done := 0; done < 25; {
					switch err := client.Watch(ctx, addOne, "counter"); {
					case err == nil:
						done++
					case !errors.Is(err, redis.TxFailedErr):
						t.Error(err)
						return
					}
				}
			}()
		}
		group.Wait()
		equal(t, client.Get(ctx, "counter").Val(), "100")
	})
}

func TestScriptsAreLoadedWhenTheyAreMissing(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		script := redis.NewScript("return {redis.call('INCRBY', KEYS[1], ARGV[1]), 'text', false}")
		for round := 1; round <= 2; round++ {
			must(t, client.ScriptFlush(ctx).Err())
			equal(t, script.Exists(ctx, client).Val()[0], false)
			answer, err := script.Run(ctx, client, []string{"number"}, 5).Slice()
			must(t, err)
			equal(t, fmt.Sprint(answer), fmt.Sprintf("[%d text <nil>]", 5*round))
		}
		equal(t, script.RunRO(ctx, client, []string{"number"}, 5).Err() != nil, true)
	})
}

func TestSubscribersGetMessages(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		subscriber := client.Subscribe(ctx, "news")
		defer subscriber.Close()
		must(t, subscriber.PSubscribe(ctx, "weather.*"))
		for range [2]int{} {
			_, err := subscriber.Receive(ctx)
			must(t, err)
		}
		must(t, subscriber.Ping(ctx, "still there"))
		pong, err := subscriber.Receive(ctx)
		must(t, err)
		equal(t, pong.(*redis.Pong).Payload, "still there")
		equal(t, client.Publish(ctx, "news", "one").Val(), 1)
		equal(t, client.Publish(ctx, "weather.rain", "two").Val(), 1)
		messages := subscriber.Channel()
		equal(t, (<-messages).Payload, "one")
		equal(t, (<-messages).Pattern, "weather.*")
		equal(t, client.PubSubNumSub(ctx, "news").Val()["news"], 1)
	})
}

func TestEverythingIsGoneThrough(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for number := 0; number < 1000; number++ {
				pipe.Set(ctx, fmt.Sprint("key ", number), "value", 0)
				pipe.SAdd(ctx, "set", number)
			}
			return nil
		})
		must(t, err)
		for _, iterator := range []*redis.ScanIterator{
			client.Scan(ctx, 0, "key *", 100).Iterator(),
			client.SScan(ctx, "set", 0, "", 100).Iterator(),
		} {
			found := map[string]bool{}
			for iterator.Next(ctx) {
				found[iterator.Val()] = true
			}
			must(t, iterator.Err())
			equal(t, len(found), 1000)
		}
	})
}

func TestWhoWaitsForAnElementGetsIt(t *testing.T) {
	onEachProtocol(t, func(ctx context.Context, t *testing.T, client *redis.Client) {
		got := make(chan []string)
		go func() { got <- client.BLPop(ctx, 30*time.Second, "other", "queue").Val() }()
		must(t, client.RPush(ctx, "queue", "element").Err())
		equal(t, fmt.Sprint(<-got), "[queue element]")
		means(t, client.BLPop(ctx, time.Second, "queue").Err(), redis.Nil)
	})
}

func TestClientsGoOnAfterARestart(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		ctx := context.Background()
		client := server.client(t, redis.Options{MaxRetries: 100, ClientName: "tester", DB: 2})
		must(t, client.Set(ctx, "key", "value", 0).Err())
		other := server.client(t, redis.Options{})
		must(t, other.ClientKillByFilter(ctx, "ID", fmt.Sprint(client.ClientID(ctx).Val())).Err())
		equal(t, client.Get(ctx, "key").Val(), "value")
		subscriber := client.Subscribe(ctx, "news")
		defer subscriber.Close()
		messages := subscriber.Channel()
		server.stop()
		must(t, server.start())
		equal(t, client.Get(ctx, "key").Val(), "value")
		equal(t, client.ClientGetName(ctx).Val(), "tester")
		for client.Publish(ctx, "news", "one").Val() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, (<-messages).Payload, "one")
	})
}

func TestUsersWithRights(t *testing.T) {
	onEach(t, func(t *testing.T, server *server) {
		ctx := context.Background()
		client := server.client(t, redis.Options{})
		must(t, client.Do(ctx, "ACL", "SETUSER", "alice", "on", ">open sesame", "~orders:*", "+@all").Err())
		defer client.Do(ctx, "ACL", "DELUSER", "alice")
		for _, protocol := range []int{2, 3} {
			alice := server.client(t, redis.Options{Username: "alice", Password: "open sesame", Protocol: protocol})
			must(t, alice.Set(ctx, "orders:1", "pen", 0).Err())
			equal(t, redis.HasErrorPrefix(alice.Get(ctx, "secret").Err(), "NOPERM"), true)
			wrong := server.client(t, redis.Options{Username: "alice", Password: "wrong", Protocol: protocol})
			equal(t, redis.HasErrorPrefix(wrong.Ping(ctx).Err(), "WRONGPASS"), true)
		}
	})
}
