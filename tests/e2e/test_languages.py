"""Programs that are not Python, with the HTTP clients of their own languages: what they heard they hear again."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.testing import FakeProvider

pytestmark = pytest.mark.soak  # compilers and virtual machines take seconds

JAVA = """
import java.net.URI;
import java.net.http.*;

public class Agent {
    public static void main(String[] args) throws Exception {
        String base = System.getenv().getOrDefault("OPENAI_BASE_URL", "https://api.openai.com/v1");
        String body = "{'model':'m','stream':true,'messages':[{'role':'user','content':'hi'}]}".replace('\\'', '"');
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/chat/completions"))
            .header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body());
    }
}
"""
GO = """
package main

import ("fmt"; "io"; "net/http"; "strings")

func main() {
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	answer, err := http.Post("https://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil { panic(err) }
	text, err := io.ReadAll(answer.Body)
	if err != nil { panic(err) }
	fmt.Println(answer.StatusCode, string(text))
}
"""


def build_java(folder: Path) -> list[str]:
    (folder / "Agent.java").write_text(JAVA)
    return ["java", "Agent.java"]


def build_go(folder: Path) -> list[str]:
    (folder / "agent.go").write_text(GO)
    subprocess.run(["go", "build", "-o", "agent", "agent.go"], cwd=folder, check=True)
    return ["./agent"]


@pytest.mark.parametrize(
    ("tool", "options", "build"),
    [
        ("java", ["--java"], build_java),
        # Without TLS its client offers HTTP/2 with each first request.
        ("java", ["--reverse", "https://api.openai.com"], build_java),
        ("go", [], build_go),
    ],
    ids=["java", "java by a base URL", "go"],
)
def test_another_language_hears_the_same_again(
    tool: str, options: list[str], build: Callable[[Path], list[str]], cli: Cli, provider: FakeProvider
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    argv = build(cli.cwd)
    recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *options, *maps(provider.url), "--", *argv)
    assert (recorded.returncode, recorded.stdout[:4]) == (0, "200 "), recorded.stderr
    provider.stop()
    replayed = cli.run("replay", "t.tape.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert "1 of 1 exchange served, 0 violations" in replayed.stderr
