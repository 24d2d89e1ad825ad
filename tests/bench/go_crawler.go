// The same crawl on Go's standard library, `go_crawler URL N`: what compiled code takes for it.
// A goroutine for each URL, N fetch at a time; there are no limits, checks or retries.
package main

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	client http.Client
	slots  chan bool
	crew   sync.WaitGroup
	lock   sync.Mutex
	found  = map[string]int{}
)

// links returns what the `a` elements of a page lead to, each once, without fragments.
func links(page []byte) map[string]bool {
	hrefs := map[string]bool{}
	for at := bytes.IndexByte(page, '<'); at >= 0; at = bytes.IndexByte(page, '<') {
		page = page[at+1:]
		end := ">"
		if bytes.HasPrefix(page, []byte("!--")) {
			end = "-->"
		} else if len(page) > 6 && strings.EqualFold(string(page[:6]), "script") {
			end = "</script"
		}
		tag, rest, _ := bytes.Cut(page, []byte(end))
		if len(tag) > 2 && tag[0]|32 == 'a' && tag[1] <= ' ' {
			value, _, _ := strings.Cut(html.UnescapeString(href(string(tag[1:]))), "#")
			hrefs[strings.TrimSpace(value)] = true
		}
		page = rest
	}
	return hrefs
}

// href returns the value of that attribute in a start tag.
func href(tag string) string {
	for at := strings.IndexByte(tag, '='); at > 0; at = strings.IndexByte(tag, '=') {
		name, value := strings.TrimSpace(tag[:at]), strings.TrimSpace(tag[at+1:])
		quote := " "
		if value != "" && (value[0] == '"' || value[0] == '\'') {
			quote, value = value[:1], value[1:]
		}
		value, rest, _ := strings.Cut(value, quote)
		if strings.EqualFold(name[strings.LastIndexAny(name, " \t\n")+1:], "href") {
			return value
		}
		tag = rest
	}
	return ""
}

// fetch asks for a URL and returns its status, 0 for no answer, and where it leads.
func fetch(address string) (int, map[string]bool) {
	answer, err := client.Get(address)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	if place := answer.Header.Get("Location"); place != "" && answer.StatusCode/100 == 3 {
		return answer.StatusCode, map[string]bool{place: true}
	}
	if answer.StatusCode == 200 && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		return 200, links(body)
	}
	return answer.StatusCode, nil
}

// visit fetches a URL and starts a visit to each of its host that was not seen before.
func visit(address string) {
	defer crew.Done()
	slots <- true
	status, hrefs := fetch(address)
	<-slots
	base, _ := url.Parse(address)
	lock.Lock()
	defer lock.Unlock()
	found[address] = status
	for each := range hrefs {
		target, err := base.Parse(each)
		if each == "" || err != nil || target.Host != base.Host {
			continue
		}
		target.Fragment = ""
		if _, seen := found[target.String()]; !seen {
			found[target.String()] = 0
			crew.Add(1)
			go visit(target.String())
		}
	}
}

func main() {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	begun := time.Now()
	workers, _ := strconv.Atoi(os.Args[2])
	slots = make(chan bool, workers)
	client.Transport = &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	found[os.Args[1]] = 0
	crew.Add(1)
	visit(os.Args[1])
	crew.Wait()
	startUp := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	facts := map[string]any{"urls": len(found), "failed": 0, "start_up": startUp,
		"wall": time.Since(begun).Seconds()}
	for _, status := range found {
		if status == 0 {
			facts["failed"] = facts["failed"].(int) + 1
		}
	}
	if os.Getenv("BENCH_FOUND") == "" {
		found = nil
	}
	facts["found"] = found
	json.NewEncoder(os.Stdout).Encode(facts)
}
