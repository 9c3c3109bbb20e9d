// fasthttp and Go's net/http for compare: GET by one goroutine for each request at a time. Prints the number of requests
// in the words of wrk. The first error ends the program.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	client      = flag.String("client", "fasthttp", "fasthttp (its PipelineClient if depth is above 1) or net/http")
	connections = flag.Int("connections", 64, "connections")
	depth       = flag.Int("depth", 1, "requests on each connection at a time")
	duration    = flag.Duration("duration", 2*time.Second, "how long to measure")
)

// Makes one call with the buffers of its goroutine. Returns the status and the length of the body.
type exchange func() (int, int, error)

func main() {
	flag.Parse()
	target, err := url.Parse(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	newExchange := useFasthttp(target)
	if *client == "net/http" {
		newExchange = useNetHTTP(target)
	}
	_, length, err := newExchange()() // Each body must have the length of the first.
	if err != nil {
		log.Fatal(err)
	}
	var requests int64
	var workers sync.WaitGroup
	start := time.Now()
	for i := 0; i < *connections**depth; i++ {
		workers.Add(1)
		go func(exchange exchange) {
			defer workers.Done()
			for time.Since(start) < *duration {
				if status, got, err := exchange(); err != nil || status != 200 || got != length {
					log.Fatalf("%s: status %d, %d bytes instead of %d, error %v", *client, status, got, length, err)
				}
				atomic.AddInt64(&requests, 1)
			}
		}(newExchange())
	}
	workers.Wait()
	seconds := time.Since(start).Seconds()
	fmt.Printf("%d requests in %.2fs\nRequests/sec: %.2f\n", requests, seconds, float64(requests)/seconds)
}

func useFasthttp(target *url.URL) func() exchange {
	do := (&fasthttp.HostClient{Addr: target.Host, MaxConns: *connections}).Do
	if *depth > 1 {
		do = (&fasthttp.PipelineClient{Addr: target.Host, MaxConns: *connections, MaxPendingRequests: *depth}).Do
	}
	return func() exchange {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		request.SetRequestURI(target.String())
		return func() (int, int, error) {
			err := do(request, response)
			return response.StatusCode(), len(response.Body()), err
		}
	}
}

func useNetHTTP(target *url.URL) func() exchange {
	client := http.Client{Transport: &http.Transport{
		MaxConnsPerHost: *connections, MaxIdleConnsPerHost: *connections, DisableCompression: true,
	}}
	return func() exchange {
		request := http.Request{URL: target}
		return func() (int, int, error) {
			response, err := client.Do(&request)
			if err != nil {
				return 0, 0, err
			}
			defer response.Body.Close()
			length, err := io.Copy(io.Discard, response.Body)
			return response.StatusCode, int(length), err
		}
	}
}
