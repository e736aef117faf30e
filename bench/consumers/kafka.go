package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Transactions of one record each, by so many producers for two seconds.
func kafkaTransactions(brokers string, producers int) float64 {
	const topic = "results"
	ctx := context.Background()
	clients := make([]*kgo.Client, producers)
	for i := range clients {
		made, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.AllowAutoTopicCreation(), kgo.TransactionalID(fmt.Sprintf("t%d-%d", time.Now().UnixNano(), i)),
			kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))
		must(err)
		defer made.Close()
		clients[i] = made
		transaction(ctx, made)
	}
	var count atomic.Int64
	begun := time.Now()
	deadline := begun.Add(2 * time.Second)
	var all sync.WaitGroup
	for _, made := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(deadline) {
				transaction(ctx, made)
				count.Add(1)
			}
		}()
	}
	all.Wait()
	return float64(count.Load()) / time.Since(begun).Seconds()
}

func transaction(ctx context.Context, made *kgo.Client) {
	must(made.BeginTransaction())
	must(made.ProduceSync(ctx, kgo.StringRecord(`{"n":1}`)).FirstErr())
	must(made.EndTransaction(ctx, kgo.TryCommit))
}
