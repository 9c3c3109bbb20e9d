// The application on Go's net/http.
package main

import (
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func chunks(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/trailers" {
		w.Header().Set("Trailer", "X-Check")
	}
	for number := 1; number <= 3; number++ {
		fmt.Fprintf(w, "chunk %d\n", number)
		w.(http.Flusher).Flush()
	}
	if r.URL.Path == "/trailers" {
		w.Header().Set("X-Check", "3")
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	sum := crc32.NewIEEE()
	length, _ := io.Copy(sum, r.Body)
	fmt.Fprintf(w, "%d %08x", length, sum.Sum32())
}

func text(w http.ResponseWriter, r *http.Request) {
	name := filepath.Join(os.Getenv("ROOT"), "text.txt")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		http.ServeFile(w, r, name)
		return
	}
	body, _ := os.ReadFile(name)
	w.Header().Set("Content-Encoding", "gzip")
	coder := gzip.NewWriter(w)
	coder.Write(body)
	coder.Close()
}

func main() {
	files := http.FileServer(http.Dir(os.Getenv("ROOT")))
	http.Handle("/", files)
	http.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	http.HandleFunc("/chunked", chunks)
	http.HandleFunc("/trailers", chunks)
	http.HandleFunc("/echo", echo)
	http.HandleFunc("/reject", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) })
	http.HandleFunc("/text.txt", text)
	http.HandleFunc("/close", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "bye")
	})
	http.HandleFunc("/until-close", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Transfer-Encoding", "identity")
		io.WriteString(w, "the end\n")
		w.(http.Flusher).Flush()
	})
	http.HandleFunc("/etag", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		files.ServeHTTP(w, r)
	})
	idle, _ := strconv.Atoi(os.Getenv("IDLE"))
	server := http.Server{
		Addr:        os.Getenv("HOST") + ":" + os.Getenv("PORT"),
		IdleTimeout: time.Duration(idle) * time.Second,
	}
	if chain := os.Getenv("CHAIN"); chain != "" {
		panic(server.ListenAndServeTLS(chain, os.Getenv("KEY")))
	}
	panic(server.ListenAndServe())
}
