// Go's net/http: a streamed tool loop by hand, then two at once. A binary has no clock or chance that a tape knows, so
// it asks for none.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

type object = map[string]any

var tools = []object{{"type": "function", "function": object{
	"name":       "get_weather",
	"parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}},
}}}

var agreed atomic.Value

// ask gives the answer's body, read line by line as it comes.
func ask(body object) string {
	data, err := json.Marshal(body)
	check(err)
	request, err := http.NewRequest("POST", "https://api.openai.com/v1/chat/completions", bytes.NewReader(data))
	check(err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	if response.StatusCode != 200 {
		check(fmt.Errorf("status %s", response.Status))
	}
	agreed.Store(response.Proto)
	var whole strings.Builder
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		whole.WriteString(line)
		if err == io.EOF {
			return whole.String()
		}
		check(err)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	user := object{"role": "user", "content": "The weather?"}
	var first struct{ Choices []struct{ Message object } }
	check(json.Unmarshal([]byte(ask(object{"model": "gpt-5", "tools": tools, "messages": []object{user}})), &first))
	said := first.Choices[0].Message
	fmt.Println(said)
	messages := []object{user, said}
	for _, call := range said["tool_calls"].([]any) {
		id := call.(map[string]any)["id"]
		messages = append(messages, object{"role": "tool", "tool_call_id": id, "content": "rain"})
	}
	fmt.Print(ask(object{"model": "gpt-5", "stream": true, "messages": messages}))

	texts := make([]string, 3)
	var group sync.WaitGroup
	for number, name := range []string{"left", "right", "middle"} {
		group.Add(1)
		go func(number int, name string) {
			defer group.Done()
			asked := []object{{"role": "user", "content": name}}
			texts[number] = ask(object{"model": "gpt-5", "stream": true, "messages": asked})
		}(number, name)
	}
	group.Wait()
	fmt.Print(strings.Join(texts, ""), agreed.Load(), "\n")
}
