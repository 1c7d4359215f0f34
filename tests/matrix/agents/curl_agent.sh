#!/bin/sh
# curl: a streamed tool loop by hand, then two at once. A shell has no clock or chance that a tape knows, so it asks for none.
set -eu
ask() {
    body=$1
    shift
    curl --silent --show-error --fail --no-buffer https://api.openai.com/v1/chat/completions \
        -H "Authorization: Bearer $OPENAI_API_KEY" -H "Content-Type: application/json" -d "$body" "$@"
}
told='%{http_version}\n'  # what was agreed on
tools='[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]'
user='{"role":"user","content":"The weather?"}'
first=$(ask "{\"model\":\"gpt-5\",\"tools\":$tools,\"messages\":[$user]}")
echo "$first"
ids=$(echo "$first" | grep -o 'call_[A-Za-z0-9]*')
results=$(for id in $ids; do printf ',{"role":"tool","tool_call_id":"%s","content":"rain"}' "$id"; done)
calls=$(echo "$first" | sed 's/.*"tool_calls":\(\[.*\]\)}.*"finish_reason".*/\1/; s/,"logprobs".*//')
ask "{\"model\":\"gpt-5\",\"stream\":true,\"messages\":[$user,{\"role\":\"assistant\",\"tool_calls\":$calls}$results]}" -w "$told"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in left right; do
    ask "{\"model\":\"gpt-5\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$name\"}]}" -w "$told" > "$work/$name" &
done
wait
cat "$work/left" "$work/right"
